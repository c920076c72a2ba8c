// The values of request fields: what is wrong with one, and one from the words of a command line.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/figures.hpp"
#include "planner/parted.hpp"
#include "planner/request/foreign_words.hpp"
#include "planner/request/request_field.hpp"
#include "planner/request/spoken_number.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string found(std::string_view value) { return sentence("found \"", printable(value), '"'); }

Problem wrong(const std::string& where, std::string what) {
  return {ProblemKind::request, where, std::move(what)};
}

void check_word(const RequestField& field, const std::string& value, const std::string& where,
                Problems& problems) {
  if (value.empty()) {
    problems.push_back(wrong(where, sentence("is empty; expected ", field.help)));
    return;
  }
  if (field.choices == nullptr) return;
  const std::vector<std::string_view> choices = field.choices();
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  std::string hint = foreign_word(field.key, value);
  if (hint.empty()) hint = did_you_mean(value, choices);
  problems.push_back(wrong(where, sentence("expected ", listed(choices, " or "), ", ", found(value),
                                           hint.empty() ? "" : "; ", hint)));
}

// As people write it: "0.5", "0.0005", "1000000".
std::string shortest(double value) {
  std::array<char, 32> digits{};
  const double size = std::abs(value);
  const bool plain = value == 0 || (size >= 1e-6 && size < 1e9);
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 plain ? std::chars_format::fixed : std::chars_format::general)
                       .ptr;
  return std::string(digits.data(), end);
}

std::string bound(const RequestField& field, std::int64_t value) {
  return field.kind == FieldKind::size ? shown_difference(Bytes(value)) : grouped(value);
}

void check_range(const RequestField& field, std::int64_t value, const std::string& where,
                 Problems& problems) {
  if (value >= field.low && value <= field.high) return;
  if (value < field.low && field.low == 1)
    problems.push_back(wrong(where, sentence("must be positive, found ", bound(field, value))));
  else
    problems.push_back(
        wrong(where, sentence("expected ", bound(field, field.low), " to ",
                              bound(field, field.high), ", found ", bound(field, value))));
}

void check_number(const RequestField& field, double value, const std::string& where,
                  Problems& problems) {
  const double low = static_cast<double>(field.low) / 1000,
               high = static_cast<double>(field.high) / 1000;
  if (value >= low && value <= high) return;
  problems.push_back(wrong(where, sentence("expected a number from ", shortest(low), " to ",
                                           shortest(high), ", found ", shortest(value))));
}

std::string_view lettered_example(NumberLetters letters) {
  switch (letters) {
    case NumberLetters::binary:
      return " such as 4096 or 4k";
    case NumberLetters::decimal:
      return " such as 10000 or 10k";
    case NumberLetters::percent:
      return " such as 0.9 or 90%";
    case NumberLetters::seconds:
      return " of seconds such as 3.2, 3.2s/it or 1.5it/s";
    case NumberLetters::none:
    case NumberLetters::watts:
      break;
  }
  return "";
}

std::optional<double> number_in(NumberLetters letters, std::string_view words) {
  if (letters == NumberLetters::percent) return share_in(words);
  if (letters == NumberLetters::seconds) return seconds_in(words);
  return plain_number_in(words);
}

// One use of a flag as a value of the field's kind, or why it is none.
std::variant<FieldValue, Problem> read_value(const RequestField& field, const std::string& words) {
  const std::string where(field.flag);
  if (field.kind == FieldKind::integer) {
    if (const auto value = lettered_integer_in(words, field.letters)) return FieldValue(*value);
    return wrong(where, sentence("expected a whole number", lettered_example(field.letters), ", ",
                                 found(words)));
  }
  if (field.kind == FieldKind::number) {
    if (const auto value = number_in(field.letters, words)) return FieldValue(*value);
    return wrong(
        where, sentence("expected a number", lettered_example(field.letters), ", ", found(words)));
  }
  if (field.kind == FieldKind::size) {
    if (const auto value = size_in(words)) return FieldValue(*value);
    return wrong(where, sentence("expected a size with its unit, such as 128GiB, ", found(words)));
  }
  return FieldValue(words);
}

}  // namespace

Problems field_problems(const RequestField& field, const FieldValue& value,
                        const std::string& where) {
  Problems problems;
  if (const auto* one = std::get_if<std::string>(&value)) check_word(field, *one, where, problems);
  if (const auto* many = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& each : *many) check_word(field, each, where, problems);
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    check_range(field, *whole, where, problems);
  if (const auto* ratio = std::get_if<double>(&value)) check_number(field, *ratio, where, problems);
  if (const auto* size = std::get_if<Bytes>(&value))
    check_range(field, size->value, where, problems);
  return problems;
}

Problems set_from_flag(const RequestField& field, const std::vector<std::string>& texts,
                       Request& request) {
  const std::string where(field.flag);
  if (field.kind == FieldKind::flag) {
    field.set(request, true);
    return {};
  }
  FieldValue value;
  if (field.kind == FieldKind::texts) {
    std::vector<std::string> words;
    for (const std::string& text : texts)
      for (std::string& word : parted(text, ',')) words.push_back(std::move(word));
    value = field.choices == nullptr ? texts : words;
  } else {
    if (texts.size() > 1 && where.starts_with("--"))
      return {wrong(where, sentence("given ", texts.size(), " times; once is enough"))};
    const auto read = read_value(field, joined(texts, " "));  // llama 3.1 8b
    if (const Problem* problem = std::get_if<Problem>(&read)) return {*problem};
    value = std::get<FieldValue>(read);
  }
  value = as_spelled(field, std::move(value));
  Problems problems = field_problems(field, value, where);
  if (problems.empty()) field.set(request, value);
  return problems;
}

}  // namespace shardwise
