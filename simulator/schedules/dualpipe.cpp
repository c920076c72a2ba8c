// DualPipe and DualPipeV: forwards of one chunk run as one with backwards of the other, so that
// the communication of each hides behind the computation of the other. Both orders are those of
// github.com/deepseek-ai/DualPipe (dualpipe/dualpipe.py, dualpipe/dualpipev.py); DeepSeek-V3,
// arXiv 2412.19437, section 3.2.1.
//
// DualPipe feeds microbatches from both ends of the p stages: the first half enters at stage 0, the
// second at stage p - 1. Stage r holds model chunk r for the one direction and p - 1 - r for the
// other, so the stages together hold the model twice. DualPipeV is the same order on one half of
// the stages: stage r holds chunks r and 2 p - 1 - r, and a microbatch turns round on the last.
//
// Let h = p / 2 (V: p), k = min(r, p - 1 - r) (V: r), n = m / 2 (V: m), and chunk 0 that whose
// microbatches enter at the near end. W is the oldest weight half not yet done, F&B a pair.
//
//   1. 2 (h - k - 1) x  F0                 5. (h - k - 1) x  B1 F1&B0
//   2. (k + 1) x        F0 F1              6. (k + 1) x      B1 B0, in the second half I1 I0
//   3. (h - k - 1) x    I1 W F1            7. (h - k - 1) x  W I0
//   4. (n - 2h + k + 1) x  F0&B1 F1&B0     8. (k + 1) x      W
//
// The first pair of step 4 is run one after the other where k = h - 1, which shortens the bubble.
// The bubble is (h - 1)(F&B + B - 3W) there, and a stage holds at most 2h + 1 chunks in flight.
#include <utility>

#include "simulator/schedules/schedules.hpp"

namespace shardwise::schedules {
namespace {

struct DualShape {
  int half;          // h
  int place;         // k
  int microbatches;  // n, per chunk
};

// Appends passes; each chunk's microbatches go in order.
class DualOrder {
 public:
  // `near` is the local chunk that the steps call 0; the microbatches of local chunk 1 are counted
  // from `offset`. Each chunk has so many of them.
  DualOrder(int near, int offset, int microbatches) : near_(near), offset_(offset) {
    slots_.reserve(6 * static_cast<std::size_t>(microbatches));  // three passes of either chunk
  }

  void forward(int chunk, bool paired = false) {
    Slot slot = make(Pass::forward, forwards_[chunk]++, chunk);
    slot.paired_with_next = paired;
    slots_.push_back(slot);
  }
  void backward(int chunk) { slots_.push_back(make(Pass::backward, backwards_[chunk]++, chunk)); }
  void input(int chunk) {
    slots_.push_back(make(Pass::backward_input, backwards_[chunk]++, chunk));
    pending_.push_back(slots_.back());
  }
  void weight() {
    Slot slot = pending_[weights_++];
    slot.pass = Pass::backward_weight;
    slots_.push_back(slot);
  }
  std::vector<Slot> take_slots() { return std::move(slots_); }

 private:
  Slot make(Pass pass, int count, int chunk) const {
    const int local = near_ == 0 ? chunk : 1 - chunk;
    return {pass, local == 0 ? count : offset_ + count, local};
  }

  int near_;
  int offset_;
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
  std::vector<Slot> pending_;  // input halves whose weight half is to come, from weights_ on
  std::size_t weights_ = 0;
  std::vector<Slot> slots_;
};

void steps_1_to_3(DualOrder& order, DualShape shape) {
  const int outward = shape.half - shape.place - 1;
  for (int i = 0; i < 2 * outward; ++i) order.forward(0);
  for (int i = 0; i < shape.place + 1; ++i) {
    order.forward(0);
    order.forward(1);
  }
  for (int i = 0; i < outward; ++i) {
    order.input(1);
    order.weight();
    order.forward(1);
  }
}

void steps_4_and_5(DualOrder& order, DualShape shape) {
  const int outward = shape.half - shape.place - 1;
  for (int i = 0; i < shape.microbatches - 2 * shape.half + shape.place + 1; ++i) {
    order.forward(0, i != 0 || outward != 0);
    order.backward(1);
    order.forward(1, true);
    order.backward(0);
  }
  for (int i = 0; i < outward; ++i) {
    order.backward(1);
    order.forward(1, true);
    order.backward(0);
  }
}

void steps_6_to_8(DualOrder& order, DualShape shape) {
  const int outward = shape.half - shape.place - 1;
  const int passes = 2 * (shape.place + 1);
  for (int i = 0; i < passes; ++i) {
    const int chunk = i % 2 == 0 ? 1 : 0;
    if (i < passes / 2) {
      order.backward(chunk);
    } else {
      order.input(chunk);
    }
  }
  for (int i = 0; i < outward; ++i) {
    order.weight();
    order.input(0);
  }
  for (int i = 0; i < shape.place + 1; ++i) order.weight();
}

std::vector<Slot> dual_order(DualOrder order, DualShape shape) {
  steps_1_to_3(order, shape);
  steps_4_and_5(order, shape);
  steps_6_to_8(order, shape);
  return order.take_slots();
}

}  // namespace

std::optional<std::string> dualpipe_refuses(PipelineShape shape) {
  if (shape.stages % 2 != 0) return "needs an even number of stages (pp)";
  if (shape.microbatches % 2 != 0) return "needs an even number of microbatches (ga)";
  if (shape.microbatches >= 2 * shape.stages) return std::nullopt;
  return "needs at least 2 microbatches per stage, " + std::to_string(2 * shape.stages) + ", not " +
         std::to_string(shape.microbatches) + " (ga)";
}

std::vector<Slot> dualpipe_order(PipelineShape shape, int stage) {
  const int from_the_end = shape.stages - 1 - stage;
  const int near = stage < from_the_end ? 0 : 1;
  return dual_order(DualOrder(near, shape.microbatches / 2, shape.microbatches / 2),
                    {.half = shape.stages / 2,
                     .place = std::min(stage, from_the_end),
                     .microbatches = shape.microbatches / 2});
}

std::optional<std::string> dualpipe_v_refuses(PipelineShape shape) {
  if (shape.microbatches >= 2 * shape.stages) return std::nullopt;
  return "needs at least 2 microbatches per stage, " + std::to_string(2 * shape.stages) + ", not " +
         std::to_string(shape.microbatches) + " (ga)";
}

std::vector<Slot> dualpipe_v_order(PipelineShape shape, int stage) {
  return dual_order(DualOrder(0, 0, shape.microbatches),
                    {.half = shape.stages, .place = stage, .microbatches = shape.microbatches});
}

}  // namespace shardwise::schedules
