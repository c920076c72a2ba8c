#include "planner/report/output.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace shardwise {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &utc)};
}

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
