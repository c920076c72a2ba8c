// Frameworks that people train with and no row describes: unsupported_frameworks.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shardwise {

// Why the framework called so is none of the catalog's, and which row to ask for instead; nothing
// where the file does not name it. A name stands for itself and what follows a space or hyphen.
std::optional<std::string> unsupported_framework(const std::filesystem::path& root,
                                                 std::string_view name);

}  // namespace shardwise
