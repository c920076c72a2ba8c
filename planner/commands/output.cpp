#include "planner/commands/output.hpp"

#include <algorithm>

namespace shardwise {

int report_problems(const Problems& problems, const Output& output) {
  int code = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Problem& p = problems[i];
    code = std::max(code, static_cast<int>(p.kind));
    // Several methods or cards may stumble over the same thing: it is said once.
    const auto here = problems.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(problems.begin(), here, p) != here) continue;
    const auto said = output.places.find(p.where);
    const std::string& where = said == output.places.end() ? p.where : said->second;
    output.err << "shardwise: " << where << (where.empty() ? "" : ": ") << p.what << '\n';
  }
  return code;
}

}  // namespace shardwise
