// A request as somebody would type it.
#pragma once

#include <string>
#include <string_view>

#include "planner/request/request.hpp"

namespace shardwise {

// "shardwise fit 8b --gpus 2x4090 --seq 4096": every field that is set, in the order of the fields,
// quoted for a shell where it has to be. Fields that `command` does not take are left out.
std::string spoken_request(std::string_view command, const Request& request);

}  // namespace shardwise
