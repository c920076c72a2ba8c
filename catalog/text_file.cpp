#include "catalog/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

namespace shardwise {
namespace {

struct OpenFile {
  int descriptor;
  explicit OpenFile(const char* path) : descriptor(::open(path, O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
};

std::string shown_mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

Problem system_problem(ProblemKind kind, const std::string& name, const char* what) {
  return {kind, name, std::string("cannot be ") + what + ": " + std::strerror(errno)};
}

// The size of a regular file; nothing for pipes, devices and the files of /proc.
std::optional<std::size_t> known_size(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0)
    return std::nullopt;
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path, const std::string& name,
                                   std::size_t max_bytes, ProblemKind kind) {
  const OpenFile file(path == "-" ? "/dev/stdin" : path.c_str());
  if (file.descriptor < 0) return system_problem(kind, name, "opened");
  std::string text;
  const auto size = known_size(file.descriptor);
  std::size_t piece = std::min(size.value_or(std::size_t{64} << 10), max_bytes) + 1;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + piece);
    ::ssize_t got = 0;
    do {
      got = ::read(file.descriptor, text.data() + before, piece);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return system_problem(kind, name, "read");
    text.resize(before + static_cast<std::size_t>(got));
    if (text.size() > max_bytes)
      return Problem{kind, name,
                     "larger than " + shown_mebibytes(max_bytes) + ", the most that is read"};
    if (got == 0 || text.size() == size) return text;  // one read for a file that did not change
    piece = std::min(std::max<std::size_t>(text.size(), 4096), max_bytes + 1);
  }
}

std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder,
                                              Problems& problems) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error))
    if (entry->path().native().ends_with(".json")) found.push_back(entry->path());
  if (error)
    problems.push_back(
        {ProblemKind::file, folder.string(), "cannot be listed: " + error.message()});
  else if (found.empty())
    problems.push_back({ProblemKind::file, folder.string(), "holds no .json file"});
  // One folder's paths differ in their last part only: compared as text, which is faster.
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.native() < b.native(); });
  return found;
}

}  // namespace shardwise
