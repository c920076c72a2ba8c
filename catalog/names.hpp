// Names as people type them: "RTX 4090", "rtx_4090" and "rtx-4090" are one name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

// The names of a table's rows, in its order; views of theirs unless `Name` owns its text.
template <class Name = std::string_view, class Rows>
std::vector<Name> names_in(const Rows& rows) {
  std::vector<Name> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

// "a, b, c".
template <class Texts>
std::string joined(const Texts& texts, std::string_view between = ", ") {
  std::string out;
  for (const auto& text : texts) {
    if (!out.empty()) out.append(between);
    out.append(text);
  }
  return out;
}

// Lower case; spaces and underscores become '-'; nothing at the ends.
std::string normalised(std::string_view name);

// `normalised` without any '-': "rtx4090" and "RTX 4090" are one.
std::string squeezed(std::string_view name);

// squeezed(a) == squeezed(b), without making either.
bool same_name(std::string_view a, std::string_view b);

// At most three candidates that resemble `name`, nearest first (edit distance, ties in the order
// given); a candidate that holds the name counts as near, or whose first word it is.
std::vector<std::string> suggest(std::string_view name,
                                 const std::vector<std::string_view>& candidates);

// "did you mean a, b or c?", or "" where nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace shardwise
