#include "planner/search/stages_together.hpp"

#include <utility>

#include "catalog/require.hpp"
#include "planner/search/two_lanes.hpp"

namespace shardwise {
namespace {

constexpr Seconds not_yet(-1);

// When a pass of each microbatch through each model chunk is done.
class Ends {
 public:
  Ends(std::size_t chunks, int microbatches)
      : microbatches_(static_cast<std::size_t>(microbatches)),
        ends_(chunks * microbatches_, not_yet) {}
  Seconds& at(int chunk, int microbatch) {
    return ends_[static_cast<std::size_t>(chunk) * microbatches_ +
                 static_cast<std::size_t>(microbatch)];
  }

 private:
  std::size_t microbatches_;
  std::vector<Seconds> ends_;
};

class Stages {
 public:
  Stages(const std::vector<KnownSlots::List>& slots, PipelineShape shape, const StepCosts& costs,
         const std::vector<std::vector<ChunkInputs>>& inputs)
      : slots_(slots),
        inputs_(inputs),
        last_(shape.stages * shape.chunks_per_stage - 1),
        forward_(static_cast<std::size_t>(last_) + 1, shape.microbatches),
        backward_(static_cast<std::size_t>(last_) + 1, shape.microbatches),
        next_(slots.size()) {
    const bool host_bound = costs.is_host_bound();
    for (std::size_t s = 0; s < slots.size(); ++s) {
      lanes_.emplace_back(costs.stages[costs.alike[s]], costs, shape.microbatches, host_bound);
      left_ += slots[s]->size();
    }
  }

  std::vector<StageEnd> run() {
    while (left_ > 0) {
      const std::size_t before = left_;
      for (std::size_t s = 0; s < slots_.size(); ++s) go_on(s);
      require(left_ < before, "a legal schedule does not deadlock");
    }
    std::vector<StageEnd> ends;
    ends.reserve(lanes_.size());
    for (const StageLanes& stage : lanes_) ends.push_back(stage.end());
    return ends;
  }

 private:
  // A stage's slots, until one has no input yet.
  void go_on(std::size_t s) {
    const std::vector<Slot>& slots = *slots_[s];
    for (; next_[s] < slots.size(); ++next_[s], --left_) {
      const Slot& slot = slots[next_[s]];
      const ChunkInputs& from = inputs_[s][static_cast<std::size_t>(slot.chunk)];
      const int c = from.model_chunk;
      const bool forward = slot.pass == Pass::forward;
      Seconds input;
      if (forward ? c > 0 : c < last_ && slot.pass != Pass::backward_weight) {
        const Seconds done =
            forward ? forward_.at(c - 1, slot.microbatch) : backward_.at(c + 1, slot.microbatch);
        if (done == not_yet) return;
        input = done + (forward ? from.sent_forward : from.sent_backward);
      }
      lanes_[s].run(slot, input, from.arrival);
      if (slot.pass != Pass::backward_weight)
        (forward ? forward_ : backward_).at(c, slot.microbatch) = lanes_[s].end().compute;
    }
  }

  const std::vector<KnownSlots::List>& slots_;
  const std::vector<std::vector<ChunkInputs>>& inputs_;
  int last_;  // model chunk
  Ends forward_, backward_;
  std::vector<std::size_t> next_;  // slot of each stage
  std::vector<StageLanes> lanes_;
  std::size_t left_ = 0;
};

}  // namespace

std::vector<StageEnd> stages_together(const std::vector<KnownSlots::List>& slots,
                                      PipelineShape shape, const StepCosts& costs,
                                      const std::vector<std::vector<ChunkInputs>>& inputs) {
  return Stages(slots, shape, costs, inputs).run();
}

}  // namespace shardwise
