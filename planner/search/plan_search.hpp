// Plan search: the best plans of whole plan spaces, exactly, by best-first branch and bound.
//
// A queue holds sets of plans and single plans, each with a bound of its value that is proven
// (plan_bounds.hpp), smallest first. What comes out on top is refined by one step and put back:
//
//   layers     plans that share all but recomputation, stages and data ranks: mean work per GPU
//   recompute  the same with one recomputation policy
//   streams    so many stages and data ranks, and one shard group: states, traffic of gradients and
//              weights
//   pipelines  the same, laid over the stages in each way: bubble, activations in flight
//              (pipeline_sketch.hpp)
//   variants   those ways, the next of them at a time
//   laid       one plan: bubble, activations in flight, of its own layers
//   plan       its own costs, stage by stage
//   together   the same, all stages' slots run together (stages_together.hpp)
//   cut        the step was played until it took longer than the best that are known
//   half       one of the two forecasts is made: the step, or first the memory where the objective
//              asks for it or the bound says that it will hardly fit
//   complete   the other one as well
//
// A complete plan on top is better than all that is left, since nothing below it can become
// smaller; it is the next in rank. Ties are ranked by time, cluster, then the plan's index; a set
// that could still hold an equal plan is refined before a complete plan is taken. Sets that no plan
// can fit in memory, by the bound of memory, are dropped. So the answer equals that of forecasting
// every plan, and the proof says what became of each of them.
//
// A fixed number of entries is refined side by side, whatever the number of cores: the same plans
// are forecast and the same bytes come out on any machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "planner/search/objective.hpp"
#include "planner/search/plan_space.hpp"

namespace shardwise {

// One cluster to search on. Never copied: the space points into it.
struct SearchSite {
  SearchSite(const ResolvedRequest& request, Method method, const Cluster& cluster);
  SearchSite(const SearchSite&) = delete;
  SearchSite& operator=(const SearchSite&) = delete;

  std::uint64_t id;  // no other site of the process has it, nor one that comes to lie where it lay
  Cluster cluster;
  Workload without_zero, with_zero;
  std::vector<std::string> notes;
  PlanSpace space;
  SiteRates rates;
};

struct SearchResult;
class SearchKnown;  // search_known.hpp

// Why a framework cannot be told a plan; nothing where it can. Empty: any plan.
using PlanRefusal = std::function<std::optional<std::string>(const Question&)>;

struct SearchWish {
  const Objective* objective = nullptr;
  int top = 10;
  double memory_fraction = 1;   // of what a card has, for the expected peak
  bool allow_tight = false;     // also plans whose interval of memory ends above the card
  std::optional<double> below;  // only plans whose value of the objective is less than this
  bool host_ram_stated = false;
  PlanRefusal refused;  // plans that are none of the space
  // Asked once the best are found, if there are any: what is refused of the plan that is sought as
  // well (SearchResult::further). Empty, here or as an answer: no further one is.
  std::function<PlanRefusal(const SearchResult&)> further;
  // Told after each round how many sets of plans were looked at; `waiting` counts those that may
  // still hold a better one, as far as is known.
  std::function<void(std::int64_t looked, const std::function<std::int64_t()>& waiting)> told;
  // Whether there is a plan at all is what is asked: what is refused is left out before it is
  // bounded, and nothing is counted of it.
  bool only_whether = false;
  // Found by searches before. Empty, or of other sites or another profile: nothing is known.
  std::shared_ptr<SearchKnown> known;
};

struct FoundPlan {
  std::size_t site = 0;
  PlanPoint point{};
  ParallelPlan plan;
  Forecast forecast;
  double value = 0;  // of the objective
};

// What became of every legal plan.
struct SearchProof {
  double points = 0;              // of the product of all dimensions
  std::int64_t legal = 0;         // plans
  std::int64_t too_large = 0;     // by the bound of memory, one by one
  std::int64_t refused = 0;       // by the framework, of those looked at
  std::int64_t begun = 0;         // forecast for time or memory
  std::int64_t timed = 0;         // forecast for time
  std::int64_t fitted = 0;        // forecast for memory
  std::int64_t does_not_fit = 0;  // by that forecast
  std::int64_t no_smaller = 0;    // by that forecast; where less memory was sought
  std::int64_t bounded = 0;       // single plans whose bound of value was worse
  std::int64_t in_sets = 0;       // plans in sets whose bound was worse

  SearchProof& operator+=(const SearchProof& other);
};

struct SearchResult {
  std::vector<FoundPlan> best;       // in rank order; fewer where fewer fit
  SearchProof proof;                 // of these
  std::optional<FoundPlan> further;  // the next in rank that is not refused
  // All that fit are refused, those too that leave no room. The proof then ends where that is seen.
  bool refused_all = false;
};

// What plans of a front are compared by. Memory counts by steps: with every byte a front is long,
// nobody wants most of it, and nearly all plans have to be forecast to prove it.
struct ParetoFigures {
  Seconds time;
  std::int64_t free = 0;  // whole steps of memory that the fullest GPU has left
  double usd = 0;         // rent of a step; 0 where nobody rents the GPUs out

  // At least as good in everything.
  bool covers(const ParetoFigures& other) const {
    return time <= other.time && free >= other.free && usd <= other.usd;
  }
};
// A thirty-second of the largest card.
Bytes pareto_step(const std::vector<const SearchSite*>& sites);
ParetoFigures pareto_figures(const SearchSite& site, const Forecast& forecast, Bytes step);

// REQUIRES at least one site. `sites` outlive the call.
SearchResult search_plans(const std::vector<const SearchSite*>& sites, const Profile& profile,
                          const SearchWish& wish);

// The plans that no other covers in time, memory and rent at once, by time; of equal ones the
// first. The wish's objective and `top` do not matter.
SearchResult pareto_front(const std::vector<const SearchSite*>& sites, const Profile& profile,
                          const SearchWish& wish);

// Whether the forecast is what the wish asks for.
bool is_wanted(const Forecast& forecast, const SearchWish& wish);

}  // namespace shardwise
