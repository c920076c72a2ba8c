#include "planner/request/request_field_json.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "catalog/require.hpp"
#include "planner/request/foreign_flags.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;
constexpr double most_exact_integer = 9'007'199'254'740'992.0;  // 2^53: doubles count no further
constexpr double most_gib = 1e9;

// A number of the list as a value of the field's kind; nothing where it is none.
FieldValue numeric_value(const RequestField& field, double number) {
  switch (field.kind) {
    case FieldKind::integer:
      if (std::abs(number) > most_exact_integer || number != std::floor(number)) return {};
      return static_cast<std::int64_t>(number);
    case FieldKind::size:
      if (number < 0 || number > most_gib) return {};
      return Bytes(static_cast<std::int64_t>(number * bytes_per_gib));
    default:
      return number;
  }
}

}  // namespace

FieldValue read_field(JsonReader& r, const RequestField& field) {
  const std::string_view key = field.key;
  switch (field.kind) {
    case FieldKind::text:
      if (const auto v = r.maybe_text(key)) return *v;
      return {};
    case FieldKind::texts: {
      if (r.kind(key) == JsonKind::text) return std::vector<std::string>{r.text(key)};
      std::vector<std::string> v = r.texts(key);
      if (v.empty()) return {};
      return v;
    }
    case FieldKind::integer:
      if (const auto v = r.maybe_integer64(key, field.low, field.high)) return *v;
      return {};
    case FieldKind::number:
      if (const auto v = r.maybe_number(key, static_cast<double>(field.low) / 1000,
                                        static_cast<double>(field.high) / 1000))
        return *v;
      return {};
    case FieldKind::size:
      if (const auto v = r.maybe_number(key, 0, most_gib))
        return Bytes(static_cast<std::int64_t>(*v * bytes_per_gib));
      return {};
    case FieldKind::flag:
      if (const auto v = r.maybe_flag(key)) return *v;
      return {};
  }
  return {};
}

std::vector<FieldValue> read_field_list(JsonReader& r, const RequestField& field,
                                        Problems& problems) {
  require(field.kind != FieldKind::flag, "a flag is no list");
  std::vector<FieldValue> values;
  if (field.kind == FieldKind::text || field.kind == FieldKind::texts) {
    for (std::string& text : r.texts(field.key)) {
      if (field.kind == FieldKind::text)
        values.emplace_back(std::move(text));
      else
        values.emplace_back(std::vector<std::string>{std::move(text)});
    }
  } else {
    for (const double number : r.numbers(field.key)) values.push_back(numeric_value(field, number));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string where = sentence(r.where(field.key), '/', i);
    if (std::holds_alternative<std::monostate>(values[i]))
      problems.push_back({ProblemKind::request, where,
                          field.kind == FieldKind::integer ? "expected a whole number"
                                                           : "expected a size in GiB"});
    add_problems(problems, field_problems(field, values[i], where));
  }
  return values;
}

// nullptr where no flag is called so.
static const RequestField* field_of_flag(std::string_view flag) {
  for (const RequestField& field : request_fields())
    if (field.flag == flag) return &field;
  return nullptr;
}

// `words`: what the command line has for it, such as "--plan tp=N".
static Problem instead(std::string where, const RequestField& meant, std::string_view words) {
  return {
      ProblemKind::request, std::move(where),
      sentence("unknown key; expected ", meant.key, ", which is ", words, " of the command line")};
}

void refuse_flag_names(JsonReader& r, Problems& problems) {
  for (const RequestField& field : request_fields()) {
    if (!field.flag.starts_with("--")) continue;
    std::string flag(field.flag.substr(2));
    std::replace(flag.begin(), flag.end(), '-', '_');
    if (flag == field.key || request_field(flag) != nullptr || !r.has(flag)) continue;
    r.ignore(flag);
    problems.push_back(instead(r.where(flag), field, field.flag));
  }
  for (const std::string& key : r.keys()) {
    std::string flag = "--" + key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const std::string_view here = called_here(flag);
    const RequestField* meant = field_of_flag(here.substr(0, here.find_first_of(" ,")));
    if (meant == nullptr || request_field(key) != nullptr) continue;
    r.ignore(key);
    problems.push_back(instead(r.where(key), *meant, here));
  }
}

}  // namespace shardwise
