// Plan climbs: the microbatch of a layout under one recomputation policy, raised while it fits.
//
// What may be chosen of a climb are the smallest microbatch, whose tensors may stay in a cache, and
// the largest of each verdict: a tight one may save half the time of those with room to spare. Of a
// pipeline every one that fits: smaller, less bubble.
//
// A step costs much less to forecast than memory, and a bound of it still less. So where not all
// plans have to be looked at (Looked), every microbatch of every climb is bounded first,
// and the climbs go on in the order of the fastest step that each may still come to: where that is
// a bound the step is forecast, else the climb's next plan is played. Once a plan fits with room to
// spare, a climb whose steps are all longer can neither give the plan that is chosen nor one that a
// note tells of: a tight plan counts twice its time (fastest_plan.hpp), and only faster ones are
// told of beside it. So the answer is that of looking at all.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/plan_trial.hpp"

namespace shardwise {

// The microbatches to try for a layout, rising.
std::vector<int> microbatch_sizes(const PlanTrial& s, const ParallelPlan& layout);

class PlanClimb {
 public:
  // `plan`: all but its microbatches.
  PlanClimb(const PlanTrial& s, const ParallelPlan& plan);

  // Those of the microbatches that it may come to.
  std::size_t sizes() const { return steps_.size(); }
  // Bounds the step with one of them.
  void bound(std::size_t size);

  bool done() const { return done_; }
  // Tries the next size. REQUIRES that it is not done.
  void look();
  // Times the fastest of what may still come of it, or looks where that has been. REQUIRES that it
  // is not done.
  void advance();
  // No plan that may still come of it is faster. REQUIRES that it is not done.
  Seconds least_left() const { return steps_[fastest_left()].least; }
  // The fastest that fits with room to spare, of those that have come of it and were timed.
  std::optional<Seconds> fits_in() const { return fits_in_; }
  PlanTrial take() { return std::move(found_); }

 private:
  struct Waiting {
    Tried tried;
    std::size_t size;
  };

  // What is known of a size's step. It cannot be forecast without memory where what the optimizer
  // pages depends on that, nor where its layers are searched for: then it takes what the same plan
  // takes that runs nothing again, or more.
  struct Step {
    Seconds least{0};
    bool alone = true;   // it can be
    bool timed = false;  // it is just that
  };

  std::size_t fastest_left() const;
  void time(std::size_t size);
  void time_searched(const Tried& tried, Step& step) const;
  ParallelPlan with_size(std::size_t size) const;
  std::optional<int> size_at_once() const;
  void try_at_once();
  void keep(Waiting one);
  void end();

  ParallelPlan plan_;
  PlanTrial found_;
  std::vector<int> sizes_;
  std::optional<int> at_once_;      // to be tried if the first of them does not fit
  std::vector<Step> steps_;         // by size; behind them that of at_once_, if it is none of them
  std::size_t next_ = 0;            // of sizes_
  std::optional<Waiting> waiting_;  // to be kept unless the next one is as good
  std::optional<Seconds> fits_in_;
  bool done_ = false;
};

// The climbs to the end, one beside the other. What they find joins `s` in their order.
void climb_all(PlanTrial& s, std::vector<PlanClimb> climbs);

// Until the plan that is chosen is among those that were found, and those that are told of.
void climb_until_decided(const std::vector<PlanClimb*>& climbs);

}  // namespace shardwise
