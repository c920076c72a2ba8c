// SearchKnown: what a search finds out of its sites whatever is wished for, handed on to the next
// one where several follow each other: bounds of layers, pipelines, slots, times of collectives.
//
// A search that asks for less, or for more, bounds the same sets again; nothing here depends on the
// wish, so no answer does either.
#pragma once

#include <memory>
#include <vector>

#include "planner/search/known_layers.hpp"
#include "planner/search/pipeline_sketch.hpp"
#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_search.hpp"

namespace shardwise {

// Safe to use from several threads. `sites` outlive it.
struct SearchKnown {
  SearchKnown(const std::vector<const SearchSite*>& sites, const Profile& profile) {
    collectives.reserve(sites.size());
    for (const SearchSite* s : sites) {
      collectives.emplace_back(s->cluster, profile.links);
      collectives.back().remember();
    }
  }

  std::vector<CollectiveModel> collectives;  // of each site
  InFlightCounts counts;
  KnownSlots slots;
  KnownPipelines pipelines;
  KnownLayers layers;
};

}  // namespace shardwise
