// Which words an option takes, where there is a list of them: the rows that the option itself is
// checked against, or what the catalog holds when somebody asks.
#pragma once

#include <string_view>

#include "planner/shell/command_page.hpp"

namespace shardwise {

// `command`: the first word behind the program's name; `name`: "--method", or a positional's own,
// "model"; `placeholder`: "METHOD", "FILE".
ValueWords value_words(std::string_view command, std::string_view name,
                       std::string_view placeholder);

}  // namespace shardwise
