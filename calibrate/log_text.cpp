#include "calibrate/log_text.hpp"

#include <algorithm>
#include <charconv>

namespace shardwise {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

// Removes "ESC [ ... letter", which colours terminals.
std::string without_controls(std::string_view line) {
  std::string kept;
  kept.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    } else {
      kept += line[i];
    }
  }
  kept.erase(kept.find_last_not_of(blanks) + 1);
  return kept;
}

template <class T>
std::optional<T> whole_word_as(std::string_view word) {
  if (word.size() > 1 && word.front() == '+') word.remove_prefix(1);
  T value{};
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, value);
  if (word.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace

std::vector<LogLine> log_lines(std::string_view text) {
  std::vector<LogLine> lines;
  int number = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    const bool overwritten = end + 1 < text.size() && text[end] == '\r' && text[end + 1] != '\n';
    const std::string line = without_controls(text.substr(at, end - at));
    if (!line.empty() || overwritten) lines.push_back({number, line});
    number += end < text.size() && text[end] == '\n' ? 1 : 0;
    at = end + 1;
  }
  return lines;
}

std::vector<std::string_view> words(std::string_view text) {
  const auto separates = [](char c) { return c == '|' || blanks.find(c) != blanks.npos; };
  std::vector<std::string_view> found;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && !separates(text[end])) ++end;
    if (end > at) found.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

std::optional<double> number_in(std::string_view word) {
  const auto value = whole_word_as<double>(word);
  if (value && !(*value > -1e300 && *value < 1e300)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> whole_number_in(std::string_view word) {
  return whole_word_as<std::int64_t>(word);
}

std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) return std::nullopt;
  return trimmed(text.substr(at + mark.size()));
}

std::string text_of_member(const JsonDocument& document, JsonIndex object, std::string_view key) {
  const JsonIndex i = object == no_json ? no_json : document.member(object, key);
  const auto text = i == no_json ? std::nullopt : document.as_text(i);
  return text ? std::string(*text) : std::string();
}

}  // namespace shardwise
