#include "calibrate/measuring/json_line.hpp"

#include "catalog/json_document.hpp"

namespace shardwise {
namespace {

std::string texts_object(const std::map<std::string, std::string>& members) {
  JsonLine line;
  for (const auto& [key, value] : members) line.text(key, value);
  return line.object();
}

// In quotes and escaped; bytes beyond ASCII become "?", so that the line is always JSON.
std::string json_text(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20) {
      out.append("\\u00");
      out.push_back(digits[byte >> 4U]);
      out.push_back(digits[byte & 15U]);
    } else {
      out.push_back(byte < 0x7f ? c : '?');
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace

JsonLine& JsonLine::raw(std::string_view key, std::string_view json) {
  if (!members_.empty()) members_.push_back(',');
  members_.append(json_text(key)).append(":").append(json);
  return *this;
}

JsonLine& JsonLine::text(std::string_view key, std::string_view value) {
  return raw(key, json_text(value));
}

JsonLine& JsonLine::number(std::string_view key, double value) {
  return raw(key, shown_number(value));
}

JsonLine& JsonLine::texts(std::string_view key, const std::map<std::string, std::string>& members) {
  return raw(key, texts_object(members));
}

JsonLine& JsonLine::wholes(std::string_view key,
                           const std::map<std::string, std::int64_t>& members) {
  JsonLine line;
  for (const auto& [name, value] : members) line.whole(name, value);
  return raw(key, line.object());
}

JsonLine& JsonLine::objects(std::string_view key,
                            const std::vector<std::map<std::string, std::string>>& elements) {
  std::string list;
  for (const auto& element : elements) {
    if (!list.empty()) list.push_back(',');
    list.append(texts_object(element));
  }
  return raw(key, "[" + list + "]");
}

}  // namespace shardwise
