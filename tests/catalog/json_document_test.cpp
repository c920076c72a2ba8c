#include "catalog/json_document.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/holds.hpp"

using namespace shardwise;

namespace {

// The one problem of a text that must not parse.
std::string json_refusal(const std::string& text) {
  const auto parsed = parse_json(text, "x.json");
  REQUIRE_FALSE(parsed);
  REQUIRE(parsed.error().size() == 1);
  CHECK(parsed.error()[0].kind == ProblemKind::file);
  return parsed.error()[0].where + ": " + parsed.error()[0].what;
}

}  // namespace

TEST_CASE("a JSON text becomes nodes that know their place") {
  const auto parsed =
      parse_json(R"({"a": {"b/c": [1, 2.5, "x", null, true]}, "d~": {}})", "x.json");
  REQUIRE(parsed);
  const JsonDocument& d = *parsed;
  const JsonIndex array = d.member(d.member(0, "a"), "b/c");
  REQUIRE(array != no_json);
  const auto elements = d.children(array);
  REQUIRE(elements.size() == 5);
  // RFC 6901: '/' in a key is ~1 and '~' is ~0.
  CHECK(d.pointer(elements[2]) == "/a/b~1c/2");
  CHECK(d.pointer(d.member(0, "d~")) == "/d~0");
  CHECK(d.place(elements[2]) == "x.json:/a/b~1c/2");
  CHECK(d.place(0) == "x.json");
  CHECK(d.as_number(elements[0]) == 1.0);
  CHECK(d.as_number(elements[1]) == 2.5);
  CHECK_FALSE(d.as_number(elements[2]));
  CHECK(d.shown(elements[0]) == "1");
  CHECK(d.shown(elements[1]) == "2.5");
  CHECK(d.shown(elements[2]) == "\"x\"");
  CHECK(d.shown(elements[3]) == "null");
  CHECK(d.shown(elements[4]) == "true");
  CHECK(d.shown(array) == "an array of 5");
  CHECK(d.shown(d.member(0, "d~")) == "an object of 0");
  CHECK(d.member(0, "b/c") == no_json);
}

TEST_CASE("a byte order mark is no part of the text") {
  CHECK(parse_json("\xEF\xBB\xBF{}", "x.json"));
}

TEST_CASE("integers are exact to 64 bits, larger ones are reals") {
  const auto parsed = parse_json("[9223372036854775807, 9223372036854775808]", "x.json");
  REQUIRE(parsed);
  const auto e = parsed->children(0);
  CHECK(parsed->at(e[0]).kind == JsonKind::integer);
  CHECK(parsed->at(e[1]).kind == JsonKind::real);
}

TEST_CASE("nesting ends at 64 levels, however deep the text goes") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(parse_json(nested(64), "x.json"));
  CHECK(json_refusal(nested(65)) == "x.json: nested more than 64 levels deep");
  CHECK(json_refusal(std::string(std::size_t{15} << 20, '[')) ==
        "x.json: nested more than 64 levels deep");
}

TEST_CASE("a hundred million brackets are refused unread") {
  CHECK(json_refusal(std::string(100'000'000, '[')) ==
        "x.json: larger than 16 MiB, the most that is read");
}

TEST_CASE("a million values are the most") {
  // "[0,0,...]": the array is one value, so 999,999 zeros still fit.
  const auto zeros = [](std::size_t n) {
    std::string text = "[0";
    for (std::size_t i = 1; i < n; ++i) text += ",0";
    return text + ']';
  };
  CHECK(parse_json(zeros(999'999), "x.json"));
  CHECK(json_refusal(zeros(1'000'000)) == "x.json: more than 1000000 values");
}

TEST_CASE("a duplicate key among a hundred thousand is found") {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"key" + std::to_string(i) + "\":0,";
  CHECK(parse_json(text + "\"last\":0}", "x.json"));
  CHECK(holds(json_refusal(text + "\"key5\":0}"), "x.json:/key5: the key appears twice"));
}

TEST_CASE("messages hold no bytes that a terminal would choke on") {
  CHECK(printable("plain") == "plain");
  CHECK(printable("h\xC3\xA4") == "h\xC3\xA4");           // well-formed: kept
  CHECK(printable("\x1B[31m") == "\\x1B[31m");            // escape sequence
  CHECK(printable("\xFF\xC0\xAF") == "\\xFF\\xC0\\xAF");  // overlong and stray bytes
  CHECK(printable("\xED\xA0\x80") == "\\xED\\xA0\\x80");  // a surrogate
  CHECK(printable("a\nb") == "a\\x0Ab");
  CHECK(printable(std::string(100, 'x'), 10) == "xxxxxxxxxx...");
  CHECK(printable(std::string(10, 'x'), 10) == "xxxxxxxxxx");
  const std::string said = json_refusal("{\"a\": \"\xFF\x1B[2J\"}");
  CHECK(said.find('\x1B') == std::string::npos);
  CHECK(said.find('\xFF') == std::string::npos);
  CHECK(json_refusal("[" + std::string(100'000, '7') + "e]").size() < 1000);
}

TEST_CASE("a request document's problems are problems of the request") {
  const auto parsed = parse_json("{", "--request", ProblemKind::request);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error()[0].kind == ProblemKind::request);
}
