#include "catalog/json_reader.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "catalog/names.hpp"

namespace shardwise {
namespace {

template <class Number>
std::string between(const char* what, Number low, Number high) {
  const auto shown = [](Number n) {
    if constexpr (std::is_integral_v<Number>)
      return std::to_string(n);
    else
      return shown_number(n);
  };
  return std::string(what) + " from " + shown(low) + " to " + shown(high);
}

std::string one_of(const std::vector<std::string_view>& names) {
  return names.empty() ? "" : "one of " + joined(names);
}

bool digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int two_digits(std::string_view text) { return (text[0] - '0') * 10 + (text[1] - '0'); }

// YYYY, YYYY-MM, YYYY-MM-DD or "unknown".
bool is_date(std::string_view date) {
  if (date == "unknown") return true;
  if (date.size() != 4 && date.size() != 7 && date.size() != 10) return false;
  if (!digits(date.substr(0, 4))) return false;
  for (std::size_t at = 4; at < date.size(); at += 3) {
    if (date[at] != '-' || !digits(date.substr(at + 1, 2))) return false;
    const int value = two_digits(date.substr(at + 1, 2));
    if (value < 1 || value > (at == 4 ? 12 : 31)) return false;
  }
  return true;
}

}  // namespace

JsonReader::JsonReader(const JsonDocument& document, Problems& problems)
    : JsonReader(document, 0, problems) {}

JsonReader::JsonReader(const JsonDocument& document, JsonIndex node, Problems& problems)
    : document_(&document), node_(node), problems_(&problems), problems_before_(problems.size()) {
  next_ = document.at(node).first_child;
  if (document.at(node).kind == JsonKind::object) return;
  problem_at(node, "an object");
  node_ = no_json;
}

JsonReader::JsonReader(const JsonReader& parent, Silent)
    : document_(parent.document_),
      node_(no_json),
      problems_(parent.problems_),
      problems_before_(parent.problems_before_) {}

bool JsonReader::clean() const {
  return problems_->size() == problems_before_ && problems_->size() < max_problems;
}

bool JsonReader::has(std::string_view key) const { return kind(key) != JsonKind::null; }

JsonKind JsonReader::kind(std::string_view key) const {
  const JsonIndex i = member(key);
  return i == no_json ? JsonKind::null : document_->at(i).kind;
}

std::vector<std::string> JsonReader::keys() const {
  std::vector<std::string> out;
  for (const JsonIndex i : members()) out.emplace_back(document_->key(i));
  return out;
}

std::string JsonReader::where() const {
  return node_ == no_json ? document_->name : document_->place(node_);
}

std::string JsonReader::where(std::string_view key) const {
  const JsonIndex i = member(key);
  if (i != no_json) return document_->place(i);
  const std::string object = where();
  return object + (object == document_->name ? ":/" : "/") + std::string(key);
}

std::string JsonReader::text(std::string_view key) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return missing(key, "a text"), std::string();
  const auto value = document_->as_text(i);
  if (value && !value->empty()) return std::string(*value);
  problem_at(i, value ? "a text that is not empty" : "a text");
  return {};
}

std::optional<std::string> JsonReader::maybe_text(std::string_view key) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return std::nullopt;
  if (const auto value = document_->as_text(i)) return std::string(*value);
  problem_at(i, "a text");
  return std::nullopt;
}

bool JsonReader::flag(std::string_view key) {
  if (find_present(key) == no_json) return missing(key, "true or false"), false;
  return maybe_flag(key).value_or(false);
}

std::optional<bool> JsonReader::maybe_flag(std::string_view key) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&document_->at(i).value)) return *value;
  problem_at(i, "true or false");
  return std::nullopt;
}

int JsonReader::integer(std::string_view key, int low, int high) {
  return static_cast<int>(integer64(key, low, high));
}

