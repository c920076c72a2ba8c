#include "simulator/graphs/unfused_softmax.hpp"

#include <optional>

namespace shardwise {
namespace {

// Bytes of a score: upcast, mask in place, softmax, cast back; backward cast, softmax, mask, cast.
constexpr double unfused_forward = 6 + 9 + 8 + 6;
constexpr double unfused_backward = 6 + 12 + 9 + 6;

// In 16 bits: the mask in place, whose byte the heads share, and softmax.
constexpr double half_mask = 2 + 2 + 1, half_softmax_forward = 4, half_softmax_backward = 6;

MemoryWork plain_operator(double bytes, double elements) {
  MemoryWork work = traffic(bytes, 1);
  work.plain = true;
  work.singly = static_cast<std::int64_t>(elements);
  return work;
}

MemoryWork four_operators(double bytes) {
  MemoryWork work = traffic(bytes, 4);
  work.plain = true;
  return work;
}

}  // namespace

bool leaves_fused_softmax(const GraphBuilder& b, const AttentionWork& work) {
  if (b.workload().framework.attention.half_softmax && b.element() == 2) return true;
  const std::optional<int>& batches = b.workload().framework.attention.softmax_batches;
  if (!batches || b.element() != 2) return false;
  return (work.batch * work.heads) % *batches != 0 || work.queries % 4 != 0 || work.keys % 4 != 0;
}

void run_unfused_softmax(Operator& op, double scores, bool half) {
  if (half) {
    for (std::vector<Kernel>* way : {&op.forward, &op.backward})
      way->insert(way->end(), {plain_operator(half_mask * scores, scores),
                               plain_operator(way == &op.forward ? half_softmax_forward * scores
                                                                 : half_softmax_backward * scores,
                                              0)});
    return;
  }
  op.forward.push_back(four_operators(unfused_forward * scores));
  op.backward.push_back(four_operators(unfused_backward * scores));
}

}  // namespace shardwise
