#include "catalog/whole_file.hpp"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace shardwise {

namespace {

namespace fs = std::filesystem;

constexpr const char* is_a_folder = "it is a folder";
constexpr const char* no_folder = "its folder does not exist or does not allow it";

Problems not_written(const std::string& path, const std::string& why) {
  return {{ProblemKind::file, path, std::string("cannot be written: ").append(why)}};
}

// What went wrong; empty where nothing did.
std::string write_to(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return no_folder;
  write(file);
  file.close();
  return file ? "" : "the disk is full or failed";
}

// Gone at the end, whether or not what writes it throws. The process number keeps two runs that
// write the same file apart, the count two threads of one.
struct TemporaryFile {
  fs::path path;

  explicit TemporaryFile(const fs::path& beside) : path(beside) {
    static std::atomic<unsigned> count{0};
    path += std::string(".")
                .append(std::to_string(getpid()))
                .append(".")
                .append(std::to_string(count++))
                .append(".part");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code error;
    fs::remove(path, error);
  }
};

std::string write_beside(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  const TemporaryFile temporary(path);
  std::string why = write_to(temporary.path, write);
  if (!why.empty()) return why;
  std::error_code error;
  fs::rename(temporary.path, path, error);
  return error ? error.message() : "";
}

}  // namespace

Problems write_whole_file(const std::string& path,
                          const std::function<void(std::ostream&)>& write) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  std::string why;
  if (fs::is_directory(there)) {
    why = is_a_folder;
  } else if (fs::exists(there) && !fs::is_regular_file(there)) {
    why = write_to(path, write);  // a device or a pipe: nothing may stand in its place
  } else {
    fs::path target = path;
    if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);
    why = write_beside(target.empty() ? fs::path(path) : target, write);
  }
  if (why.empty()) return {};
  return not_written(path, why);
}

Problems unwritable(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return not_written(path, is_a_folder);
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  return not_written(path, no_folder);
}

}  // namespace shardwise