std::optional<int> JsonReader::maybe_integer(std::string_view key, int low, int high) {
  const auto value = maybe_integer64(key, low, high);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::int64_t JsonReader::integer64(std::string_view key, std::int64_t low, std::int64_t high) {
  if (find_present(key) == no_json) return missing(key, between("a whole number", low, high)), low;
  return maybe_integer64(key, low, high).value_or(low);
}

std::optional<std::int64_t> JsonReader::maybe_integer64(std::string_view key, std::int64_t low,
                                                        std::int64_t high) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return std::nullopt;
  const auto value = document_->as_whole(i);
  if (value && *value >= low && *value <= high) return value;
  problem_at(i, between("a whole number", low, high));
  return std::nullopt;
}

double JsonReader::number(std::string_view key, double low, double high) {
  if (find_present(key) == no_json) return missing(key, between("a number", low, high)), low;
  return maybe_number(key, low, high).value_or(low);
}

std::optional<double> JsonReader::maybe_number(std::string_view key, double low, double high) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return std::nullopt;
  const auto value = document_->as_number(i);
  if (value && *value >= low && *value <= high) return value;
  problem_at(i, between("a number", low, high));
  return std::nullopt;
}

JsonReader JsonReader::object(std::string_view key) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return missing(key, "an object"), JsonReader(*this, Silent{});
  return JsonReader(*document_, i, *problems_);
}

std::optional<JsonReader> JsonReader::maybe_object(std::string_view key) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return std::nullopt;
  return JsonReader(*document_, i, *problems_);
}

std::vector<std::string> JsonReader::texts(std::string_view key) {
  std::vector<std::string> out;
  for (const JsonIndex i : elements(key, "an array of texts")) {
    if (const auto value = document_->as_text(i))
      out.emplace_back(*value);
    else
      problem_at(i, "a text");
  }
  return out;
}

std::vector<double> JsonReader::numbers(std::string_view key) {
  std::vector<double> out;
  for (const JsonIndex i : elements(key, "an array of numbers")) {
    if (const auto value = document_->as_number(i))
      out.push_back(*value);
    else
      problem_at(i, "a number");
  }
  return out;
}

std::vector<JsonReader> JsonReader::objects(std::string_view key) {
  std::vector<JsonReader> out;
  for (const JsonIndex i : elements(key, "an array of objects"))
    out.emplace_back(*document_, i, *problems_);
  return out;
}

