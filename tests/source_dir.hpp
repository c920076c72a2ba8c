// Where the source tree lies that the tests read their data from.
#pragma once

#include <string>

namespace shardwise {

// The absolute path of the source tree, without a slash at its end.
const std::string& source_dir();

}  // namespace shardwise
