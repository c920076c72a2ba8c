#include "simulator/graphs/loss_traffic.hpp"

namespace shardwise {

double row_passes(std::int64_t row_bytes) { return row_bytes < 48 * 1024 ? 2 : 4; }

bool is_loss_compiled(const Framework& f) {
  return f.loss.compiled_alone || (f.loss.compiled && f.layers.kernels == KernelStyle::compiled);
}

LossTraffic cross_entropy_traffic(std::int64_t width, std::int64_t each, bool widens) {
  const std::int64_t wide = widens ? 4 : each;
  const auto value = static_cast<double>(wide);
  LossTraffic t;
  t.cast = widens ? static_cast<double>(each) + value : 0;
  t.forward = row_passes(width * wide) * value;
  t.backward = (1 + 4) * value;
  return t;
}

LossTraffic compiled_loss_traffic(std::int64_t each) {
  LossTraffic t;
  t.forward = t.backward = 2 * static_cast<double>(each);
  return t;
}

}  // namespace shardwise
