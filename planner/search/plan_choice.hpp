// Plan choice: the plan that `fit` answers with for one method on one cluster.
//
//   1. every layout of plan_layouts, with and without recomputation, is forecast for memory alone
//      with one sequence per microbatch, then 2, 4, ... as long as it fits
//   2. what fits is forecast for time; the fastest wins, where a tight plan counts twice its time
//   3. where nothing fits the sequences are shared by two GPUs, by four, ... (context parallelism),
//      as long as each keeps 2,048 tokens
//   4. where nothing that keeps all cards at work fits with room to spare: tensor parallelism over
//      other links than NVLink, in the same race (2)
//   5. where nothing fits and host RAM was stated, the first two with offloading
//   6. where still nothing fits and a framework was named: the same with plans that its launch
//      target cannot be told, which until then are left out
//   7. where still nothing fits: the plan that misses by least, without offloading. A step of it
//      that is too long to be forecast has no time
//
// Layouts whose model states alone exceed the GPU are not forecast: that bound is proven.
#pragma once

#include "planner/forecast/forecast.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/lent_plays.hpp"

namespace shardwise {

struct ChosenPlan {
  Question question;
  Forecast forecast;
  Verdict verdict = Verdict::does_not_fit;
  std::vector<std::string> notes;
  int considered = 0;  // plans forecast or ruled out by their model states (Looked)
  // Where one fits: of those that were looked at and do not, whose tensors would; the allocator's
  // blocks do not.
  std::vector<ParallelPlan> fragmented = {};
};

// Whether a tight plan may displace one with room to spare.
enum class Room { weighed, demanded };

// Whether all plans are looked at and counted, or only those that may be chosen or told of: the
// answer is the same but for their number (plan_climb.hpp). `fitting` is for those who ask for a
// plan that fits: as `decisive`, but where none does that is a problem, and nobody looks which is
// the nearest.
enum class Looked { decisive, all, fitting };

// Problems where no plan is legal at all: a batch that divides over nothing, an asked plan that
// does not multiply out; and where all that fit have steps too long to be forecast. With `only`,
// plans that this target cannot be told are not looked at. `lent`: of choices that answer the same
// question for other cards; the answer is the same without.
Result<ChosenPlan> choose_plan(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, Room room = Room::weighed,
                               const LaunchTarget* only = nullptr, Looked looked = Looked::decisive,
                               LentPlays* lent = nullptr);

}  // namespace shardwise
