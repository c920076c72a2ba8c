// A graph of tasks run to its end, and times in the clock's own unit.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "catalog/require.hpp"
#include "simulator/step/engine.hpp"

namespace shardwise {

inline Seconds ps(std::int64_t picoseconds) {
  return Seconds(static_cast<double>(picoseconds) * 1e-12);
}

inline Timeline play(const TaskGraph& graph) {
  RunOutcome outcome = run(graph);
  require(std::holds_alternative<Timeline>(outcome), "the graph runs to its end");
  return std::get<Timeline>(std::move(outcome));
}

}  // namespace shardwise
