// GPipe: every forward, then every backward, both in the order of microbatches.
//
//   F0 F1 .. F(m-1)  B0 B1 .. B(m-1)
//
// All m microbatches are in flight on every stage. With equal stages of times f and b the step
// takes (m + p - 1)(f + b). The backward order (not reversed) is that of ScheduleGPipe in PyTorch
// (torch/distributed/pipelining/schedules.py); Huang et al., arXiv 1811.06965.
#include "simulator/schedules/schedules.hpp"

namespace shardwise::schedules {

std::vector<Slot> gpipe_order(PipelineShape shape, int /*stage*/) {
  std::vector<Slot> slots;
  for (int i = 0; i < shape.microbatches; ++i) slots.push_back(forward(i));
  for (int i = 0; i < shape.microbatches; ++i) slots.push_back(backward(i));
  return slots;
}

}  // namespace shardwise::schedules
