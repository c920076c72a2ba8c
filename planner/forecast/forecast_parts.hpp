// The parts that forecast() puts together; split so that each reads on one screen.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/memory/memory_play.hpp"
#include "simulator/model_partition.hpp"

namespace shardwise {

// Everything that time and memory share, built once per question.
struct ForecastContext {
  const Question& question;
  const Profile& profile;
  const PipelineSchedule& schedule;
  RecomputePolicy policy;
  std::shared_ptr<const ModelPartition> kept_partition;  // may outlive the question
  const ModelPartition& partition;                       // the same
  CostModel cost;
};

// Whether a stage whose tensors fit runs through with so much room for them and what is cached.
struct RoomTried {
  int stage = 0;  // of MemoryPlays::same_as
  Bytes room;
  bool enough = false;
};

// The least memory in which a stage's play ends, found on a card with `asked_of` bytes for tensors:
// the way to it depends on whether they fit there.
struct LeastRoom {
  Bytes asked_of;
  Bytes least;
};

// Where a card that begins with `from` bytes for tensors, and grows by whatever a stage's play
// misses, ends. What the GPU really has plays no part in it.
struct RoomRaised {
  int stage = 0;  // of MemoryPlays::same_as
  Bytes from, to;
  bool enough = false;  // a card with `to` from the start does not grow (StageMemory::kept_all)
  bool ended = false;   // there by PlayVariation::raised_enough: it may have grown further
};

// What the allocation streams depend on beside workload and plan, and what came of them.
struct MemoryPlays {
  Bytes workspace;
  int workspaces = 0;
  std::shared_ptr<const ModelPartition> partition;  // whose layers were played,
  DType compute = DType::bf16;                      // and the format of its kernels
  std::vector<StageMemory> stages;
  std::vector<int> same_as;  // by stage: the first one whose play is the same on the same card
  // By stage, where it was asked for: what tensors must have room in, found on a GPU that has no
  // more than what is allocated at the peak and grows by whatever it misses.
  std::vector<std::optional<LeastRoom>> least_rooms;
  std::vector<RoomTried> tried;    // in the forecasts so far
  std::vector<RoomRaised> raised;  // likewise, on the way to least_rooms
};

struct KnownCosts {
  const CollectiveModel* collectives = nullptr;
  const std::deque<LayerDefinition>* layers = nullptr;
  const LayerTimes* times = nullptr;  // of those layers
};

// The forecast under a policy, whatever the plan's text calls it. REQUIRES a legal plan, and chosen
// blocks where the policy's row is searched (else nothing runs again). A problem only of time.
Result<Forecast> forecast_under(const Question& question, const Profile& profile,
                                const RecomputePolicy& policy, const ForecastOptions& options);

// False where the step is longer than the simulated clock can count.
[[nodiscard]] bool forecast_time(const ForecastContext& context, const ForecastOptions& options,
                                 Forecast& forecast);
void forecast_memory(const ForecastContext& context, const ForecastOptions& options,
                     Forecast& forecast);

// The group of equal GPUs with the least memory among those that play `stage`.
const NodeGroup& smallest_group(const Cluster& cluster, const ParallelPlan& plan, int stage);

}  // namespace shardwise
