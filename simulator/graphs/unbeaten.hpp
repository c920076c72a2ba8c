// The Pareto rule for choices with `kept` (bytes) and `time`: less of both is better.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace shardwise {

// Leaves the choices that no other beats: by time, rising, each with fewer bytes kept than all
// before it. `less` orders by time, then bytes, then whatever makes the order total.
template <class Choice, class Less>
void keep_unbeaten(std::vector<Choice>& choices, Less less) {
  std::sort(choices.begin(), choices.end(), less);
  std::size_t left = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (left > 0 && choices[i].kept >= choices[left - 1].kept) continue;
    if (left != i) choices[left] = std::move(choices[i]);
    ++left;
  }
  choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(left), choices.end());
}

}  // namespace shardwise
