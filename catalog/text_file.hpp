// The bytes of a file, or the problem that kept us from reading it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "catalog/result.hpp"

namespace shardwise {

// The path "-" is standard input. Refused: what cannot be opened, what is not a file, and more than
// `max_bytes` (a device or pipe that never ends is read no further than that). `name` is what the
// problem calls the file.
Result<std::string> read_text_file(const std::filesystem::path& path, const std::string& name,
                                   std::size_t max_bytes, ProblemKind kind = ProblemKind::file);

// The *.json files directly in `folder`, sorted by name. A folder that cannot be listed, or that
// holds none, is a problem.
std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder,
                                              Problems& problems);

}  // namespace shardwise
