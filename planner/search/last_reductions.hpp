// LastReductions: when the gradients of a step can be reduced at the earliest.
//
// A framework that reduces once a step does so in the backward slots of the last microbatch, chunk
// by chunk, on one stream. Before the first of these slots a stage has run all slots that come
// before it in its schedule, and behind it all those reductions are still to come. With W_k what
// the slots before the k-th of them take and R_k its reductions, a step takes at least
//
//   max over k of  W_k + R_k + R_{k+1} + ...
//
// after the stage's first slot can begin. Counted once for all plans of the same pipeline.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "simulator/parallel_plan.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {

// How many passes of each kind a stage has run through one of its chunks; a slot that goes backward
// for inputs and weights in one counts as both.
struct PassesRun {
  double forward = 0, input = 0, weight = 0;
};

struct ReductionSlot {
  int chunk = 0;                  // whose gradients are reduced in it, and after it
  std::vector<PassesRun> before;  // by chunk
};

// [stage][slot of the last microbatch in which gradients are reduced], in order.
using ReductionSlots = std::vector<std::vector<ReductionSlot>>;

// Remembered; safe to ask from several threads.
class LastReductions {
 public:
  std::shared_ptr<const ReductionSlots> of(const ParallelPlan& plan);

 private:
  using Key = std::tuple<const PipelineSchedule*, int, int, int>;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const ReductionSlots>> known_;
};

}  // namespace shardwise
