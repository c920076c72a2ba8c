// SearchSteps: what refining an entry of a plan search leads to, stage by stage (plan_search.hpp).
//
// What comes of an entry depends on nothing but the entry, and for a single plan on how long the
// best that are known take; so entries may be refined in any order and side by side.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/known_layers.hpp"
#include "planner/search/pipeline_sketch.hpp"
#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_search.hpp"
#include "planner/search/search_entry.hpp"

namespace shardwise {

// Safe to ask from several threads.
class SearchSteps {
 public:
  // All arguments outlive it.
  SearchSteps(const std::vector<const SearchSite*>& sites, const Profile& profile,
              const SearchWish& wish);

  // A set of plans: everything up to the microbatch, with the least that recomputation can add.
  void begin(std::size_t site, const PlanPoint& point, Refined& to);
  // REQUIRES an entry that is not complete. `best_known`: a step that takes longer need not be
  // played to its end; it is asked for single plans only.
  void refine(const SearchEntry& entry, std::optional<Seconds> best_known, Refined& to);
  // REQUIRES a complete entry.
  FoundPlan found(const SearchEntry& entry) const;

  static Bytes capacity(const SearchSite& site);  // of the largest GPU

 private:
  const CollectiveModel& collectives(const SearchSite& site) const;
  BoundSite bound_site(const SearchSite& site, const ParallelPlan& plan) const;
  Bytes room_for(const SearchSite& site, const ParallelPlan& plan) const;
  bool may_fit(const SearchSite& site, const ParallelPlan& plan, Bytes memory) const;
  void add_set(SearchEntry entry, const std::string& recompute, SearchStage stage, Refined& to);
  void put(SearchEntry entry, SearchStage stage, Refined& to) const;
  void refine_layers(const SearchEntry& entry, Refined& to);
  void refine_recompute(const SearchEntry& entry, Refined& to);
  void refine_pipelines(const SearchEntry& entry, Refined& to);
  std::shared_ptr<const VariantList> variants_of(const SearchEntry& entry);
  void refine_variants(const SearchEntry& entry, Refined& to);
  void refine_laid(const SearchEntry& entry, Refined& to);
  void refine_plan(const SearchEntry& entry, std::optional<Seconds> best_known, Refined& to) const;

  const std::vector<const SearchSite*>& sites_;
  const Profile& profile_;
  const SearchWish& wish_;
  std::vector<CollectiveModel> collectives_;  // of each site
  InFlightCounts counts_;
  LastReductions reductions_;
  KnownPipelines pipelines_;
  KnownLayers layers_;
};

}  // namespace shardwise
