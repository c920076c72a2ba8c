// Zero-bubble schedules: the backward pass is split into its input half I, which the stage before
// waits for, and its weight half W, which can fill the waiting. Qi et al., arXiv 2401.10241.
//
// ZB-H1, as PyTorch's ScheduleInterleavedZeroBubble orders it for one chunk per stage:
//
//   stage r:  p - 1 - r forwards,  then {F, I} while forwards are left,  then I;
//             from the r-th I on (counted from 0), each I is followed by the oldest W not yet
//             done; the W's left come last
//
// A stage never holds more than p microbatches, as stage 0 of 1F1B. The bubble is
// (p - 1)(F + I - W): with F = I = W a third of 1F1B's.
//
// ZB-V, as PyTorch's ScheduleZBVZeroBubble: stage r holds model chunks r and 2 p - 1 - r, so that
// the first stage has both ends of the model and a microbatch turns round on the last one without
// a send. With F = I = W no stage idles between its first and its last slot once m >= 2 p - 1, and
// every stage holds at most 2 p chunks, that is p microbatches. Fewer microbatches run the order
// for 2 p - 1 with the missing ones left out.
#include <utility>

#include "simulator/schedules/schedules.hpp"

namespace shardwise::schedules {

std::vector<Slot> zb_h1_order(PipelineShape shape, int stage) {
  const int microbatches = shape.microbatches;
  const int warm_up = std::min(microbatches, shape.stages - 1 - stage);
  std::vector<Slot> slots;
  int weights_done = 0;
  for (int i = 0; i < microbatches + warm_up; ++i) {
    if (i < microbatches) slots.push_back(forward(i));
    const int back = i - warm_up;
    if (back >= 0) slots.push_back(backward_input(back));
    if (back >= stage) slots.push_back(backward_weight(weights_done++));
  }
  while (weights_done < microbatches) slots.push_back(backward_weight(weights_done++));
  return slots;
}

namespace {

// Appends passes of either chunk, each chunk's microbatches in order, leaving out those that the
// step does not have.
class ZbVOrder {
 public:
  explicit ZbVOrder(int microbatches) : microbatches_(microbatches) {
    slots_.reserve(6 * static_cast<std::size_t>(microbatches));
  }

  void forward(int chunk) { append(Pass::forward, forwards[chunk]++, chunk); }
  void input(int chunk) { append(Pass::backward_input, inputs[chunk]++, chunk); }
  void weight(int chunk) { append(Pass::backward_weight, weights[chunk]++, chunk); }
  std::vector<Slot> take_slots() { return std::move(slots_); }

  int forwards[2] = {0, 0};
  int inputs[2] = {0, 0};
  int weights[2] = {0, 0};

 private:
  void append(Pass pass, int microbatch, int chunk) {
    if (microbatch < microbatches_) slots_.push_back({pass, microbatch, chunk});
  }

  int microbatches_;
  std::vector<Slot> slots_;
};

void warm_up(ZbVOrder& order, int stages, int stage) {
  for (int i = 0; i < 2 * (stages - stage) - 1; ++i) order.forward(0);
  for (int i = 0; i < stage; ++i) {
    order.forward(1);
    order.forward(0);
  }
  for (int i = 0; i < stages - stage; ++i) {
    order.forward(1);
    order.input(1);
    order.weight(1);
  }
}

void cool_down(ZbVOrder& order, int stages, int stage) {
  for (int i = 0; i < stage; ++i) {
    order.input(0);
    order.input(1);
  }
  for (int i = 0; i < stages - stage; ++i) {
    order.input(0);
    order.weight(0);
  }
  while (order.weights[1] < order.inputs[1]) order.weight(1);
  while (order.weights[0] < order.inputs[0]) order.weight(0);
}

}  // namespace

std::vector<Slot> zb_v_order(PipelineShape shape, int stage) {
  const int microbatches = std::max(2 * shape.stages - 1, shape.microbatches);
  ZbVOrder order(shape.microbatches);
  warm_up(order, shape.stages, stage);
  while (order.forwards[1] < microbatches) {
    if (order.forwards[0] < microbatches) order.forward(0);
    for (const int chunk : {0, 1}) {
      if (chunk == 1) order.forward(1);
      order.input(chunk);
      order.weight(chunk);
    }
  }
  cool_down(order, shape.stages, stage);
  return order.take_slots();
}

}  // namespace shardwise::schedules
