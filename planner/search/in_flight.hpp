// How many microbatches a stage has in flight when it holds most of them: what bounds of a plan's
// memory count (plan_bounds.hpp).
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "simulator/parallel_plan.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// The most microbatch-chunks that have been forward and not yet back.
int awaiting_backward(std::span<const Slot> slots);

// How many microbatches of each of its chunks a stage holds when it holds most of them, in the play
// of its memory: at all, and once it has gradients of all its layers.
struct InFlightMost {
  std::vector<int> at_all, with_gradients;
};

// Remembered, and safe to ask from several threads.
class InFlightCounts {
 public:
  const InFlightMost& of(const Workload& workload, const ParallelPlan& plan, int stage);

 private:
  // All that slots_of_step() goes by.
  using Key = std::tuple<const PipelineSchedule*, GradientLife, GradientCopyLife,
                         std::array<bool, 2>, int, int, int, int>;
  std::mutex mutex_;
  std::map<Key, InFlightMost> known_;
};

}  // namespace shardwise
