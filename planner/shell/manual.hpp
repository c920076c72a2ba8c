// Manual pages, in the man macros that man(1) of every Unix reads: shardwise(1) and one per
// command, shardwise-fit(1).
#pragma once

#include <string>

#include "planner/shell/command_page.hpp"

namespace shardwise {

// "shardwise-calibrate": the page's name. Commands below a command share its page.
std::string manual_name(const CommandPage& page);

std::string manual_page(const CommandPage& page, const CommandPage& program,
                        const std::string& version);

}  // namespace shardwise
