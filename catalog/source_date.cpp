#include "catalog/source_date.hpp"

#include <algorithm>
#include <array>

#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 12> months{"January",   "February", "March",    "April",
                                                  "May",       "June",     "July",     "August",
                                                  "September", "October",  "November", "December"};

// From 1; 0: no month. "Sept" and "Apr" are months, "Ma" is none.
int month_of_word(std::string_view word) {
  for (std::size_t i = 0; word.size() >= 3 && i < months.size(); ++i)
    if (lowered(months[i]).rfind(lowered(word), 0) == 0) return static_cast<int>(i) + 1;
  return 0;
}

int number_of(std::string_view digits) {
  int value = 0;
  for (const char c : digits) value = 10 * value + (c - '0');
  return value;
}

int month_of_digits(std::string_view digits) {
  const int month = digits.size() == 1 || digits.size() == 2 ? number_of(digits) : 0;
  return month <= 12 ? month : 0;
}

template <class Holds>
std::string_view last_run(std::string_view text, Holds holds) {
  std::size_t begin = text.size();
  while (begin > 0 && holds(text[begin - 1])) --begin;
  return text.substr(begin);
}

std::string_view without(std::string_view text, std::string_view tail) {
  return text.substr(0, text.size() - tail.size());
}

// What follows a year: "-12-11", "12" or "1211", and then no further digit.
int month_after(std::string_view after) {
  const bool apart = !after.empty() && (after[0] == '-' || after[0] == '_' || after[0] == '/');
  if (apart) after.remove_prefix(1);
  std::size_t digits = 0;
  while (digits < after.size() && is_digit(after[digits])) ++digits;
  const bool dated = digits == 2 || (!apart && digits == 4);
  return dated ? month_of_digits(after.substr(0, 2)) : 0;
}

// What leads to a year: "11 December ", "Dec 11, ", "december" or "12_".
int month_before(std::string_view before) {
  const std::string_view gap = last_run(before, [](char c) { return !is_word_character(c); });
  before = without(before, gap);
  if (const auto word = last_run(before, is_letter); !word.empty()) return month_of_word(word);
  const std::string_view digits = last_run(before, is_digit);
  if (digits.empty() || digits.size() > 2) return 0;
  before = without(before, digits);
  if (gap == "_" || gap == "/" || gap == ".") return month_of_digits(digits);
  before = without(before, last_run(before, [](char c) { return c == ' '; }));
  return month_of_word(last_run(before, is_letter));
}

}  // namespace

std::optional<std::string> date_told(std::string_view text) {
  for (std::size_t at = text.find("20"); at != std::string_view::npos;
       at = text.find("20", at + 1)) {
    const std::string_view digits = text.substr(at, 4);
    if (last_run(digits, is_digit).size() != 4) continue;
    const int year = number_of(digits);
    if (year < 2017 || year > 2029) continue;
    const std::string_view before = text.substr(0, at), after = text.substr(at + 4);
    const int told = month_after(after);
    if (told == 0 && !after.empty() && is_word_character(after[0])) continue;
    if (!before.empty() && is_digit(before.back())) continue;
    const int month = told != 0 ? told : month_before(before);
    if (month == 0 && !before.empty() && is_letter(before.back())) continue;
    const std::string year_text(digits);
    return month == 0 ? year_text
                      : std::string(months[static_cast<std::size_t>(month) - 1]) + " " + year_text;
  }
  return std::nullopt;
}

std::optional<int> thread_told(std::string_view text) {
  constexpr std::array<std::string_view, 6> kinds{"issue", "issues",     "pull request",
                                                  "pull",  "discussion", "discussions"};
  const auto names_kind = [&](std::string_view before) {
    if (before.size() >= 2 && before.substr(before.size() - 2) == "PR")
      return before.size() == 2 || !is_word_character(before[before.size() - 3]);
    return std::any_of(kinds.begin(), kinds.end(), [&](std::string_view kind) {
      if (before.size() < kind.size()) return false;
      const bool ends = equal_in_any_case(before.substr(before.size() - kind.size()), kind);
      return ends && (before.size() == kind.size() ||
                      !is_word_character(before[before.size() - kind.size() - 1]));
    });
  };
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::string_view before = text.substr(0, at);
    before =
        without(before, last_run(before, [](char c) { return c == ' ' || c == '#' || c == '/'; }));
    if (end - at <= 6 && before.size() < at && names_kind(before))
      return number_of(text.substr(at, end - at));
    at = end;
  }
  return std::nullopt;
}

std::optional<std::string> date_of_thread(const DatedThreads& threads, int number) {
  const auto after = std::upper_bound(threads.first.begin(), threads.first.end(), number);
  if (after == threads.first.begin()) return std::nullopt;
  const int month = threads.month - 1 + static_cast<int>(after - threads.first.begin()) - 1;
  return std::string(months[static_cast<std::size_t>(month % 12)]) + " " +
         std::to_string(threads.year + month / 12);
}

std::optional<std::string> date_of_source(const std::vector<DatedDocument>& documents,
                                          const std::vector<DatedThreads>& threads,
                                          const RunSource& source) {
  for (const DatedDocument& d : documents)
    if (equal_in_any_case(d.repository, source.repository) && d.file == source.file) return d.date;
  for (const DatedThreads& t : threads) {
    const bool its = std::any_of(
        t.repositories.begin(), t.repositories.end(),
        [&](const std::string& name) { return equal_in_any_case(name, source.repository); });
    if (!its) continue;
    for (const std::string& text : {source.url, source.where})
      if (const auto number = thread_told(text)) return date_of_thread(t, *number);
  }
  return std::nullopt;
}

}  // namespace shardwise
