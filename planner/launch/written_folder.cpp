#include "planner/launch/written_folder.hpp"

#include <optional>
#include <system_error>

#include "catalog/text_file.hpp"
#include "catalog/whole_file.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

bool holds(const fs::path& path, const std::string& text) {
  std::error_code error;
  if (fs::file_size(path, error) != text.size() || error) return false;
  const auto found = read_text_file(path, path.string(), text.size());
  return found && *found == text;
}

// Why this file cannot be put where `path` leads.
std::optional<std::string> in_the_way(const fs::path& path, const std::string& text,
                                      OtherFiles others) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (there.type() == fs::file_type::not_found) return std::nullopt;
  if (there.type() == fs::file_type::none)
    return sentence("cannot be looked at: ", error.message());
  if (there.type() != fs::file_type::regular)
    return fs::is_directory(there) ? "is a folder; a file of this name would be written"
                                   : "is no file that can be replaced";
  if (others == OtherFiles::replaced || holds(path, text)) return std::nullopt;
  return "is there already and says something else; --force replaces it, --out names another "
         "folder";
}

Problems found_in_the_way(const fs::path& folder, const std::vector<LaunchFile>& files,
                          OtherFiles others) {
  Problems problems;
  for (const LaunchFile& file : files)
    if (auto why = in_the_way(folder / file.name, file.text, others))
      problems.push_back({ProblemKind::file, (folder / file.name).string(), *std::move(why)});
  return problems;
}

}  // namespace

Problems write_launch_files(const fs::path& folder, const std::vector<LaunchFile>& files,
                            OtherFiles others) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return {{ProblemKind::file, folder.string(), sentence("cannot be made: ", error.message())}};
  Problems problems = found_in_the_way(folder, files, others);
  for (std::size_t i = 0; i < files.size() && problems.empty(); ++i) {
    const fs::path path = folder / files[i].name;
    problems = write_whole_file(path.string(), [&](std::ostream& out) { out << files[i].text; });
    if (problems.empty() && files[i].name.ends_with(".sh"))
      fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, error);
  }
  return problems;
}

}  // namespace shardwise
