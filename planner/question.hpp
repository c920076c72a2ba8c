// A question with nothing left open: this work, laid out so, on that cluster.
#pragma once

#include "catalog/cluster.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

struct Question {
  Workload workload;
  ParallelPlan plan;
  Cluster cluster;
};

}  // namespace shardwise
