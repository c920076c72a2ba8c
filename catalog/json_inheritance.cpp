#include "catalog/json_inheritance.hpp"

#include <algorithm>
#include <cstddef>
#include <variant>

namespace shardwise {
namespace {

// Where the base's nodes and texts come to lie behind those that are there.
struct Shift {
  JsonIndex nodes = 0;
  std::uint32_t texts = 0;

  JsonIndex operator()(JsonIndex i) const { return i == no_json ? no_json : i + nodes; }
  JsonText operator()(JsonText t) const { return {t.begin + texts, t.size}; }
};

JsonNode moved(const JsonNode& node, const Shift& shift) {
  JsonNode out = node;
  out.key = shift(node.key);
  out.parent = shift(node.parent);
  out.first_child = shift(node.first_child);
  out.next_sibling = shift(node.next_sibling);
  if (const auto* text = std::get_if<JsonText>(&node.value)) out.value = shift(*text);
  return out;
}

// A node and what is in it follow each other: the last one is before the next sibling, or is the
// last of its last child.
JsonIndex end_of(const JsonDocument& document, JsonIndex node) {
  while (document.at(node).first_child != no_json) node = document.children(node).back();
  return node + 1;
}

}  // namespace

void inherit_members(JsonDocument& document, JsonIndex object, const JsonDocument& base,
                     JsonIndex base_object, std::span<const std::string_view> own) {
  Shift shift;
  shift.texts = static_cast<std::uint32_t>(document.texts.size());
  document.texts += base.texts;
  const std::vector<JsonIndex> before = document.children(object);
  JsonIndex last = before.empty() ? no_json : before.back();
  for (const JsonIndex member : base.children(base_object)) {
    const std::string_view key = base.key(member);
    if (std::find(own.begin(), own.end(), key) != own.end()) continue;
    if (document.member(object, key) != no_json) continue;
    const auto place = static_cast<JsonIndex>(document.nodes.size());
    shift.nodes = place - member;  // modulo 2^32, as `place` may be the smaller one
    for (JsonIndex i = member; i < end_of(base, member); ++i)
      document.nodes.push_back(moved(base.at(i), shift));
    document.nodes[place].parent = object;
    document.nodes[place].next_sibling = no_json;
    (last == no_json ? document.nodes[object].first_child : document.nodes[last].next_sibling) =
        place;
    last = place;
    ++document.nodes[object].children;
  }
}

}  // namespace shardwise
