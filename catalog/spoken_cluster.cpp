#include "catalog/spoken_cluster.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "catalog/cluster_parser.hpp"
#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr std::string_view examples =
    "expected for example 6x24GB, 2xRTX-3090, 4090, 2x3090+2x4090, 16xH100-SXM, "
    "4 nodes of 8xA100-80GB or dgx-h100";

// Takes `word` off the front, in any case, where something else than a letter follows it.
bool take_word(std::string_view& text, std::string_view word) {
  if (text.size() < word.size() || !same_name(text.substr(0, word.size()), word)) return false;
  const std::string_view rest = text.substr(word.size());
  if (!rest.empty() && is_letter(rest[0])) return false;
  text = trimmed(rest);
  return true;
}

// "x", "*" or the multiplication sign; an 'x' must not be the start of a word that goes on in
// letters unless a name can follow, which is always so here: "2xRTX", "8xa100".
bool take_times(std::string_view& text) {
  for (const std::string_view sign : {"x", "X", "*", "\xC3\x97"}) {
    if (text.substr(0, sign.size()) != sign) continue;
    text = trimmed(text.substr(sign.size()));
    return true;
  }
  return false;
}

using Names = std::vector<std::string_view>;

bool is_whole(std::string_view text, const Names& whole_names) {
  return std::any_of(whole_names.begin(), whole_names.end(),
                     [&](std::string_view name) { return same_name(name, text); });
}

// "XT" of "7900 XT": a word that begins with the sign and is no sign with a name that is known.
bool is_word_of_name(std::string_view text, const Names& whole_names) {
  return text.size() > 1 && (text[0] | 0x20) == 'x' && is_letter(text[1]) &&
         !is_whole(text.substr(1), whole_names);
}

enum class Unit { gpus, nodes };
struct Counted {
  std::string_view digits;
  Unit unit;
};

// "nodes of", "node x": what follows is what each of them holds.
bool take_nodes(std::string_view& text) {
  if (!take_word(text, "nodes") && !take_word(text, "node")) return false;
  if (!take_word(text, "of") && !take_word(text, "with")) take_times(text);
  return true;
}

// A count and its sign: "16x", "4 nodes of", "2 nodes x". Nothing where a name begins.
std::optional<Counted> take_count(std::string_view& text, const Names& whole_names) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == 0) return std::nullopt;
  const std::string_view digits = text.substr(0, end);
  std::string_view rest = trimmed(text.substr(end));
  if (take_nodes(rest)) {
    text = rest;
    return Counted{digits, Unit::nodes};
  }
  const bool blank = end < text.size() && text[end] == ' ';
  if (blank && is_word_of_name(rest, whole_names)) return std::nullopt;
  if (!take_times(rest)) return std::nullopt;
  text = rest;
  return Counted{digits, Unit::gpus};
}

std::optional<int> count_of(std::string_view digits) {
  int value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec != std::errc() || value < 1 || value > max_cluster_gpus) return std::nullopt;
  return value;
}

// "RTX 4090 (2)": one digit in brackets. More of them may be the memory, and words are a remark.
std::optional<int> take_count_in_brackets(std::string_view& text) {
  if (text.size() < 4 || !text.ends_with(')')) return std::nullopt;
  const std::string_view behind = text.substr(text.size() - 3);
  if (behind[0] != '(' || !is_digit(behind[1]) || behind[1] == '0') return std::nullopt;
  text = trimmed(text.substr(0, text.size() - 3));
  return behind[1] - '0';
}

// A count behind the name, as in "RTX 4090 x2", "H100x8", "H100*8" and "H100:8". Taken off where
// there is one.
std::optional<int> take_count_behind(std::string_view& text) {
  if (const auto in_brackets = take_count_in_brackets(text)) return in_brackets;
  std::size_t begin = text.size();
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  const std::string_view digits = text.substr(begin);
  std::string_view name = trimmed(text.substr(0, begin));
  if (digits.empty() || name.size() < 2) return std::nullopt;
  const char sign = name.back();
  const bool letter = (sign | 0x20) == 'x';
  if (sign != ':' && sign != '*' && !letter) return std::nullopt;
  const bool together = name.size() == begin;  // "MI250X 8" has none
  name.remove_suffix(1);
  const char before = name.back();
  if (letter && before != ' ' && !(together && is_digit(before))) return std::nullopt;
  const auto value = count_of(digits);
  if (value) text = trimmed(name);
  return value;
}

// "dual 3090", "two 3090s": counts in words.
std::optional<int> take_count_in_words(std::string_view& text) {
  struct CountWord {
    std::string_view word;
    int count;
  };
  constexpr CountWord words[] = {{"a", 1},    {"one", 1},   {"single", 1}, {"two", 2},
                                 {"dual", 2}, {"three", 3}, {"four", 4},   {"quad", 4},
                                 {"six", 6},  {"eight", 8}};
  for (const CountWord& row : words) {
    const std::size_t end = row.word.size();
    if (text.size() <= end || text[end] != ' ' || !take_word(text, row.word)) continue;
    return row.count;
  }
  return std::nullopt;
}

