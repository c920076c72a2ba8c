#include "planner/sweep/sole_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// Whoever waited for a lock may hold one on a file that its last owner has removed.
bool is_still_there(const std::string& path, int descriptor) {
  struct stat named {
  }, held{};
  return stat(path.c_str(), &named) == 0 && fstat(descriptor, &held) == 0 &&
         named.st_ino == held.st_ino && named.st_dev == held.st_dev;
}

}  // namespace

SoleWriter::SoleWriter(std::string lock, int descriptor)
    : lock_(std::move(lock)), descriptor_(descriptor) {}

SoleWriter::SoleWriter(SoleWriter&& other) noexcept
    : lock_(std::move(other.lock_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

SoleWriter::~SoleWriter() {
  if (descriptor_ < 0) return;
  unlink(lock_.c_str());
  close(descriptor_);
}

Result<SoleWriter> SoleWriter::of(const std::string& path) {
  const std::string lock = path + ".lock";
  for (;;) {
    const int descriptor = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0)
      return Problem{ProblemKind::file, path,
                     sentence("cannot be written: ", std::strerror(errno))};
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const bool held = errno == EWOULDBLOCK;
      const std::string why = std::strerror(errno);
      close(descriptor);
      return Problem{ProblemKind::file, path,
                     held ? "another sweep is writing it" : sentence("cannot be locked: ", why)};
    }
    if (is_still_there(lock, descriptor)) return SoleWriter(lock, descriptor);
    close(descriptor);
  }
}

}  // namespace shardwise
