#include "catalog/json_document.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#ifdef __SSE2__
#define RAPIDJSON_SSE2
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <rapidjson/stream.h>

#include "catalog/text_file.hpp"

namespace shardwise {
namespace {

constexpr std::size_t max_nodes = 1'000'000;  // about 50 MB of JsonNode

// Receives the events of RapidJSON's reader and appends nodes. Returning false ends the parse;
// `failure` then says why.
class TreeBuilder {
 public:
  explicit TreeBuilder(JsonDocument& document) : document_(document) {}

  std::string failure;
  JsonIndex failed_at = no_json;

  bool Null() { return append(JsonKind::null, std::monostate{}); }
  bool Bool(bool v) { return append(JsonKind::boolean, v); }
  bool Int(std::int32_t v) { return Int64(v); }
  bool Uint(std::uint32_t v) { return Int64(v); }
  bool Int64(std::int64_t v) { return append(JsonKind::integer, v); }
  bool Uint64(std::uint64_t v) {
    if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return Double(static_cast<double>(v));
    return Int64(static_cast<std::int64_t>(v));
  }
  bool Double(double v) { return append(JsonKind::real, v); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return fail("a number without a kind"); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return append(JsonKind::text, kept({text, size}));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key_ = kept({text, size});
    key_hash_ = JsonKey({text, size}).hash;
    return true;
  }
  bool StartObject() { return open(JsonKind::object); }
  bool StartArray() { return open(JsonKind::array); }
  bool EndObject(rapidjson::SizeType);
  bool EndArray(rapidjson::SizeType) {
    open_.pop_back();
    return true;
  }

 private:
  struct Open {
    JsonIndex container;
    JsonIndex last_child;
  };

  template <class Value>
  bool append(JsonKind kind, Value&& value) {
    if (document_.nodes.size() >= max_nodes)
      return fail("more than " + std::to_string(max_nodes) + " values");
    const auto index = static_cast<JsonIndex>(document_.nodes.size());
    JsonNode& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.value = std::forward<Value>(value);
    if (!open_.empty() && document_.nodes[open_.back().container].kind == JsonKind::object) {
      node.key = key_;
      node.key_hash = key_hash_;
    }
    if (!open_.empty()) link(index);
    return true;
  }
  bool open(JsonKind kind) {
    if (open_.size() >= static_cast<std::size_t>(json_max_levels))
      return fail("nested more than " + std::to_string(json_max_levels) + " levels deep");
    if (!append(kind, std::monostate{})) return false;
    open_.push_back({static_cast<JsonIndex>(document_.nodes.size() - 1), no_json});
    return true;
  }
  void link(JsonIndex index) {
    Open& open = open_.back();
    document_.nodes[index].parent = open.container;
    if (open.last_child == no_json)
      document_.nodes[open.container].first_child = index;
    else
      document_.nodes[open.last_child].next_sibling = index;
    open.last_child = index;
    ++document_.nodes[open.container].children;
  }
  // Decoded texts are no longer than the source, which is at most 16 MiB: offsets fit.
  JsonText kept(std::string_view text) {
    const auto begin = static_cast<std::uint32_t>(document_.texts.size());
    document_.texts += text;
    return {begin, static_cast<std::uint32_t>(text.size())};
  }
  bool fail(std::string why) {
    failure = std::move(why);
    return false;
  }

