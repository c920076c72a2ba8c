#include "planner/launch/config_text.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "catalog/json_document.hpp"
#include "catalog/require.hpp"

namespace shardwise {
namespace {

// The entries as the tree that their paths describe; children in order of first mention.
struct ConfigNode {
  std::string key;
  const ConfigValue* value = nullptr;  // of a leaf
  std::vector<ConfigNode> children;

  bool is_list() const {
    return !children.empty() && std::all_of(children.begin(), children.end(), [](const auto& c) {
      return c.key.find_first_not_of("0123456789") == std::string::npos;
    });
  }
};

void insert(ConfigNode& at, std::string_view path, const ConfigValue& value) {
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  auto child = std::find_if(at.children.begin(), at.children.end(),
                            [&](const ConfigNode& c) { return c.key == key; });
  if (child == at.children.end())
    child = at.children.insert(at.children.end(), {std::string(key), nullptr, {}});
  if (dot == std::string_view::npos)
    child->value = &value;
  else
    insert(*child, path.substr(dot + 1), value);
}

ConfigNode tree_of(const ConfigEntries& entries) {
  ConfigNode root;
  for (const ConfigEntry& e : entries) insert(root, e.path, e.value);
  return root;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out + '"';
}

// A real number keeps its point: PyYAML reads "2e-05" as a text and TOML "1" as an integer.
std::string real_text(double value) {
  std::string text = shown_number(value);
  if (text.find('.') != std::string::npos) return text;
  const std::size_t exponent = text.find('e');
  text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

std::string scalar(const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return in_quotes(*text);
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  return config_text(value);
}

void json_node(std::string& out, const ConfigNode& node, const std::string& indent) {
  if (node.value != nullptr) {
    out += scalar(*node.value);
    return;
  }
  const bool list = node.is_list();
  const std::string inner = indent + "  ";
  out += list ? "[" : "{";
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    out += inner;
    if (!list) out += in_quotes(node.children[i].key) + ": ";
    json_node(out, node.children[i], inner);
  }
  if (!node.children.empty()) out += "\n" + indent;
  out += list ? "]" : "}";
}

std::string comments(const Heading& heading) {
  std::string out;
  for (const std::string& line : heading) out += line.empty() ? "#\n" : "# " + line + "\n";
  return out;
}

// Words that a YAML reader takes for themselves; everything else unusual is quoted.
std::string yaml_scalar(const ConfigValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return scalar(value);
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/.";
  constexpr std::array<std::string_view, 8> taken{"true", "false", "null", "yes",
                                                  "no",   "on",    "off",  "nan"};
  const bool starts_as_word = !text->empty() && plain.substr(0, 52).find(text->front()) < 52;
  const bool all_plain = text->find_first_not_of(plain) == std::string::npos;
  std::string lower = *text;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const bool is_taken = std::find(taken.begin(), taken.end(), lower) != taken.end();
  return starts_as_word && all_plain && !is_taken && text->size() > 1 ? *text : in_quotes(*text);
}

void yaml_children(std::string& out, const ConfigNode& node, const std::string& indent) {
  const bool list = node.is_list();
  bool first = true;
  for (const ConfigNode& child : node.children) {
    // The first member of a mapping within a list stands on the line of its dash.
    const bool on_dash_line = first && out.ends_with("- ");
    first = false;
    if (!on_dash_line) out += indent;
    out += list ? "- " : child.key + ":";
    if (child.value != nullptr)
      out += (list ? "" : " ") + yaml_scalar(*child.value) + "\n";
    else if (list)
      yaml_children(out, child, indent + "  ");
    else
      yaml_children(out += "\n", child, indent + "  ");
  }
}

std::string toml_inline(const ConfigNode& node) {
  if (node.value != nullptr) return scalar(*node.value);
  require(node.is_list(), "a table within a TOML list is not written");
  std::string out = "[";
  for (std::size_t i = 0; i < node.children.size(); ++i)
    out += (i == 0 ? "" : ", ") + toml_inline(node.children[i]);
  return out + "]";
}

void toml_table(std::string& out, const ConfigNode& node, const std::string& name) {
  const auto is_table = [](const ConfigNode& c) { return c.value == nullptr && !c.is_list(); };
  bool has_values = false;
  for (const ConfigNode& child : node.children) has_values |= !is_table(child);
  if (!name.empty() && has_values) out += (out.empty() ? "[" : "\n[") + name + "]\n";
  for (const ConfigNode& child : node.children)
    if (!is_table(child)) out += child.key + " = " + toml_inline(child) + "\n";
  for (const ConfigNode& child : node.children)
    if (is_table(child)) toml_table(out, child, (name.empty() ? "" : name + ".") + child.key);
}

}  // namespace

std::string json_config(const ConfigEntries& entries) {
  std::string out;
  json_node(out, tree_of(entries), "");
  return out + "\n";
}

std::string yaml_config(const ConfigEntries& entries, const Heading& heading) {
  std::string out = comments(heading);
  yaml_children(out, tree_of(entries), "");
  return out;
}

std::string toml_config(const ConfigEntries& entries, const Heading& heading) {
  std::string out = comments(heading);
  if (!out.empty()) out += "\n";
  toml_table(out, tree_of(entries), "");
  return out;
}

std::string argument_config(const ConfigEntries& entries, const Heading& heading) {
  std::string out = comments(heading);
  for (const ConfigNode& argument : tree_of(entries).children) {
    const bool* flag = argument.value == nullptr ? nullptr : std::get_if<bool>(argument.value);
    if (flag != nullptr && !*flag) continue;
    out += "--" + argument.key;
    if (flag == nullptr && argument.value != nullptr) out += " " + config_text(*argument.value);
    for (const ConfigNode& part : argument.children) out += " " + config_text(*part.value);
    out += "\n";
  }
  return out;
}

}  // namespace shardwise
