#include "planner/search/nearest_miss.hpp"

#include <algorithm>
#include <tuple>

namespace shardwise {
namespace {

// What tensors alone miss: no card does that is larger by less than this.
Bytes least_shortfall(const Forecast& memory) {
  const auto of = [](const StageForecast& s) {
    return s.peak.allocated + s.peak.device - s.peak.reserved - s.capacity;
  };
  Bytes most = of(memory.stages.front());
  for (const StageForecast& s : memory.stages) most = std::max(most, of(s));
  return most;
}

// What the host lacks; nothing where it has enough, or where its RAM is not known.
Bytes host_shortfall(const HostMemory& host) {
  if (!host.available) return Bytes(0);
  return std::max(Bytes(0), std::max(host.steady, host.load_peak) - *host.available);
}

}  // namespace

bool nearer(const Forecast& a, const Forecast& b) {
  const auto key = [](const Forecast& f) {
    const Bytes none, gpu = least_shortfall(f), host = host_shortfall(f.host);
    const Bytes then = host > none ? std::max(none, none - f.margin) : gpu;
    return std::tuple(std::max(none, gpu), host, then);
  };
  return key(a) < key(b);
}

void LeastLack::learn(const Forecast& missed) {
  const std::int64_t lacks = std::max(Bytes(0), least_shortfall(missed)).value;
  std::int64_t before = bytes_;
  while (lacks < before && !bytes_.compare_exchange_weak(before, lacks)) {
  }
}

}  // namespace shardwise
