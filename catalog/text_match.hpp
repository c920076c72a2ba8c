// Finding what free text names: lower case, whole words, the longest entry wins.
//
// "A100-SXM4-80GB" holds the words "a100" and "a100-sxm4-80gb", but "l40s" does not hold "l4".
#pragma once

#include <string>
#include <string_view>

namespace shardwise {

constexpr char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string lowered(std::string_view text) {
  std::string low(text);
  for (char& c : low) c = lower_ascii(c);
  return low;
}
inline bool equal_in_any_case(std::string_view a, std::string_view b) {
  return lowered(a) == lowered(b);
}
// Without the blanks at its ends.
constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return lower_ascii(c) >= 'a' && lower_ascii(c) <= 'z'; }
constexpr bool is_word_character(char c) { return is_digit(c) || is_letter(c); }

// Case does not matter on either side. An empty `words` is in no text.
bool holds_words(std::string_view text, std::string_view words);

// The row whose `text` is the longest one that `text` holds; nullptr where none is.
template <class Rows>
auto longest_match(const Rows& rows, std::string_view text) -> const typename Rows::value_type* {
  const typename Rows::value_type* best = nullptr;
  for (const auto& row : rows)
    if ((best == nullptr || row.text.size() > best->text.size()) && holds_words(text, row.text))
      best = &row;
  return best;
}

}  // namespace shardwise
