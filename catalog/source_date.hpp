// The date in words that say where a run was read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardwise {

// The first date in `text`, as the rows of frameworks are matched by it: "December 2024" for
// "11 December 2024", "Dec 11 2024", "2024-12-11", "12_2024" and "h100_202412"; "2024" where the
// year stands alone. Years are 2017 to 2029: what trains here is no older.
std::optional<std::string> date_told(std::string_view text);

}  // namespace shardwise
