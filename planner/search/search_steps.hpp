// SearchSteps: what refining an entry of a plan search leads to, stage by stage (plan_search.hpp).
//
// What comes of an entry depends on nothing but the entry and its limits; so entries may be refined
// in any order and side by side.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_search.hpp"
#include "planner/search/search_entry.hpp"
#include "planner/search/search_known.hpp"

namespace shardwise {

// What is of no use any more, as far as the search knows when it comes to an entry.
struct SearchLimits {
  std::optional<Seconds> within;  // a single plan's step that takes longer need not be played on
  std::optional<Bytes> room;      // plans that need more memory are dropped
  bool fit_first = false;         // a single plan's memory is forecast before its step

  friend bool operator==(const SearchLimits&, const SearchLimits&) = default;
};

// Safe to ask from several threads.
class SearchSteps {
 public:
  // All arguments outlive it.
  SearchSteps(const std::vector<const SearchSite*>& sites, const Profile& profile,
              const SearchWish& wish);

  // A set of plans: everything up to the microbatch, with the least that recomputation can add.
  void begin(std::size_t site, const PlanPoint& point, Refined& to);
  // REQUIRES an entry that is not complete.
  void refine(const SearchEntry& entry, const SearchLimits& limits, Refined& to);
  // From now on, beside what the wish refuses. REQUIRES that nobody refines meanwhile.
  void refuse_also(PlanRefusal refusal);
  // Whether a single plan is, by what was told since.
  bool refused_since(const SearchEntry& entry) const;
  // REQUIRES a complete entry.
  FoundPlan found(const SearchEntry& entry) const;

  const std::shared_ptr<SearchKnown>& known() const { return known_; }

  static Bytes capacity(const SearchSite& site);  // of the largest GPU
  // Whether a plan would fit that holds so many times its bound of memory.
  bool would_fit(const SearchEntry& entry, double rise) const;

 private:
  class RefusedVariants;

  // Questions of which only the plan changes, lent to whoever asks: a workload is long to copy.
  class QuestionPool {
   public:
    std::unique_ptr<Question> take(const SearchSite& site, const Workload& workload);
    void give_back(const Workload& workload, std::unique_ptr<Question> question);

   private:
    std::mutex mutex_;
    std::map<const Workload*, std::vector<std::unique_ptr<Question>>> free_;
  };

  const CollectiveModel& collectives(const SearchSite& site) const;
  BoundSite bound_site(const SearchSite& site, const ParallelPlan& plan) const;
  Bytes room_for(const SearchSite& site, const ParallelPlan& plan,
                 const SearchLimits& limits) const;
  void add_set(SearchEntry entry, const std::string& recompute, SearchStage stage,
               const SearchLimits& limits, Refined& to);
  void put(SearchEntry entry, SearchStage stage, Refined& to) const;
  void refine_layers(const SearchEntry& entry, const SearchLimits& limits, Refined& to);
  void refine_recompute(const SearchEntry& entry, const SearchLimits& limits, Refined& to);
  bool refuses_all(const SearchSite& site, const PlanPoint& point,
                   const std::vector<PipelineSketch>& pipelines);
  void refine_streams(const SearchEntry& entry, Refined& to) const;
  void refine_pipelines(const SearchEntry& entry, const SearchLimits& limits, Refined& to);
  std::shared_ptr<const VariantList> variants_of(const SearchEntry& entry,
                                                 const SearchLimits& limits);
  void refine_variants(const SearchEntry& entry, const SearchLimits& limits, Refined& to);
  using TimeBound = Seconds (*)(const BoundSite&, const LayerBounds&, const ParallelPlan&,
                                KnownSlots&);
  void refine_plan(const SearchEntry& entry, TimeBound bound, SearchStage next, Refined& to);
  void forecast_plan(const SearchEntry& entry, const SearchLimits& limits, Refined& to) const;
  void forecast_fit(const SearchEntry& entry, const SearchLimits& limits, Refined& to) const;
  void forecast_step(const SearchEntry& entry, const SearchLimits& limits, Refined& to) const;

  const std::vector<const SearchSite*>& sites_;
  const Profile& profile_;
  const SearchWish& wish_;
  PlanRefusal refused_, refused_since_;
  QuestionPool questions_;
  std::shared_ptr<SearchKnown> known_;
};

}  // namespace shardwise
