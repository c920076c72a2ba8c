#include "planner/request/named_boxes.hpp"

#include <algorithm>

namespace shardwise {
namespace {

bool parts_boxes(std::string_view word) {
  std::string small(word);
  for (char& c : small) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return small == "vs" || small == "vs." || small == "versus" || small == "or";
}

}  // namespace

std::vector<std::string> named_boxes(std::string_view gpus) {
  std::vector<std::string> boxes{""};
  while (!gpus.empty()) {
    const std::string_view word = gpus.substr(0, gpus.find(' '));
    gpus.remove_prefix(std::min(gpus.size(), word.size() + 1));
    if (word.empty()) continue;
    if (parts_boxes(word))
      boxes.emplace_back();
    else
      boxes.back() += (boxes.back().empty() ? "" : " ") + std::string(word);
  }
  return boxes;
}

}  // namespace shardwise
