#include "catalog/names.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr std::size_t longest_compared = 80;  // beyond it a name is nobody's misspelling

// Edit distance where swapping two neighbours counts as one edit (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

struct Near {
  std::size_t distance;
  std::size_t order;
};

bool separates(char c) { return c == ' ' || c == '_' || c == '-' || c == '\t'; }

}  // namespace

std::string squeezed(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (!separates(c)) out += lower_ascii(c);
  return out;
}

bool same_name(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  for (;;) {
    while (i < a.size() && separates(a[i])) ++i;
    while (j < b.size() && separates(b[j])) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (lower_ascii(a[i++]) != lower_ascii(b[j++])) return false;
  }
}

std::string normalised(std::string_view name) {
  std::string out;
  for (const char c : name) out += separates(c) ? '-' : lower_ascii(c);
  const std::size_t first = out.find_first_not_of('-');
  if (first == std::string::npos) return {};
  return out.substr(first, out.find_last_not_of('-') - first + 1);
}

std::vector<std::string> suggest(std::string_view name,
                                 const std::vector<std::string_view>& candidates) {
  const std::string wanted = normalised(name);
  if (wanted.empty() || wanted.size() > longest_compared) return {};
  std::vector<Near> near;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string candidate = normalised(candidates[i]);
    const bool holds = wanted.size() >= 3
                           ? candidate.find(wanted) != std::string::npos
                           : wanted.size() == 2 && candidate.starts_with(wanted + '-');
    const std::size_t distance = edit_distance(wanted, candidate);
    const std::size_t allowed = std::max<std::size_t>(1, wanted.size() / 3);
    if (holds)
      near.push_back({std::min<std::size_t>(distance, 2), i});
    else if (distance <= allowed)
      near.push_back({distance, i});
  }
  std::stable_sort(near.begin(), near.end(),
                   [](Near a, Near b) { return a.distance < b.distance; });
  std::vector<std::string> out;
  for (const Near& n : near) {
    const std::string found(candidates[n.order]);
    if (out.size() < 3 && std::find(out.begin(), out.end(), found) == out.end())
      out.push_back(found);
  }
  return out;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates) {
  const std::vector<std::string> near = suggest(name, candidates);
  std::string out;
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (i == 0)
      out = "did you mean ";
    else
      out += i + 1 == near.size() ? " or " : ", ";
    out += near[i];
  }
  return out.empty() ? out : out + "?";
}

}  // namespace shardwise
