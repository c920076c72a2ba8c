#include "simulator/costs/step_costs.hpp"

#include <algorithm>

namespace shardwise {

// The kernels of b may begin when those of a are done, and the CPU comes to them when it is done
// with those of a.
IssuedWork operator+(IssuedWork a, const IssuedWork& b) {
  a.lead = longest(a.lead, a.host - a.device() + b.lead);
  a.compute += b.compute;
  for (std::size_t i = 0; i < a.exposed.size(); ++i) a.exposed[i] += b.exposed[i];
  a.host += b.host;
  return a;
}

IssuedWork operator-(IssuedWork a, const IssuedWork& b) {
  a.compute = a.compute - b.compute;
  for (std::size_t i = 0; i < a.exposed.size(); ++i) a.exposed[i] = a.exposed[i] - b.exposed[i];
  a.host = a.host - b.host;
  return a;
}

IssuedWork operator*(double share, IssuedWork a) {
  a.compute = share * a.compute;
  for (Seconds& exposed : a.exposed) exposed = share * exposed;
  a.host = share * a.host;
  a.lead = share * a.lead;
  return a;
}

IssuedWork PassTime::after_waits() const {
  IssuedWork rest = whole();
  for (const IssuedWork& part : waited) rest = rest - part;
  return rest;
}

// What o does before its first wait follows what this pass does after its last one.
PassTime& PassTime::operator+=(const PassTime& o) {
  const IssuedWork last = after_waits();
  if (o.waited.empty()) {
    lead = (last + o.whole()).lead;
  } else {
    lead = o.lead;
    waited.push_back(last + o.waited.front());
    waited.insert(waited.end(), o.waited.begin() + 1, o.waited.end());
  }
  const IssuedWork sum = whole() + o.whole();
  compute = sum.compute;
  exposed = sum.exposed;
  host = sum.host;
  copies += o.copies;
  return *this;
}

bool PassTime::is_host_bound() const {
  const auto slow = [](const IssuedWork& w) { return w.host > w.device(); };
  if (waited.empty()) return slow(whole());
  return lead > Seconds(0) || slow(after_waits()) ||
         std::any_of(waited.begin(), waited.end(), slow);
}

bool StepCosts::is_host_bound() const {
  for (const StageCosts& stage : stages)
    for (const auto& chunk : stage.chunks)
      for (const LayerSchedule& l : chunk) {
        PassTime back = l.time.recompute;
        back += l.time.backward_input;
        back += l.time.backward_weight;
        if (l.time.forward.is_host_bound() || back.is_host_bound()) return true;
      }
  return false;
}

}  // namespace shardwise
