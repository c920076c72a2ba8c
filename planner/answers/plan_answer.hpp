// What `plan` answers: the best plans on one cluster, or how the best plan scales over a range of
// cluster sizes, with the proof of what was left out and warnings that save money.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/answers/plan_starts.hpp"
#include "planner/forecast/cost.hpp"
#include "planner/search/plan_search.hpp"

namespace shardwise {

struct PlanWish {
  std::string objective = "time";
  int top = 10;
  double memory_fraction = 1;
  bool allow_tight = false;
  bool pareto = false;
  decltype(SearchWish::told) told;
};
PlanWish plan_wish(const Request& request);

// One size of a range: its best plan, if any fits.
struct ScalingPoint {
  int gpus = 1;
  std::string cluster;  // as spoken
  std::optional<FoundPlan> best;
  std::optional<double> faster;  // than the size before
  PlanStarts starts;             // of the best plan
};

struct PlanAnswer {
  Method method = Method::pretrain;
  const Objective* objective = nullptr;
  ResolvedRequest request;               // of the largest cluster
  std::deque<ResolvedRequest> requests;  // by site
  std::deque<SearchSite> sites;
  SearchResult result;                // over all sites; of a range, the best of each
  std::vector<ScalingPoint> scaling;  // of a range only
  std::vector<FoundPlan> pareto;      // where asked for
  SearchProof pareto_proof;
  Bytes pareto_step;                  // of memory, by which the front's plans differ
  std::vector<std::string> warnings;  // about the first plan
  std::optional<int> stops_paying;    // GPUs beyond which doubling is slower than it should be
  std::vector<std::string> notes;
  // The best plan that a launch target starts: the first, unless nothing starts that. Of one size.
  std::optional<FoundPlan> startable;
};

// "8..1024xH100-SXM" as 8, 16, ... 1024xH100-SXM; one text where there is no "..". Problems where
// the ends do not double into one another.
Result<std::vector<std::string>> cluster_sizes(const std::string& gpus);

// `request.methods` empty: pre-training.
Result<std::unique_ptr<PlanAnswer>> plan_answer(const Request& request, const PlanWish& wish,
                                                const Facts& facts);

// Why the usual framework cannot be told a plan, where nobody asked for a framework and the search
// went beyond it; where no launch files are written for it, that no target can be told it.
std::optional<std::string> beyond_usual(const PlanAnswer& answer, const FoundPlan& found);

// US dollars for a million tokens, where somebody rents these GPUs out.
std::optional<double> usd_per_million_tokens(const SearchSite& site, const Forecast& forecast);

// A doubling that makes a step less than this much faster makes a token a third dearer.
inline constexpr double doubling_pays = 1.5;

}  // namespace shardwise
