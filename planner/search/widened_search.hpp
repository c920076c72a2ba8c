// A search that asks for less where nothing fits.
#pragma once

#include <vector>

#include "planner/search/plan_search.hpp"

namespace shardwise {

// Where nothing fits: plans that leave less room, and at last those that are refused. What was
// given up for it stays so in `search`: `allow_tight` is set, `refused` is empty. So does what was
// found out of the sites, for searches that follow.
SearchResult widened_search(const std::vector<const SearchSite*>& sites, const Profile& profile,
                            SearchWish& search);

}  // namespace shardwise
