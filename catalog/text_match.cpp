#include "catalog/text_match.hpp"

#include <algorithm>

namespace shardwise {

// Replaying the published runs asks it millions of times, mostly of what is not in the text.
bool holds_words(std::string_view text, std::string_view words) {
  if (words.empty()) return false;
  const auto same = [](char a, char b) { return lower_ascii(a) == lower_ascii(b); };
  const char first = lower_ascii(words.front());
  for (std::size_t at = 0; at + words.size() <= text.size(); ++at) {
    if (lower_ascii(text[at]) != first) continue;
    const std::size_t end = at + words.size();
    const bool starts =
        at == 0 || !is_word_character(text[at - 1]) || !is_word_character(words.front());
    const bool ends =
        end == text.size() || !is_word_character(text[end]) || !is_word_character(words.back());
    if (starts && ends && std::equal(words.begin(), words.end(), text.data() + at, same))
      return true;
  }
  return false;
}

}  // namespace shardwise
