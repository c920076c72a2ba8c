// StepRecord: a steady training step in full: every task with its times, what each stage holds over
// the step, and which links carry what when. For drawings, traces and accounts by rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/network/collective_use.hpp"
#include "simulator/step/link_occupancy.hpp"
#include "simulator/step/memory_timeline.hpp"
#include "simulator/step/played_step.hpp"

namespace shardwise {

struct ForecastContext;
struct StepCosts;

struct StepRecord {
  PlayedStep step;
  std::vector<MemoryTimeline> memory;                   // by stage
  std::vector<LinkOccupancy> links;                     // by stage, then by name
  std::vector<std::vector<CollectiveUse>> collectives;  // by stage; of each of its ranks
};

std::shared_ptr<const StepRecord> record_step(const ForecastContext& context,
                                              const StepCosts& costs, PlayedStep step);

}  // namespace shardwise
