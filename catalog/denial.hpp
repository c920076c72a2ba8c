// What free text says of words that it holds: "no flash attention" and "fp8 disabled" deny them.
//
// A text is read in clauses, which commas, semicolons and brackets part. "no", "not" and "without"
// deny what follows them in their clause; "disabled", "off", "false" and "not used" what precedes
// them, and so does a clause that is nothing else: "checkpointing (off)".
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "catalog/text_match.hpp"

namespace shardwise {

enum class Said { nothing, denied, affirmed };

namespace denial {

constexpr std::array<std::string_view, 3> before{"no", "not", "without"};
constexpr std::array<std::string_view, 5> behind{"disabled", "off", "false", "not used",
                                                 "not enabled"};
constexpr std::string_view marks = ",;()";

template <class Words>
bool holds_any(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return holds_words(text, word); });
}

inline bool ends_so(std::string_view text) {
  const std::string low = lowered(trimmed(text));
  constexpr std::string_view no = "no";
  const bool last = low.size() >= no.size() && low.substr(low.size() - no.size()) == no;
  return last && (low.size() == no.size() || !is_word_character(low[low.size() - no.size() - 1]));
}

// The clause that begins at `at`.
inline std::string_view clause_from(std::string_view text, std::size_t at) {
  return text.substr(at, text.find_first_of(marks, at) - at);
}

inline bool denies(std::string_view text, std::size_t at, std::size_t length) {
  const std::size_t mark = text.find_last_of(marks, at);
  const std::size_t begin = mark == std::string_view::npos || at == 0 ? 0 : mark + 1;
  if (begin < at && holds_any(text.substr(begin, at - begin), before)) return true;
  const std::string_view rest = clause_from(text, at + length);
  if (holds_any(rest, behind) || ends_so(rest)) return true;
  const std::size_t next = at + length + rest.size();
  if (next >= text.size()) return false;
  const std::string low = lowered(trimmed(clause_from(text, next + 1)));
  return std::find(behind.begin(), behind.end(), low) != behind.end();
}

}  // namespace denial

// Affirmed where it is once, whatever the case, and whole words as holds_words() takes them.
inline Said said_of(std::string_view text, std::string_view words) {
  const std::string low = lowered(text), sought = lowered(words);
  Said said = Said::nothing;
  if (sought.empty()) return said;
  for (std::size_t at = low.find(sought); at != std::string::npos; at = low.find(sought, at + 1)) {
    const std::size_t end = at + sought.size();
    const bool starts =
        at == 0 || !is_word_character(low[at - 1]) || !is_word_character(sought.front());
    const bool ends =
        end == low.size() || !is_word_character(low[end]) || !is_word_character(sought.back());
    if (!starts || !ends) continue;
    if (!denial::denies(low, at, sought.size())) return Said::affirmed;
    said = Said::denied;
  }
  return said;
}

}  // namespace shardwise
