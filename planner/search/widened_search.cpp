#include "planner/search/widened_search.hpp"

#include "planner/search/search_known.hpp"

namespace shardwise {

SearchResult widened_search(const std::vector<const SearchSite*>& sites, const Profile& profile,
                            SearchWish& search) {
  const bool tight_wanted = search.allow_tight;
  search.known = known_on(sites, profile, search.known);
  for (;;) {
    SearchResult found = search_plans(sites, profile, search);
    if (!found.best.empty()) return found;
    if (!search.allow_tight && !found.refused_all) {
      search.allow_tight = true;
    } else if (search.refused) {
      search.refused = nullptr;
      search.allow_tight = tight_wanted;
    } else {
      return found;
    }
  }
}

}  // namespace shardwise
