#include "planner/shell/command_page.hpp"

namespace shardwise {

std::string spoken_path(const CommandPage& page) {
  std::string text;
  for (std::size_t i = 1; i < page.path.size(); ++i) text += (i == 1 ? "" : " ") + page.path[i];
  return text;
}

std::vector<const CommandPage*> all_pages(const CommandPage& page) {
  std::vector<const CommandPage*> all{&page};
  for (const CommandPage& inner : page.inner) {
    const auto below = all_pages(inner);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace shardwise
