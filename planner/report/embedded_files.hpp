// Files that the program carries: the parts of the HTML report (planner/report/html) and the chart
// library that it uses. planner/CMakeLists.txt names them, cmake/EmbedFiles.cmake makes the source.
#pragma once

#include <string_view>

namespace shardwise {

std::string_view embedded_file(std::string_view name);  // REQUIRES one of those named there

}  // namespace shardwise
