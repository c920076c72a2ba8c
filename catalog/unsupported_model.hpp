// Models that people ask for by name and that are of a refused architecture
// (models/unsupported.json), so that a name like one of them is not taken for another model's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shardwise {

// Why the model of this name is not supported, in one sentence; nothing where no row says so or the
// folder has no such file. A row's name stands for all that begin with it.
std::optional<std::string> unsupported_model(const std::filesystem::path& root,
                                             std::string_view name);

}  // namespace shardwise
