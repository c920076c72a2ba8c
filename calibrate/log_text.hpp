// LogText: the lines, words and numbers of a log as people paste it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/json_document.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {

struct LogLine {
  int number = 0;    // from 1
  std::string text;  // without terminal colours and trailing blanks
};

// Those that are not empty. What a carriage return overwrote is a line of its own, with the same
// number.
std::vector<LogLine> log_lines(std::string_view text);

// Separated by blanks, tabs and the bars of a table. The views live as long as the text.
std::vector<std::string_view> words(std::string_view text);

// The whole of a word as a number: "1.2e+06"; nothing for "12us" or "".
std::optional<double> number_in(std::string_view word);
std::optional<std::int64_t> whole_number_in(std::string_view word);

// What follows the first `mark`, without blanks around it; nothing where there is no mark.
std::optional<std::string_view> after(std::string_view text, std::string_view mark);

// A text of an object in JSON; "" where there is no object, no such member, or no text.
std::string text_of_member(const JsonDocument& document, JsonIndex object, std::string_view key);

}  // namespace shardwise
