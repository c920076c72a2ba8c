#include "planner/launch/written_folder.hpp"

#include <system_error>

#include "catalog/whole_file.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

namespace fs = std::filesystem;

Problems write_launch_files(const fs::path& folder, const std::vector<LaunchFile>& files) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return {{ProblemKind::file, folder.string(), sentence("cannot be made: ", error.message())}};
  Problems problems;
  for (const LaunchFile& file : files) {
    const fs::path path = folder / file.name;
    const Problems found =
        write_whole_file(path.string(), [&](std::ostream& out) { out << file.text; });
    problems.insert(problems.end(), found.begin(), found.end());
    if (found.empty() && file.name.ends_with(".sh"))
      fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, error);
  }
  return problems;
}

}  // namespace shardwise
