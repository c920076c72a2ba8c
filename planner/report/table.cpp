#include "planner/report/table.hpp"

#include <algorithm>

namespace shardwise {
namespace {

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::size_t have = shown_width(text);
  const std::string space(width > have ? width - have : 0, ' ');
  return left ? text + space : space + text;
}

// How a table is laid out: the width of each column, and which one has lines of its own.
struct Layout {
  std::vector<std::size_t> widths;
  std::vector<std::size_t> words;  // columns
  std::optional<std::size_t> apart;
  std::size_t columns = 0;  // of the terminal, where there is one
  std::string indent;
};

void add_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

// A long cell, broken after commas.
void add_cell(std::string& out, const std::string& cell, const Layout& l) {
  std::string line = l.indent;
  const std::string deeper = l.indent + "    ";
  for (std::size_t from = 0; from < cell.size();) {
    const std::size_t comma = cell.find(',', from);
    const std::size_t end = comma == std::string::npos ? cell.size() : comma + 1;
    const std::string part = cell.substr(from, end - from);
    if (shown_width(line) + shown_width(part) > l.columns && line.size() > deeper.size()) {
      add_line(out, line);
      line = deeper;
    }
    line += part;
    from = end;
  }
  add_line(out, line);
}

void add_row(std::string& out, const std::vector<std::string>& row, const Layout& l) {
  const bool above = l.apart == std::size_t{0}, below = l.apart && !above;
  if (above && !row.empty()) add_cell(out, row.front(), l);
  std::string line = l.indent;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i == l.apart) {
      if (above) line += "  ";
      continue;
    }
    if (i > 0) line += "  ";
    const bool left = std::find(l.words.begin(), l.words.end(), i) != l.words.end();
    line += padded(row[i], l.widths[i], i == 0 || left);
  }
  if (!above || row.size() > 1) add_line(out, line);
  if (below && *l.apart < row.size()) add_cell(out, "    " + row[*l.apart], l);
}

std::size_t total_width(const Layout& l) {
  std::size_t total = l.indent.size() + 2 * (l.widths.empty() ? 0 : l.widths.size() - 1);
  for (const std::size_t w : l.widths) total += w;
  return total;
}

}  // namespace

std::size_t shown_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string shown_table(const Table& table, const std::string& indent, std::optional<int> columns) {
  Layout l;
  l.indent = indent;
  l.words = table.words;
  const auto widen = [&](const std::vector<std::string>& row) {
    if (row.size() > l.widths.size()) l.widths.resize(row.size(), 0);
    for (std::size_t i = 0; i < row.size(); ++i)
      l.widths[i] = std::max(l.widths[i], shown_width(row[i]));
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);
  if (columns && total_width(l) > static_cast<std::size_t>(*columns) && l.widths.size() > 1) {
    l.columns = static_cast<std::size_t>(*columns);
    const auto widest = std::max_element(l.widths.begin(), l.widths.end());
    l.apart = static_cast<std::size_t>(widest - l.widths.begin());
  }
  std::string out;
  if (!table.header.empty()) add_row(out, table.header, l);
  for (const auto& row : table.rows) add_row(out, row, l);
  return out;
}

}  // namespace shardwise
