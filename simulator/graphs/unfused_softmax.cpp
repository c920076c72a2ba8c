#include "simulator/graphs/unfused_softmax.hpp"

#include <optional>

namespace shardwise {
namespace {

// Bytes of a score: upcast, mask in place, softmax, cast back; backward cast, softmax, mask, cast.
constexpr double unfused_forward = 6 + 9 + 8 + 6;
constexpr double unfused_backward = 6 + 12 + 9 + 6;

MemoryWork four_operators(double bytes) {
  MemoryWork work = traffic(bytes, 4);
  work.plain = true;
  return work;
}

}  // namespace

bool leaves_fused_softmax(const GraphBuilder& b, const AttentionWork& work) {
  const std::optional<int>& batches = b.workload().framework.softmax_batches;
  if (!batches || b.element() != 2) return false;
  return (work.batch * work.heads) % *batches != 0 || work.queries % 4 != 0 || work.keys % 4 != 0;
}

void run_unfused_softmax(Operator& op, double scores) {
  op.forward.push_back(four_operators(unfused_forward * scores));
  op.backward.push_back(four_operators(unfused_backward * scores));
}

}  // namespace shardwise
