#include "planner/search/search_known.hpp"

#include <algorithm>

namespace shardwise {

SearchKnown::SearchKnown(const std::vector<const SearchSite*>& sites, const Profile& profile)
    : profile_(&profile) {
  collectives.reserve(sites.size());
  for (const SearchSite* s : sites) {
    site_ids_.push_back(s->id);
    collectives.emplace_back(s->cluster, profile.links);
    collectives.back().remember();
  }
}

bool SearchKnown::is_of(const std::vector<const SearchSite*>& sites, const Profile& profile) const {
  return profile_ == &profile &&
         std::equal(sites.begin(), sites.end(), site_ids_.begin(), site_ids_.end(),
                    [](const SearchSite* s, std::uint64_t id) { return s->id == id; });
}

std::shared_ptr<SearchKnown> known_on(const std::vector<const SearchSite*>& sites,
                                      const Profile& profile,
                                      const std::shared_ptr<SearchKnown>& known) {
  if (known && known->is_of(sites, profile)) return known;
  return std::make_shared<SearchKnown>(sites, profile);
}

}  // namespace shardwise
