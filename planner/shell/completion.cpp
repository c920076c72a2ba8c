#include "planner/shell/completion.hpp"

#include <algorithm>
#include <array>

namespace shardwise {
namespace {

constexpr std::array<Shell, 3> shell_rows{
    {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};

constexpr std::size_t longest_help = 78;

}  // namespace

std::span<const Shell> shells() { return shell_rows; }

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string short_help(const std::string& help) {
  if (help.size() <= longest_help) return help;
  const std::size_t clause = std::min(help.find("; "), help.find(": "));
  if (clause <= longest_help) return help.substr(0, clause);
  return help.substr(0, help.rfind(' ', longest_help)) + " ...";
}

}  // namespace shardwise
