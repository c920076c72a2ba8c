// Shell completions of a whole program, as text: one row per shell. The scripts hold every command
// and flag; names in the catalog and parts of a plan are asked from the program while typing.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planner/shell/command_page.hpp"

namespace shardwise {

struct Shell {
  std::string_view name;
  std::string (*completion)(const CommandPage& program);
};

std::span<const Shell> shells();

std::string bash_completion(const CommandPage& program);
std::string zsh_completion(const CommandPage& program);
std::string fish_completion(const CommandPage& program);

// 'text', with the quotes inside it written as the three shells read them.
std::string shell_quoted(std::string_view text);

// The first sentence or clause of a help text, for a list that shows one line each.
std::string short_help(const std::string& help);

}  // namespace shardwise
