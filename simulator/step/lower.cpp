#include "simulator/step/lower.hpp"

#include <vector>

#include "catalog/require.hpp"
#include "simulator/step/step_builder.hpp"
#include "simulator/step/step_lowering.hpp"

namespace shardwise {
namespace {

class GraphLowering {
  using Lowering = StepLowering<StepBuilder>;
  using Table = std::vector<std::vector<PassEnds<TaskSet>>>;  // [model chunk][microbatch]

 public:
  GraphLowering(const ParallelPlan& plan, const PipelineSchedule& schedule, const StepCosts& costs,
                bool unfold, const StepTraffic* traffic, const Variation* variation)
      : plan_(rounds_of(plan, costs)),
        schedule_(schedule),
        builder_(plan_, costs, unfold, traffic, variation),
        lowering_(plan_, schedule, costs, builder_),
        forward_(table()),
        backward_(table()) {}

  LoweredStep run() {
    for (int stage = 0; stage < plan_.pipeline; ++stage) lower_stage(stage);
    link_stages();
    lowering_.finish(ends_);
    const int replicas = builder_.replicas();
    return {builder_.take(), replicas};
  }

 private:
  Table table() const {
    const auto microbatches = static_cast<std::size_t>(plan_.microbatches);
    return Table(static_cast<std::size_t>(lowering_.model_chunks()),
                 std::vector<PassEnds<TaskSet>>(microbatches));
  }

  void lower_stage(int stage) {
    const PipelineShape shape{plan_.pipeline, plan_.chunks, plan_.microbatches};
    Lowering::Cursor at;
    at.stage = stage;
    for (const Slot& slot : schedule_.order(shape, stage)) {
      const auto c = static_cast<std::size_t>(schedule_.model_chunk(shape, stage, slot.chunk));
      Table& table = slot.pass == Pass::forward ? forward_ : backward_;
      lowering_.lower_slot(at, slot, table[c][static_cast<std::size_t>(slot.microbatch)]);
    }
    ends_.push_back(std::move(at));
  }

  // Transfers wait for the pass that makes what they carry.
  void link_stages() {
    for (std::size_t c = 0; c < forward_.size(); ++c)
      for (std::size_t m = 0; m < forward_[c].size(); ++m) {
        const auto& f = forward_[c][m];
        const auto& b = backward_[c][m];
        if (!f.transfer.empty()) builder_.link(forward_[c - 1][m].done, f.transfer);
        if (!b.transfer.empty()) builder_.link(backward_[c + 1][m].done, b.transfer);
      }
  }

  const ParallelPlan plan_;
  const PipelineSchedule& schedule_;
  StepBuilder builder_;
  Lowering lowering_;
  Table forward_, backward_;
  std::vector<Lowering::Cursor> ends_;
};

}  // namespace

ParallelPlan rounds_of(ParallelPlan plan, const StepCosts& costs) {
  plan.microbatches = costs.rounds.value_or(plan.microbatches);
  return plan;
}

LoweredStep lower(const ParallelPlan& plan, const PipelineSchedule& schedule,
                  const StepCosts& costs, bool unfold, const StepTraffic* traffic,
                  const Variation* variation) {
  require(static_cast<int>(costs.stages.size()) == plan.pipeline, "costs for every stage");
  return GraphLowering(plan, schedule, costs, unfold, traffic, variation).run();
}

}  // namespace shardwise
