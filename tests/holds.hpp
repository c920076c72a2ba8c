// Whether a text says something, wherever in it.
#pragma once

#include <string_view>

namespace shardwise {

inline bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace shardwise
