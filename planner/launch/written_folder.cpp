#include "planner/launch/written_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

Problem unwritten(const fs::path& path, const std::string& why) {
  return {ProblemKind::file, path.string(), sentence("cannot be written: ", why)};
}

Problems write_one(const fs::path& path, const LaunchFile& file) {
  const fs::path hidden = path.parent_path() / sentence('.', file.name, '.', ::getpid(), ".part");
  std::error_code ignored, error;
  errno = 0;
  std::ofstream out(hidden, std::ios::binary | std::ios::trunc);
  out << file.text;
  out.close();
  if (!out) {
    const std::string why = std::strerror(errno != 0 ? errno : EIO);
    fs::remove(hidden, ignored);
    return {unwritten(path, why)};
  }
  if (file.name.ends_with(".sh"))
    fs::permissions(hidden, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                    fs::perm_options::add, ignored);
  fs::rename(hidden, path, error);
  if (!error) return {};
  fs::remove(hidden, ignored);
  return {unwritten(path, error.message())};
}

}  // namespace

Problems write_launch_files(const fs::path& folder, const std::vector<LaunchFile>& files) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return {unwritten(folder, error.message())};
  Problems problems;
  for (const LaunchFile& file : files) {
    const Problems found = write_one(folder / file.name, file);
    problems.insert(problems.end(), found.begin(), found.end());
  }
  return problems;
}

}  // namespace shardwise
