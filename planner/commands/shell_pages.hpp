// Two commands for those who install the program, not shown by --help:
//
//   shardwise completion bash|zsh|fish      the script that a shell completes shardwise with
//   shardwise completion models|gpus|... [WORD]    what can stand where WORD is being typed
//   shardwise man [COMMAND]                 a manual page; "pages": the names of all
#pragma once

#include <optional>
#include <string>

#include "planner/report/output.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct ShellPages {
  CLI::App *completion = nullptr, *manual = nullptr;
  std::string subject, word;  // of `completion`
  std::string page;           // of `man`: a command, "pages", or empty: the program
};

void add_shell_pages(CLI::App& program, ShellPages& pages);

// The exit code where one of the two was asked for, else nothing.
std::optional<int> shell_pages(const CLI::App& program, const ShellPages& pages,
                               const Output& output);

}  // namespace shardwise