// "3090s" is more than one "3090"; "l40s" is a card.
std::string_view in_singular(std::string_view name, const Names& whole_names) {
  if (name.empty() || (name.back() | 0x20) != 's' || is_whole(name, whole_names)) return name;
  const std::string_view without = name.substr(0, name.size() - 1);
  return is_whole(without, whole_names) ? without : name;
}

// "8 H100": a count with nothing between it and a name that is known. "4090 24GB" is a card and its
// memory.
std::optional<Counted> take_count_before_name(std::string_view& text, const Names& whole_names) {
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const std::string_view digits = text.substr(0, end), rest = trimmed(text.substr(end));
  if (!std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  const bool size = spoken_memory_gib(rest).has_value();
  if (size ? is_whole(digits, whole_names) : !is_whole(in_singular(rest, whole_names), whole_names))
    return std::nullopt;
  text = rest;
  return Counted{digits, Unit::gpus};
}

// Of "4090x2" and "2x4090" the count is the number that is no name, or else the smaller one; a name
// that begins with letters has its count behind it.
bool counts_behind(std::string_view text, const Names& whole_names) {
  std::string_view rest = text;
  const auto first = take_count(rest, whole_names);
  if (!first) return true;
  if (first->unit == Unit::nodes || rest.empty()) return false;
  const bool number = std::all_of(rest.begin(), rest.end(), is_digit);
  if (!number) return false;
  const bool named_first = is_whole(first->digits, whole_names);
  if (named_first != is_whole(rest, whole_names)) return named_first;
  return count_of(first->digits) > count_of(rest);
}

Result<SpokenPart> read_part(std::string_view all, std::string_view text,
                             const Names& whole_names) {
  SpokenPart part;
  text = trimmed(text);
  const auto in_words = is_whole(text, whole_names) ? std::nullopt : take_count_in_words(text);
  if (in_words) (take_nodes(text) ? part.nodes : part.count) = in_words;
  if (!part.count && !is_whole(text, whole_names) && counts_behind(text, whole_names))
    part.count = take_count_behind(text);
  const int most = in_words && part.count ? 0 : 2;
  for (int counts = 0; counts < most && !is_whole(text, whole_names); ++counts) {
    auto counted = take_count(text, whole_names);
    if (!counted) counted = take_count_before_name(text, whole_names);
    if (!counted) break;
    const auto value = count_of(counted->digits);
    if (!value)
      return bad_cluster(all,
                         "counts go from 1 to 1000000, found " + printable(counted->digits, 20));
    if (counts == 1) {
      if (!part.nodes) part.nodes = part.count;
      part.count = value;
    } else {
      (counted->unit == Unit::nodes ? part.nodes : part.count) = value;
    }
  }
  const auto behind = is_whole(text, whole_names) ? std::nullopt : take_count_in_brackets(text);
  if (behind && part.count.value_or(*behind) != *behind)
    return bad_cluster(all, "two counts of one GPU, " + std::to_string(*part.count) + " and " +
                                std::to_string(*behind));
  if (behind) part.count = behind;
  if (text.empty()) return bad_cluster(all, "a name of a GPU or node is missing");
  part.name = std::string(in_singular(text, whole_names));
  return part;
}

}  // namespace

Problem bad_cluster(std::string_view text, const std::string& why) {
  return {ProblemKind::request, "--gpus",
          "cannot read \"" + printable(text) + "\": " + why + "; " + std::string(examples)};
}

std::optional<double> spoken_memory_gib(std::string_view name) {
  std::size_t end = 0;
  while (end < name.size() && (is_digit(name[end]) || name[end] == '.')) ++end;
  if (end == 0 || end > 8) return std::nullopt;
  double gib = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + end, gib);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + end) return std::nullopt;
  const std::string_view unit = trimmed(name.substr(end));
  for (const std::string_view known : {"gb", "gib", "g"})
    if (same_name(unit, known)) return gib;
  return std::nullopt;
}

Result<std::vector<SpokenPart>> read_spoken_cluster(std::string_view text,
                                                    const Names& whole_names) {
  const std::string_view all = trimmed(text);
  if (all.empty()) return bad_cluster(all, "nothing was said");
  if (all.size() > 1000) return bad_cluster(all, "longer than 1000 characters");
  std::vector<SpokenPart> parts;
  std::string_view rest = all;
  take_word(rest, "mixed");
  constexpr std::string_view also = " and ";
  for (;;) {
    const std::size_t plus = std::min(rest.find_first_of("+,"), rest.find(also));
    auto part = read_part(all, rest.substr(0, plus), whole_names);
    if (!part) return part.error();
    parts.push_back(*std::move(part));
    if (plus == std::string_view::npos) return parts;
    rest.remove_prefix(plus + (rest[plus] == ' ' ? also.size() : 1));
  }
}

}  // namespace shardwise