  JsonDocument& document_;
  std::vector<Open> open_;
  JsonText key_;
  std::uint32_t key_hash_ = 0;
};

// Whether any two of few members have the same key.
bool has_twins(const JsonDocument& document, JsonIndex object) {
  for (JsonIndex a = document.at(object).first_child; a != no_json; a = document.at(a).next_sibling)
    for (JsonIndex b = document.at(a).next_sibling; b != no_json; b = document.at(b).next_sibling)
      if (document.at(a).key_hash == document.at(b).key_hash && document.key(a) == document.key(b))
        return true;
  return false;
}

// Duplicate keys are found by sorting, so that an object with many keys costs n log n.
bool TreeBuilder::EndObject(rapidjson::SizeType) {
  const JsonIndex object = open_.back().container;
  open_.pop_back();
  constexpr std::uint32_t few = 12;
  if (document_.at(object).children <= few && !has_twins(document_, object)) return true;
  std::vector<JsonIndex> members = document_.children(object);
  std::sort(members.begin(), members.end(), [&](JsonIndex a, JsonIndex b) {
    const std::uint32_t hash_a = document_.at(a).key_hash, hash_b = document_.at(b).key_hash;
    if (hash_a != hash_b) return hash_a < hash_b;
    const int order = document_.key(a).compare(document_.key(b));
    return order != 0 ? order < 0 : a < b;
  });
  const auto twin = std::adjacent_find(
      members.begin(), members.end(),
      [&](JsonIndex a, JsonIndex b) { return document_.key(a) == document_.key(b); });
  if (twin == members.end()) return true;
  failed_at = *twin;
  return fail("the key appears twice in one object; every key may appear once");
}

std::string what_is_wrong(rapidjson::ParseErrorCode code) {
  switch (code) {
    case rapidjson::kParseErrorDocumentEmpty:
      return "nothing but spaces; expected JSON";
    case rapidjson::kParseErrorStringInvalidEncoding:
      return "a text that is not UTF-8";
    case rapidjson::kParseErrorStringEscapeInvalid:
      return "a control character, or an escape that JSON does not have";
    default:
      std::string sentence = rapidjson::GetParseError_En(code);
      if (sentence.ends_with('.')) sentence.pop_back();
      return sentence;
  }
}

// What stands at a byte of the text, from the beginning of the word or number that it is in to the
// end of the line.
std::string_view token_at(std::string_view text, std::size_t offset) {
  const auto of_word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-';
  };
  if (offset >= text.size()) return {};
  while (offset > 0 && of_word(text[offset]) && of_word(text[offset - 1])) --offset;
  return text.substr(offset, text.find('\n', offset + 1) - offset);
}

// "line 3, column 7", of a byte of the text.
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') + 1;  // 0 on the first line
  return "line " + std::to_string(lines + 1) + ", column " +
         std::to_string(before.size() - line_begin + 1);
}

