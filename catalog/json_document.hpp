// A JSON text, parsed and checked, as one flat array of nodes that know their parents.
//
// Refused, each with one clear problem: broken syntax (with line and column), NaN and infinities,
// numbers out of range, ill-formed UTF-8, duplicate keys, more than 64 levels, more than 16 MiB,
// more than a million values. Time and memory are linear in the text (n log n in the keys of one
// object), and the call stack does not grow with the nesting. The parser behind it is seen in
// json_document.cpp only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "catalog/result.hpp"

namespace shardwise {

inline constexpr std::size_t json_max_bytes = std::size_t{16} << 20;
inline constexpr int json_max_levels = 64;

enum class JsonKind : std::uint8_t { null, boolean, integer, real, text, array, object };

using JsonIndex = std::uint32_t;
inline constexpr JsonIndex no_json = std::numeric_limits<JsonIndex>::max();

// A stretch of JsonDocument::texts, where all keys and texts lie one behind another.
struct JsonText {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
};

// A name to look for among many.
struct JsonKey {
  std::string_view text;
  std::uint32_t hash;
  explicit JsonKey(std::string_view key);
};

struct JsonNode {
  std::variant<std::monostate, bool, std::int64_t, double, JsonText> value;
  JsonText key;  // of a member; empty for elements and for the root
  JsonIndex parent = no_json;
  JsonIndex first_child = no_json;
  JsonIndex next_sibling = no_json;
  std::uint32_t children = 0;
  std::uint32_t key_hash = 0;  // equal for equal keys
  JsonKind kind = JsonKind::null;
};

struct JsonDocument {
  std::string name;  // as problems call it: "devices/rtx-4090.json"
  ProblemKind kind = ProblemKind::file;
  std::vector<JsonNode> nodes;  // nodes[0] is the root
  std::string texts;

  const JsonNode& at(JsonIndex i) const { return nodes[i]; }
  std::string_view text(JsonText t) const {
    return std::string_view(texts).substr(t.begin, t.size);
  }
  std::string_view key(JsonIndex i) const { return text(at(i).key); }
  bool is_called(JsonIndex i, const JsonKey& wanted) const {
    return at(i).key_hash == wanted.hash && key(i) == wanted.text;
  }
  JsonIndex member(JsonIndex object, std::string_view key) const;  // no_json where absent
  std::vector<JsonIndex> children(JsonIndex container) const;
  std::optional<double> as_number(JsonIndex node) const;  // integer or real
  // Also of a real that has no fraction, as JSON Schema's "integer" takes it: 4096.0, 4e3.
  std::optional<std::int64_t> as_whole(JsonIndex node) const;
  std::optional<std::string_view> as_text(JsonIndex node) const;
  std::string pointer(JsonIndex node) const;  // RFC 6901: "/moe/experts", "" for the root
  std::string place(JsonIndex node) const;    // "models/x.json:/moe/experts"
  std::string shown(JsonIndex node) const;  // the value found, shortened: "\"abc\"", "12", "{...}"
};

// `name` is what problems call the document; `kind` is the kind of the problems.
Result<JsonDocument> parse_json(std::string_view text, std::string name,
                                ProblemKind kind = ProblemKind::file);
Result<JsonDocument> parse_json_file(const std::filesystem::path& path, std::string name,
                                     ProblemKind kind = ProblemKind::file);

// Text that is safe to print: control characters and ill-formed UTF-8 as \xNN, at most about
// `limit` bytes and then "...".
std::string printable(std::string_view text, std::size_t limit = 60);

// The shortest text that reads back as the number: "0.1", "1000000", "1e+20".
std::string shown_number(double value);

}  // namespace shardwise
