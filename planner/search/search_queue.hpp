// SearchQueue: the entries of a plan search by their order, of which only the first are sorted.
//
// Most entries are worse than what is found and never come to the front. So those above a limit lie
// in no order, until those below it have run out and the best eighth of them is sorted in.
#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "planner/search/search_entry.hpp"

namespace shardwise {

class SearchQueue {
 public:
  using Place = std::set<SearchEntry>::const_iterator;

  bool empty() const { return near_.empty() && far_.empty(); }
  void insert(SearchEntry entry) {
    if (entry.value <= limit_)
      near_.insert(std::move(entry));
    else
      far_.push_back(std::move(entry));
  }

  Place begin() {
    if (near_.empty()) bring_near();
    return near_.begin();
  }
  Place end() const { return near_.end(); }
  Place after(Place at) {
    if (std::next(at) == near_.end()) bring_near();
    return std::next(at);
  }
  void erase(Place at) { near_.erase(at); }
  SearchEntry extract(Place at) { return std::move(near_.extract(at).value()); }

  // In any order.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const SearchEntry& e : near_) visit(e);
    for (const SearchEntry& e : far_) visit(e);
  }
  template <class Which>
  void erase_if(const Which& which) {
    std::erase_if(near_, which);
    std::erase_if(far_, which);
  }

 private:
  void bring_near() {
    if (far_.empty()) return;
    std::vector<double> values;
    values.reserve(far_.size());
    for (const SearchEntry& e : far_) values.push_back(e.value);
    const auto last = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 8);
    std::nth_element(values.begin(), last, values.end());
    limit_ = *last;
    const auto kept = std::partition(far_.begin(), far_.end(),
                                     [&](const SearchEntry& e) { return e.value > limit_; });
    for (auto e = kept; e != far_.end(); ++e) near_.insert(std::move(*e));
    far_.erase(kept, far_.end());
  }

  std::set<SearchEntry> near_;    // all that are no worse than the limit
  std::vector<SearchEntry> far_;  // the others
  double limit_ = -std::numeric_limits<double>::infinity();
};

}  // namespace shardwise