std::optional<std::size_t> JsonReader::choice_index(std::string_view key,
                                                    const std::vector<std::string_view>& names,
                                                    bool required) {
  const JsonIndex i = find_present(key);
  if (i == no_json) {
    if (required) missing(key, one_of(names));
    return std::nullopt;
  }
  if (const auto value = document_->as_text(i)) {
    const auto found = std::find(names.begin(), names.end(), *value);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  problem_at(i, one_of(names));
  return std::nullopt;
}

Provenance JsonReader::provenance() {
  Provenance out;
  if (kind("source") == JsonKind::array) {
    out.source = joined(texts("source"), "; ");
    if (out.source.empty()) problem("source", "a text, or an array of some");
  } else {
    out.source = text("source");
  }
  out.date = text("date");
  if (!out.date.empty() && !is_date(out.date))
    problem("date", "a day as YYYY-MM-DD, YYYY-MM or YYYY, or unknown");
  if (auto sources = maybe_object("field_sources"))
    for (const std::string& field : sources->keys())
      out.fields.push_back({field, sources->text(field)});
  return out;
}

void JsonReader::ignore(std::string_view key) { remember(key, member(key)); }

void JsonReader::remember(std::string_view key, JsonIndex i) {
  if (i == no_json)
    absent_.emplace_back(key);
  else
    asked_.push_back(i);
}

template <class Tell>
void JsonReader::each_unread(Tell tell) const {
  std::vector<JsonIndex> known = asked_;
  std::sort(known.begin(), known.end());
  for (const JsonIndex i : members()) {
    if (std::binary_search(known.begin(), known.end(), i)) continue;
    std::vector<std::string_view> keys(absent_.begin(), absent_.end());
    for (const JsonIndex k : known) keys.push_back(document_->key(k));
    const auto near = suggest(document_->key(i), keys);
    tell(i, near.empty() ? std::string() : "; did you mean " + near.front() + "?");
  }
}

void JsonReader::finish() {
  each_unread([this](JsonIndex i, const std::string& hint) {
    add(document_->place(i), "unknown key" + hint);
  });
}

std::vector<std::string> JsonReader::unread() const {
  std::vector<std::string> words;
  each_unread([&](JsonIndex i, const std::string& hint) {
    words.push_back(std::string(document_->key(i)) + " is not read" + hint);
  });
  return words;
}

void JsonReader::problem(std::string_view key, const std::string& expectation) {
  const JsonIndex i = member(key);
  if (i == no_json) return missing(key, expectation);
  problem_at(i, expectation);
}

void JsonReader::problem_here(const std::string& sentence) { add(where(), sentence); }

JsonIndex JsonReader::member(std::string_view key) const {
  if (node_ == no_json) return no_json;
  const JsonKey name(key);
  // Members are mostly asked for in the order of the file; many are asked for that are absent.
  if (next_ != no_json && document_->is_called(next_, name)) return found(next_);
  constexpr std::uint32_t many = 16;
  if (document_->at(node_).children > many) return looked_up(name);
  for (JsonIndex i = document_->at(node_).first_child; i != no_json;
       i = document_->at(i).next_sibling)
    if (document_->is_called(i, name)) return found(i);
  return no_json;
}

JsonIndex JsonReader::looked_up(const JsonKey& name) const {
  const std::size_t places = std::bit_ceil(std::size_t{2} * document_->at(node_).children);
  const auto place_from = [&](std::uint32_t hash, auto ends) {
    std::size_t at = hash % places;
    while (table_[at] != no_json && !ends(table_[at])) at = (at + 1) % places;
    return at;
  };
  if (table_.empty()) {
    table_.assign(places, no_json);
    for (const JsonIndex i : members())
      table_[place_from(document_->at(i).key_hash, [](JsonIndex) { return false; })] = i;
  }
  const auto is_it = [&](JsonIndex i) { return document_->is_called(i, name); };
  const JsonIndex i = table_[place_from(name.hash, is_it)];
  return i == no_json ? no_json : found(i);
}

JsonIndex JsonReader::found(JsonIndex i) const {
  next_ = document_->at(i).next_sibling;
  return i;
}

std::vector<JsonIndex> JsonReader::members() const {
  if (node_ == no_json) return {};
  return document_->children(node_);
}

JsonIndex JsonReader::find_present(std::string_view key) {
  const JsonIndex i = member(key);
  remember(key, i);
  return i != no_json && document_->at(i).kind == JsonKind::null ? no_json : i;
}

std::vector<JsonIndex> JsonReader::elements(std::string_view key, std::string_view expectation) {
  const JsonIndex i = find_present(key);
  if (i == no_json) return {};
  if (document_->at(i).kind == JsonKind::array) return document_->children(i);
  problem_at(i, std::string(expectation));
  return {};
}

// An object that is missing itself has been reported; its members need no more words.
void JsonReader::missing(std::string_view key, const std::string& expectation) {
  if (node_ == no_json) return;
  const bool null = member(key) != no_json;
  add(where(key),
      (null ? "expected " + expectation + ", found null" : "missing; expected " + expectation));
}

// Counting how far down a long array an element stands takes time, so only for what is listed.
void JsonReader::problem_at(JsonIndex node, const std::string& expectation) {
  if (problems_->size() >= max_problems) return;
  add(document_->place(node), "expected " + expectation + ", found " + document_->shown(node));
}

void JsonReader::add(std::string where, std::string what) {
  if (problems_->size() >= max_problems) return;
  if (problems_->size() + 1 == max_problems)
    what = "and more problems follow, which are not listed";
  problems_->push_back({document_->kind, std::move(where), std::move(what)});
}

std::vector<JsonReader> root_objects(const JsonDocument& document, Problems& problems) {
  std::vector<JsonReader> out;
  if (document.at(0).kind != JsonKind::array) {
    problems.push_back({document.kind, document.place(0),
                        "expected an array of objects, found " + document.shown(0)});
    return out;
  }
  for (const JsonIndex i : document.children(0)) out.emplace_back(document, i, problems);
  return out;
}

}  // namespace shardwise