std::string escaped_for_pointer(std::string_view key) {
  std::string out;
  for (const char c : printable(key)) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::size_t position_among_siblings(const JsonDocument& document, JsonIndex node) {
  std::size_t position = 0;
  JsonIndex i = document.at(document.at(node).parent).first_child;
  for (; i != node; i = document.at(i).next_sibling) ++position;
  return position;
}

// Length of the well-formed UTF-8 sequence at the front of `text`; 0 where it is ill-formed. The
// ranges are those of Unicode 15, table 3-7.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string shown_number(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return std::to_string(static_cast<std::int64_t>(value));
  char digits[40];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) return out + "...";
    const std::size_t length = utf8_length(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    if (length == 0 || lead < 0x20 || lead == 0x7F) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02X", static_cast<unsigned>(lead));
      out += hex;
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

// FNV-1a of 32 bits (Fowler, Noll and Vo).
JsonKey::JsonKey(std::string_view key) : text(key), hash(2166136261U) {
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
}

JsonIndex JsonDocument::member(JsonIndex object, std::string_view key) const {
  const JsonKey wanted(key);
  for (JsonIndex i = at(object).first_child; i != no_json; i = at(i).next_sibling)
    if (is_called(i, wanted)) return i;
  return no_json;
}

std::vector<JsonIndex> JsonDocument::children(JsonIndex container) const {
  std::vector<JsonIndex> out;
  out.reserve(at(container).children);
  for (JsonIndex i = at(container).first_child; i != no_json; i = at(i).next_sibling)
    out.push_back(i);
  return out;
}

std::optional<double> JsonDocument::as_number(JsonIndex index) const {
  const auto& value = at(index).value;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

std::optional<std::int64_t> JsonDocument::as_whole(JsonIndex index) const {
  const auto& value = at(index).value;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  const auto* real = std::get_if<double>(&value);
  constexpr double exact = 0x1p53;  // what is no smaller may have been rounded
  if (real && *real == std::floor(*real) && std::fabs(*real) < exact)
    return static_cast<std::int64_t>(*real);
  return std::nullopt;
}

std::optional<std::string_view> JsonDocument::as_text(JsonIndex index) const {
  if (const auto* found = std::get_if<JsonText>(&at(index).value)) return text(*found);
  return std::nullopt;
}

std::string JsonDocument::pointer(JsonIndex node) const {
  std::string out;
  for (JsonIndex i = node; at(i).parent != no_json; i = at(i).parent) {
    const bool in_array = at(at(i).parent).kind == JsonKind::array;
    out = '/' +
          (in_array ? std::to_string(position_among_siblings(*this, i))
                    : escaped_for_pointer(key(i))) +
          out;
  }
  return out;
}

std::string JsonDocument::place(JsonIndex node) const {
  const std::string below = pointer(node);
  return below.empty() ? name : name + ':' + below;
}

std::string JsonDocument::shown(JsonIndex index) const {
  const JsonNode& node = at(index);
  switch (node.kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return std::get<bool>(node.value) ? "true" : "false";
    case JsonKind::integer:
      return std::to_string(std::get<std::int64_t>(node.value));
    case JsonKind::real:
      return shown_number(std::get<double>(node.value));
    case JsonKind::text:
      return '"' + printable(text(std::get<JsonText>(node.value))) + '"';
    case JsonKind::array:
      return "an array of " + std::to_string(node.children);
    case JsonKind::object:
      return "an object of " + std::to_string(node.children);
  }
  return "nothing";
}

namespace {

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
}

// REQUIRES `stream` to end with a zero byte; it is overwritten. The reader calls itself, but the
// builder refuses more than json_max_levels.
template <unsigned checks>
rapidjson::ParseResult read_json(rapidjson::InsituStringStream& stream, TreeBuilder& builder) {
  rapidjson::Reader reader;
  return reader.Parse<rapidjson::kParseInsituFlag | rapidjson::kParseFullPrecisionFlag | checks>(
      stream, builder);
}

}  // namespace

Result<JsonDocument> parse_json(std::string_view text, std::string name, ProblemKind kind) {
  if (text.size() > json_max_bytes)
    return Problem{kind, name, "larger than 16 MiB, the most that is read"};
  if (text.empty()) return Problem{kind, name, "the file is empty; expected JSON"};
  const auto broken = [&](std::size_t offset, const std::string& why) {
    const std::string_view token = token_at(text, offset);
    return Problem{kind, name,
                   "not valid JSON: " + line_and_column(text, offset) + ": " + why +
                       (token.empty() ? " (the text ends)" : " (at " + printable(token, 20) + ")")};
  };
  // The reader takes a zero byte for the end of the text.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)
    return broken(zero, "a zero byte");
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  const std::size_t begin = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  JsonDocument document{name, kind, {}, {}};
  document.texts.reserve(text.size());
  document.nodes.reserve(std::min<std::size_t>(text.size() / 24 + 1, max_nodes));
  TreeBuilder builder(document);
  std::string copy;
  copy.reserve(text.size() + 16);  // the reader looks at 16 bytes at a time, also at the end
  copy = text.substr(begin);
  rapidjson::InsituStringStream stream(copy.data());
  const rapidjson::ParseResult result =
      is_ascii(copy) ? read_json<rapidjson::kParseNoFlags>(stream, builder)
                     : read_json<rapidjson::kParseValidateEncodingFlag>(stream, builder);
  if (!result.IsError()) return document;
  if (result.Code() != rapidjson::kParseErrorTermination)
    return broken(begin + result.Offset(), what_is_wrong(result.Code()));
  return Problem{kind,
                 builder.failed_at == no_json ? std::move(name) : document.place(builder.failed_at),
                 builder.failure};
}

Result<JsonDocument> parse_json_file(const std::filesystem::path& path, std::string name,
                                     ProblemKind kind) {
  const Result<std::string> text = read_text_file(path, name, json_max_bytes, kind);
  if (!text) return text.error();
  return parse_json(*text, std::move(name), kind);
}

}  // namespace shardwise
