// The keys of a plan's text form, "tp=4,pp=2,...", in the order in which it is printed.
#pragma once

#include <string_view>
#include <vector>

namespace shardwise {

std::vector<std::string_view> plan_keys();

}  // namespace shardwise
