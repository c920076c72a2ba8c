// The commands and flags that a command line defines, as pages to write completions and manuals
// from. Commands and flags that --help does not show (group "") are left out.
#pragma once

#include "planner/shell/command_page.hpp"

namespace CLI {
class App;
}

namespace shardwise {

CommandPage command_tree(const CLI::App& program);

}  // namespace shardwise
