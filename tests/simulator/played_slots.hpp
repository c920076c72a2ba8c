// Small steps played for tests: a pipeline schedule with equal stages, or a graph as it is.
#pragma once

#include <string_view>
#include <utility>
#include <variant>

#include "catalog/require.hpp"
#include "simulator/step/engine.hpp"
#include "simulator/step/played_step.hpp"
#include "tests/simulator/lower_slots.hpp"

namespace shardwise {

inline PlayedStep played(TaskGraph graph) {
  RunOutcome outcome = run(graph);
  require(std::holds_alternative<Timeline>(outcome), "the graph runs to its end");
  Timeline timeline = std::get<Timeline>(std::move(outcome));
  return {{std::move(graph), 1}, std::move(timeline)};
}

// Times of one chunk in picoseconds: forward, backward for inputs, backward for weights.
inline PlayedStep played_slots(std::string_view schedule, PipelineShape shape, int forward,
                               int input, int weight) {
  const PipelineSchedule* row = find_pipeline_schedule(schedule);
  require(row != nullptr && !refusal(*row, shape), "a schedule that runs the shape");
  const auto ps = [](int n) { return Seconds(n * 1e-12); };
  TaskGraph graph;
  SlotLowering(*row, shape).add_to(graph, {ps(forward), ps(input), ps(weight), std::nullopt});
  return played(std::move(graph));
}

}  // namespace shardwise
