// Frameworks that people train with and no row describes: unsupported_frameworks.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"

namespace shardwise {

struct UnsupportedFramework {
  std::string name, reason;
  std::string nearest;  // the id of the row that resembles it most
};

Result<std::vector<UnsupportedFramework>> load_unsupported_frameworks(
    const std::filesystem::path& root);

// The one called so, or nullptr. A name stands for itself and what follows a space or hyphen.
const UnsupportedFramework* unsupported_row(const std::vector<UnsupportedFramework>& rows,
                                            std::string_view name);

// Why the framework called so is none of the catalog's, and which row to ask for instead; nothing
// where the file does not name it.
std::optional<std::string> unsupported_framework(const std::filesystem::path& root,
                                                 std::string_view name);

}  // namespace shardwise
