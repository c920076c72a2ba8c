// Writes launch files into a folder: each under a temporary name, then renamed, so that a reader
// never sees half a file and a failure leaves what was there.
#pragma once

#include <filesystem>
#include <vector>

#include "catalog/result.hpp"
#include "planner/launch/launch_job.hpp"

namespace shardwise {

// What is done about a file that is there already and says something else: people edit these.
enum class OtherFiles { refused, replaced };

// The folder is made where it is missing. All files are looked at before the first is written.
// Those that end in ".sh" may be run. Empty where all were written; else problems of kind `file`.
Problems write_launch_files(const std::filesystem::path& folder,
                            const std::vector<LaunchFile>& files, OtherFiles others);

}  // namespace shardwise
