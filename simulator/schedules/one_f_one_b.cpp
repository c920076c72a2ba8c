// 1F1B: after a warm-up, one forward and one backward in turn.
//
//   stage r:  p - 1 - r forwards,  then {F, B} while forwards are left,  then the other backwards
//
// Stage r holds at most min(m, p - r) microbatches in flight; the time is GPipe's. Megatron-LM
// counts the warm-up so (megatron/core/pipeline_parallel/schedules.py); PyTorch's Schedule1F1B
// counts one forward more and starts its pairs with the backward: the same sequence. Narayanan et
// al., arXiv 2104.04473, section 2.2.1.
#include "simulator/schedules/schedules.hpp"

namespace shardwise::schedules {

std::vector<Slot> one_f_one_b_order(PipelineShape shape, int stage) {
  const int microbatches = shape.microbatches;
  const int warm_up = std::min(microbatches, shape.stages - 1 - stage);
  std::vector<Slot> slots;
  for (int i = 0; i < microbatches + warm_up; ++i) {
    if (i < microbatches) slots.push_back(forward(i));
    if (i >= warm_up) slots.push_back(backward(i - warm_up));
  }
  return slots;
}

}  // namespace shardwise::schedules
