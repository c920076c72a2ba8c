// The JSON that nccl-tests writes with -J, versions 2.17 and later; measurements as those of
// import_nccl_tests.hpp. A file that a killed run left open is refused as a whole.
#pragma once

#include <string_view>

#include "calibrate/imported_log.hpp"

namespace shardwise {

bool looks_like_nccl_tests_json(std::string_view text);
void import_nccl_tests_json(std::string_view text, ImportedLog& log);

}  // namespace shardwise
