// Aligned tables for the terminal: the first column and those of words to the left, the others to
// the right.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shardwise {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // rows may be shorter than the header
  std::vector<std::size_t> words = {};         // columns of words, beside the first
};

// `columns`: of a terminal; absent: lines may be of any length. Where the table is wider, its
// widest column gets lines of its own, above the others if it is the first one and below them if
// not, broken after commas where even that is too long.
std::string shown_table(const Table& table, const std::string& indent = "  ",
                        std::optional<int> columns = std::nullopt);

// Columns that UTF-8 text takes on a terminal, every character counted as one.
std::size_t shown_width(const std::string& text);

}  // namespace shardwise
