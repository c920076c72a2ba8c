// Which rows of the fitted 80 % intervals (catalog/spread.hpp) a question is told by.
#pragma once

#include "catalog/spread.hpp"
#include "planner/question.hpp"

namespace shardwise {

SpreadKey spread_key(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster);
SpreadKey spread_key(const Question& question);

}  // namespace shardwise
