#include "catalog/json_reader.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "tests/catch.hpp"

using namespace shardwise;

namespace {

struct Reading {
  JsonDocument document;
  Problems problems;
  explicit Reading(const std::string& text) : document(*parse_json(text, "x.json")) {}
  JsonReader root() { return JsonReader(document, problems); }
  std::string problem(std::size_t i = 0) const {
    return i < problems.size() ? problems[i].where + ": " + problems[i].what : "";
  }
};

}  // namespace

TEST_CASE("required members are read") {
  Reading reading(R"({"t": "text", "f": true, "i": 7, "big": 5000000000, "n": 2, "o": {"x": 1}})");
  JsonReader r = reading.root();
  CHECK(r.text("t") == "text");
  CHECK(r.flag("f"));
  CHECK(r.integer("i", 0, 10) == 7);
  CHECK(r.integer64("big", 0, std::int64_t{1} << 40) == 5'000'000'000);
  CHECK(r.number("n", 0, 10) == 2.0);  // a whole number is a number
  CHECK(r.object("o").integer("x", 0, 1) == 1);
  r.finish();
  CHECK(reading.problems.empty());
  CHECK(r.clean());
}

TEST_CASE("bounds are inclusive") {
  Reading reading(R"({"low": 1, "high": 3, "below": 0, "above": 4})");
  JsonReader r = reading.root();
  CHECK(r.integer("low", 1, 3) == 1);
  CHECK(r.integer("high", 1, 3) == 3);
  CHECK(reading.problems.empty());
  CHECK(r.integer("below", 1, 3) == 1);  // the low bound stands in
  CHECK(r.number("above", 1, 3) == 1.0);
  CHECK(reading.problem(0) == "x.json:/below: expected a whole number from 1 to 3, found 0");
  CHECK(reading.problem(1) == "x.json:/above: expected a number from 1 to 3, found 4");
  CHECK_FALSE(r.clean());
}

TEST_CASE("a real without a fraction is a whole number, as in JSON Schema") {
  // 2^53 = 9007199254740992 is the first double whose neighbour above is not one more.
  Reading reading(
      R"({"point": 4096.0, "power": 4e3, "minus": -2.0, "most": 9007199254740991.0,
          "half": 2.5, "beyond": 9007199254740992.0, "huge": 1e300})");
  JsonReader r = reading.root();
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  CHECK(r.integer("point", 1, 5000) == 4096);
  CHECK(r.integer("power", 1, 5000) == 4000);
  CHECK(r.maybe_integer("minus", -5, 5) == -2);
  CHECK(r.integer64("most", 0, any) == 9'007'199'254'740'991);
  CHECK(reading.problems.empty());
  CHECK_FALSE(r.maybe_integer("half", 0, 5));
  CHECK_FALSE(r.maybe_integer64("beyond", 0, any));
  CHECK_FALSE(r.maybe_integer64("huge", 0, any));
  CHECK(reading.problems.size() == 3);
  CHECK(reading.problem(0) == "x.json:/half: expected a whole number from 0 to 5, found 2.5");
}

TEST_CASE("optional members: absent and null are nothing, a wrong type is a problem") {
  Reading reading(R"({"null": null, "wrong": [1]})");
  JsonReader r = reading.root();
  CHECK_FALSE(r.maybe_text("absent"));
  CHECK_FALSE(r.maybe_text("null"));
  CHECK_FALSE(r.maybe_integer("null", 0, 1));
  CHECK_FALSE(r.maybe_object("null"));
  CHECK(r.texts("null").empty());
  CHECK_FALSE(r.has("null"));
  CHECK(reading.problems.empty());
  CHECK_FALSE(r.maybe_flag("wrong"));
  CHECK(reading.problem() == "x.json:/wrong: expected true or false, found an array of 1");
}

TEST_CASE("a missing object is one problem, not one per member") {
  Reading reading("{}");
  JsonReader r = reading.root();
  JsonReader inner = r.object("moe");
  CHECK(inner.integer("experts", 1, 9) == 1);
  CHECK(inner.text("name").empty());
  inner.finish();
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problem() == "x.json:/moe: missing; expected an object");
}

TEST_CASE("arrays name the element that is wrong") {
  Reading reading(R"({"names": ["a", 2], "sizes": [1, "b"], "rows": [{"n": 1}, 5]})");
  JsonReader r = reading.root();
  CHECK(r.texts("names") == std::vector<std::string>{"a"});
  CHECK(r.numbers("sizes") == std::vector<double>{1});
  std::vector<JsonReader> rows = r.objects("rows");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].integer("n", 0, 1) == 1);
  CHECK(rows[1].integer("n", 0, 1) == 0);  // silent: the row itself was reported
  REQUIRE(reading.problems.size() == 3);
  CHECK(reading.problem(0) == "x.json:/names/1: expected a text, found 2");
  CHECK(reading.problem(1) == "x.json:/sizes/1: expected a number, found \"b\"");
  CHECK(reading.problem(2) == "x.json:/rows/1: expected an object, found 5");
}

