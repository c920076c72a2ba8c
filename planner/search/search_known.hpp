// SearchKnown: what a search finds out of its sites whatever is wished for, handed on to the next
// one where several follow each other: bounds of layers, pipelines, slots, times of collectives.
//
// A search that asks for less, or for more, bounds the same sets again; nothing here depends on the
// wish, so no answer does either. It does depend on the sites and the profile: a search on others
// leaves it alone (known_on).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/search/known_layers.hpp"
#include "planner/search/pipeline_sketch.hpp"
#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_search.hpp"

namespace shardwise {

// Safe to use from several threads. `sites` and `profile` outlive every search that uses it.
class SearchKnown {
 public:
  SearchKnown(const std::vector<const SearchSite*>& sites, const Profile& profile);

  // Whether it is of these sites, in this order, and of this profile.
  bool is_of(const std::vector<const SearchSite*>& sites, const Profile& profile) const;

  std::vector<CollectiveModel> collectives;  // of each site
  InFlightCounts counts;
  KnownSlots slots;
  KnownPipelines pipelines;
  KnownLayers layers;

 private:
  std::vector<std::uint64_t> site_ids_;
  const Profile* profile_;
};

// `known` where it is of these, or a new one that knows nothing.
std::shared_ptr<SearchKnown> known_on(const std::vector<const SearchSite*>& sites,
                                      const Profile& profile,
                                      const std::shared_ptr<SearchKnown>& known);

}  // namespace shardwise
