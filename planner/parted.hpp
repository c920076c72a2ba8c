// parted: the pieces of a text between a sign. "a,,b" has three, the empty text one, empty piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

inline std::vector<std::string> parted(std::string_view text, char at) {
  std::vector<std::string> pieces;
  for (bool more = true; more;) {
    const std::size_t end = text.find(at);
    pieces.emplace_back(text.substr(0, end));
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + 1);
  }
  return pieces;
}

}  // namespace shardwise
