#include "catalog/run_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr int many_of_them = 100'000'000;  // more GPUs, layers or sequences than anything has

constexpr std::array<std::string_view, 6> yes_words{"true", "yes", "on", "1", "enabled", "y"};
constexpr std::array<std::string_view, 8> no_words{"false",    "no", "off",  "0",
                                                   "disabled", "n",  "none", ""};

template <class Words>
bool among(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool plain_number(JsonKind kind) { return kind == JsonKind::integer || kind == JsonKind::real; }

bool in_number(char c) { return is_digit(c) || c == '.' || c == ',' || c == '_'; }

// The end of the number that begins at `at`, its exponent included.
std::size_t number_end(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && in_number(text[end])) ++end;
  while (!is_digit(text[end - 1])) --end;  // "8, then"
  std::size_t exponent = end;
  if (exponent < text.size() && lower_ascii(text[exponent]) == 'e') ++exponent;
  if (exponent > end && exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+'))
    ++exponent;
  if (exponent == end || exponent >= text.size() || !is_digit(text[exponent])) return end;
  while (exponent < text.size() && is_digit(text[exponent])) ++exponent;
  return exponent;
}

}  // namespace

std::optional<double> number_told(std::string_view text) {
  const auto first = std::find_if(text.begin(), text.end(), is_digit);
  if (first == text.end()) return std::nullopt;
  const auto begin = static_cast<std::size_t>(first - text.begin());
  const std::size_t end = number_end(text, begin);
  const std::string_view rest = text.substr(end);
  if (std::any_of(rest.begin(), rest.end(), is_digit)) return std::nullopt;
  if (!rest.empty() && is_letter(rest.front())) return std::nullopt;
  std::string number(text.substr(begin, end - begin));
  number.erase(
      std::remove_if(number.begin(), number.end(), [](char c) { return c == ',' || c == '_'; }),
      number.end());
  const double value = std::strtod(number.c_str(), nullptr);
  const bool signed_off = begin == 1 && text[0] == '-';
  return signed_off ? -value : value;
}

RunFields::RunFields(JsonReader& reader, Problems& problems, std::vector<std::string>& notes,
                     std::string object)
    : reader_(reader), problems_(problems), notes_(notes), object_(std::move(object)) {}

std::string RunFields::called(std::string_view key) const {
  return (object_.empty() ? "" : object_ + '.') + std::string(key);
}

void RunFields::unclear(std::string_view key, const std::string& expected) {
  reader_.ignore(key);
  notes_.push_back(called(key) + " is not understood, so taken as not stated: expected " +
                   expected);
}

void RunFields::keep_unread() {
  for (const std::string& words : reader_.unread()) notes_.push_back(called(words));
}

template <class Read>
auto RunFields::silently(Read read) {
  const std::size_t before = problems_.size();
  std::optional<decltype(read())> value(std::in_place, read());
  if (problems_.size() > before) value.reset();
  problems_.resize(std::min(before, problems_.size()), Problem{ProblemKind::file, "", ""});
  return value;
}

std::optional<double> RunFields::told(std::string_view key) {
  if (reader_.kind(key) == JsonKind::text) return number_told(*reader_.maybe_text(key));
  if (reader_.kind(key) != JsonKind::array) return std::nullopt;
  const auto list = silently([&] { return reader_.numbers(key); });
  if (!list || list->size() != 1) return std::nullopt;
  return list->front();
}

std::optional<std::int64_t> RunFields::integer64(std::string_view key, std::int64_t low,
                                                 std::int64_t high) {
  const JsonKind kind = reader_.kind(key);
  if (kind == JsonKind::null || plain_number(kind)) return reader_.maybe_integer64(key, low, high);
  const auto value = told(key);
  const auto from = static_cast<double>(low), to = static_cast<double>(high);
  if (value && *value == std::floor(*value) && *value >= from && *value <= to)
    return static_cast<std::int64_t>(*value);
  unclear(key, "a whole number");
  return std::nullopt;
}

std::optional<int> RunFields::integer(std::string_view key, int low, int high) {
  const auto value = integer64(key, low, high);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<int> RunFields::count(std::string_view key) {
  if (plain_number(reader_.kind(key))) {
    const auto value = reader_.maybe_number(key, -1e308, 1e308);
    if (value && (*value == 0 || *value == -1)) return std::nullopt;
  }
  return integer(key, 1, many_of_them);
}

std::optional<double> RunFields::number(std::string_view key, double low, double high) {
  const JsonKind kind = reader_.kind(key);
  if (kind == JsonKind::null || plain_number(kind)) return reader_.maybe_number(key, low, high);
  const auto value = told(key);
  if (value && *value >= low && *value <= high) return value;
  unclear(key, "a number");
  return std::nullopt;
}

std::optional<double> RunFields::measurement(std::string_view key) {
  const auto value = number(key, 0, 1e18);
  if (value && *value == 0) return std::nullopt;
  return value;
}

std::optional<bool> RunFields::flag(std::string_view key) {
  switch (reader_.kind(key)) {
    case JsonKind::null:
    case JsonKind::boolean:
      return reader_.maybe_flag(key);
    case JsonKind::integer:
    case JsonKind::real:
      return reader_.maybe_number(key, -1e308, 1e308).value_or(0) != 0;
    case JsonKind::text: {
      const std::string word = lowered(trimmed(*reader_.maybe_text(key)));
      if (among(yes_words, word)) return true;
      if (among(no_words, word)) return false;
      break;
    }
    default:
      break;
  }
  unclear(key, "true or false");
  return std::nullopt;
}

std::optional<std::string> RunFields::text(std::string_view key) {
  switch (reader_.kind(key)) {
    case JsonKind::boolean:
      return *reader_.maybe_flag(key) ? "true" : "false";
    case JsonKind::integer:
    case JsonKind::real:
      return shown_number(reader_.maybe_number(key, -1e308, 1e308).value_or(0));
    case JsonKind::array: {
      std::string joined;
      for (const std::string& part : texts(key)) joined += (joined.empty() ? "" : ", ") + part;
      if (joined.empty()) return std::nullopt;
      return joined;
    }
    case JsonKind::object:
      unclear(key, "a text");
      return std::nullopt;
    default:
      return reader_.maybe_text(key);
  }
}

std::vector<std::string> RunFields::texts(std::string_view key) {
  if (reader_.kind(key) == JsonKind::text) return {*reader_.maybe_text(key)};
  if (auto list = silently([&] { return reader_.texts(key); })) return *std::move(list);
  unclear(key, "an array of texts");
  return {};
}

std::optional<JsonReader> RunFields::object(std::string_view key) {
  if (reader_.kind(key) == JsonKind::object) return reader_.maybe_object(key);
  const bool none = reader_.kind(key) == JsonKind::null ||
                    (reader_.kind(key) == JsonKind::boolean && !*reader_.maybe_flag(key));
  if (none)
    reader_.ignore(key);
  else
    unclear(key, "an object");
  return std::nullopt;
}

}  // namespace shardwise
