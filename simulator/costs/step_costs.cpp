#include "simulator/costs/step_costs.hpp"

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

// Of two waits the later one is kept.
PassTime& PassTime::operator+=(const PassTime& o) {
  const IssuedWork last = before_wait ? whole() - *before_wait : whole();
  lead = o.before_wait ? o.lead : (last + o.whole()).lead;
  if (o.before_wait) before_wait = whole() + *o.before_wait;
  const IssuedWork sum = whole() + o.whole();
  compute = sum.compute;
  exposed = sum.exposed;
  host = sum.host;
  copies += o.copies;
  return *this;
}

bool PassTime::is_host_bound() const {
  const auto slow = [](const IssuedWork& w) { return w.host > w.device(); };
  if (!before_wait) return slow(whole());
  return lead > Seconds(0) || slow(*before_wait) || slow(whole() - *before_wait);
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
