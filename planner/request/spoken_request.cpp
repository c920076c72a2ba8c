#include "planner/request/spoken_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "planner/request/request_field.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string shell_word(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=,+:@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shortest_text(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

// The words behind the flag, one for each of its uses; none where it is not used. Flags without a
// value have the empty one.
std::vector<std::string> words_of(const FieldValue& value) {
  struct Visitor {
    std::vector<std::string> operator()(std::monostate) const { return {}; }
    std::vector<std::string> operator()(const std::string& v) const { return {v}; }
    std::vector<std::string> operator()(const std::vector<std::string>& v) const { return v; }
    std::vector<std::string> operator()(std::int64_t v) const { return {std::to_string(v)}; }
    std::vector<std::string> operator()(double v) const { return {shortest_text(v)}; }
    // To a hundredth of a GiB, upwards: what is enough stays enough.
    std::vector<std::string> operator()(Bytes v) const {
      return {sentence(shortest_text(std::ceil(gib(v) * 100) / 100), "GiB")};
    }
    std::vector<std::string> operator()(bool v) const {
      return v ? std::vector<std::string>{""} : std::vector<std::string>{};
    }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace

std::string spoken_request(std::string_view command, const Request& request) {
  std::string text = sentence("shardwise ", command);
  for (const RequestField& field : request_fields()) {
    if (!field.belongs_to(command)) continue;
    for (const std::string& word : words_of(field.get(request))) {
      if (field.flag.starts_with("--")) text += sentence(' ', field.flag);
      if (field.kind != FieldKind::flag) text += sentence(' ', shell_word(word));
    }
  }
  return text;
}

}  // namespace shardwise