TEST_CASE("choices list what is known") {
  constexpr std::array<std::pair<std::string_view, int>, 2> rows{{{"one", 1}, {"two", 2}}};
  Reading reading(R"({"a": "two", "b": "three"})");
  JsonReader r = reading.root();
  CHECK(r.choice("a", rows) == 2);
  CHECK_FALSE(r.maybe_choice("absent", rows));
  CHECK(r.choice("b", rows) == 1);
  CHECK(reading.problem() == "x.json:/b: expected one of one, two, found \"three\"");
}

TEST_CASE("unknown keys come with the nearest known one, asked for or not found") {
  Reading reading(R"({"memory_gib": 1, "sm_cuont": 2, "zzz": 3, "known": 4})");
  JsonReader r = reading.root();
  r.number("memory_gib", 0, 1);
  r.maybe_integer("sm_count", 0, 1);
  r.ignore("known");
  r.finish();
  REQUIRE(reading.problems.size() == 2);
  CHECK(reading.problem(0) == "x.json:/sm_cuont: unknown key; did you mean sm_count?");
  CHECK(reading.problem(1) == "x.json:/zzz: unknown key");
}

TEST_CASE("members are found in any order, repeatedly") {
  Reading reading(R"({"a": 1, "b": 2, "c": 3})");
  JsonReader r = reading.root();
  for (const auto& [key, value] : {std::pair{"c", 3}, {"a", 1}, {"c", 3}, {"b", 2}, {"a", 1}})
    CHECK(r.integer(key, 0, 9) == value);
  CHECK(r.keys() == std::vector<std::string>{"a", "b", "c"});
  r.finish();
  CHECK(reading.problems.empty());
}

// More members than are looked through one by one: backwards, which is never the next one, and each
// with a name that is not there.
TEST_CASE("members of a large object are found in any order") {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += (i == 0 ? "{\"m" : ", \"m") + std::to_string(i) + "\": " + std::to_string(i);
  Reading reading(text + "}");
  JsonReader r = reading.root();
  for (int i = 99; i >= 0; --i) {
    CHECK(r.integer("m" + std::to_string(i), 0, 99) == i);
    CHECK_FALSE(r.maybe_integer("n" + std::to_string(i), 0, 99));
  }
  CHECK(r.keys().size() == 100);
  r.finish();
  CHECK(reading.problems.empty());
}

TEST_CASE("provenance needs a source and a date") {
  for (const char* date : {"2026", "2026-02", "2026-02-07", "unknown"}) {
    Reading reading(std::string(R"({"source": "s", "date": ")") + date +
                    R"(", "field_sources": {"x": "y"}})");
    JsonReader r = reading.root();
    const Provenance p = r.provenance();
    CHECK(p == Provenance{"s", date, {{"x", "y"}}});
    r.finish();
    CHECK(reading.problems.empty());
  }
  for (const char* date :
       {"", "26", "2026-1", "2026-00", "2026-02-32", "2026/02/07", "yesterday"}) {
    Reading reading(std::string(R"({"source": "s", "date": ")") + date + R"("})");
    JsonReader r = reading.root();
    r.provenance();
    CHECK(reading.problems.size() == 1);
  }
}

TEST_CASE("a source of several parts is one, joined") {
  Reading reading(R"({"source": ["a; b", "c"], "date": "2026"})");
  JsonReader r = reading.root();
  CHECK(r.provenance().source == "a; b; c");
  r.finish();
  CHECK(reading.problems.empty());
  for (const char* none : {"[]", "[\"\"]", "\"\"", "5"}) {
    Reading without(std::string(R"({"source": )") + none + R"(, "date": "2026"})");
    JsonReader root = without.root();
    root.provenance();
    CHECK(without.problems.size() == 1);
  }
}

TEST_CASE("a document with a million flaws lists two hundred and says so") {
  std::string text = "{\"rows\": [0";
  for (int i = 1; i < 999'990; ++i) text += ",0";  // the parser takes a million values
  Reading reading(text + "]}");
  JsonReader r = reading.root();
  r.objects("rows");
  REQUIRE(reading.problems.size() == max_problems);
  CHECK(reading.problems.back().what == "and more problems follow, which are not listed");
  CHECK_FALSE(r.clean());
}

TEST_CASE("records: an array of objects at the root") {
  Reading good(R"([{"n": 1}, {"n": 2}])");
  auto records = root_objects(good.document, good.problems);
  REQUIRE(records.size() == 2);
  CHECK(records[1].integer("n", 0, 9) == 2);
  CHECK(records[1].where("n") == "x.json:/1/n");
  Reading bad("{}");
  CHECK(root_objects(bad.document, bad.problems).empty());
  CHECK(bad.problem() == "x.json: expected an array of objects, found an object of 0");
}
