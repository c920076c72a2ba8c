// JsonReader: reads the members of one JSON object strictly and collects every problem.
//
//   JsonReader r(document, problems);
//   gpu.name = r.text("name");
//   gpu.power_w = r.number("tdp_w", 1, 10000);
//   if (auto mib = r.maybe_number("memory_reported_mib", 1, 1e9)) ...
//   gpu.provenance = r.provenance();
//   r.finish();  // unknown keys are problems, with the nearest known key
//
// A problem says file:pointer, the value found and what was expected. A read that fails records
// its problem and returns a harmless value (the low bound, "", false); the caller looks at
// `problems` once, at the end. `maybe_` reads take an absent key and null as nothing. A document
// whose extra keys are nobody's business (config.json) is read without finish(). The document must
// outlive its readers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/json_document.hpp"
#include "catalog/provenance.hpp"
#include "catalog/result.hpp"
#include "catalog/text_file.hpp"

namespace shardwise {

inline constexpr std::size_t max_problems = 200;  // more are not listed

class JsonReader {
 public:
  // The root, which must be an object (a problem is recorded where it is not).
  JsonReader(const JsonDocument& document, Problems& problems);
  JsonReader(const JsonDocument& document, JsonIndex node, Problems& problems);

  bool has(std::string_view key) const;           // present and not null
  JsonKind kind(std::string_view key) const;      // null where absent
  std::vector<std::string> keys() const;          // in the order of the file
  std::string where() const;                      // "models/x.json:/moe"
  std::string where(std::string_view key) const;  // "models/x.json:/moe/experts"

  // Required members. Bounds are inclusive.
  std::string text(std::string_view key);  // not empty
  bool flag(std::string_view key);
  int integer(std::string_view key, int low, int high);
  std::int64_t integer64(std::string_view key, std::int64_t low, std::int64_t high);
  double number(std::string_view key, double low, double high);
  JsonReader object(std::string_view key);

  // Optional members.
  std::optional<std::string> maybe_text(std::string_view key);  // may be empty
  std::optional<bool> maybe_flag(std::string_view key);
  std::optional<int> maybe_integer(std::string_view key, int low, int high);
  std::optional<std::int64_t> maybe_integer64(std::string_view key, std::int64_t low,
                                              std::int64_t high);
  std::optional<double> maybe_number(std::string_view key, double low, double high);
  std::optional<JsonReader> maybe_object(std::string_view key);
  std::vector<std::string> texts(std::string_view key);   // array of strings; absent: empty
  std::vector<double> numbers(std::string_view key);      // array of numbers; absent: empty
  std::vector<JsonReader> objects(std::string_view key);  // array of objects; absent: empty

  // One of a list of names; the problem lists them. `rows` pairs each name with its value.
  template <class E, std::size_t n>
  E choice(std::string_view key, const std::array<std::pair<std::string_view, E>, n>& rows) {
    const auto found = choice_index(key, names_of(rows), true);
    return rows[found.value_or(0)].second;
  }
  template <class E, std::size_t n>
  std::optional<E> maybe_choice(std::string_view key,
                                const std::array<std::pair<std::string_view, E>, n>& rows) {
    const auto found = choice_index(key, names_of(rows), false);
    if (!found) return std::nullopt;
    return rows[*found].second;
  }
  // The same for names alone: an index into `names`.
  std::optional<std::size_t> choice_index(std::string_view key,
                                          const std::vector<std::string_view>& names,
                                          bool required);

  // "source" (a text, or an array of texts: what is joined by "; ") and "date" (YYYY, YYYY-MM,
  // YYYY-MM-DD or "unknown") are required; "field_sources" is an object of strings, optional.
  Provenance provenance();

  void ignore(std::string_view key);  // a known key that is not read here
  void finish();                      // every key never asked for is a problem
  // The same in words, for objects whose other keys are not refused: "liger is not read; did you
  // mean liger_kernel?"
  std::vector<std::string> unread() const;

  // Records a problem of this object's member `key`; the value found is appended.
  void problem(std::string_view key, const std::string& expectation);
  void problem_here(const std::string& sentence);
  bool clean() const;  // no problem was added to the list since this reader was made

 private:
  template <class Tell>
  void each_unread(Tell tell) const;
  template <class E, std::size_t n>
  static std::vector<std::string_view> names_of(
      const std::array<std::pair<std::string_view, E>, n>& rows) {
    std::vector<std::string_view> names;
    for (const auto& r : rows) names.push_back(r.first);
    return names;
  }
  struct Silent {};  // of an object that is missing: reads give defaults and add no problem
  JsonReader(const JsonReader& parent, Silent);

  JsonIndex member(std::string_view key) const;
  JsonIndex looked_up(const JsonKey& name) const;
  JsonIndex found(JsonIndex i) const;
  std::vector<JsonIndex> members() const;
  void remember(std::string_view key, JsonIndex i);
  JsonIndex find_present(std::string_view key);  // remembers the key; null counts as absent
  std::vector<JsonIndex> elements(std::string_view key, std::string_view expectation);
  void missing(std::string_view key, const std::string& expectation);
  void problem_at(JsonIndex node, const std::string& expectation);
  void add(std::string where, std::string what);

  const JsonDocument* document_;
  JsonIndex node_;                    // no_json: silent
  mutable JsonIndex next_ = no_json;  // behind the member found last
  // Of many members: a hash table, open addressing, of twice as many places or more; made when one
  // is first asked for out of turn.
  mutable std::vector<JsonIndex> table_;
  Problems* problems_;
  std::size_t problems_before_;
  std::vector<JsonIndex> asked_;     // members that were asked for
  std::vector<std::string> absent_;  // keys that were asked for in vain
};

// The records of a document whose root is an array of objects.
std::vector<JsonReader> root_objects(const JsonDocument& document, Problems& problems);

}  // namespace shardwise
