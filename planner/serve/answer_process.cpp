#include "planner/serve/answer_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <fstream>

namespace shardwise {
namespace {

using Clock = std::chrono::steady_clock;

// Pages that this process has mapped, so that the limit is what the answer may add.
std::int64_t address_space() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

bool write_all(int to, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(to, text.data() + done, text.size() - done);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

[[noreturn]] void work_and_end(int to, const std::function<std::string()>& work, Bytes memory) {
  const auto most = static_cast<rlim_t>(memory.value + address_space());
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
  try {
    // The last byte says that the answer is whole.
    _exit(write_all(to, work() + '\0') ? 0 : 1);
  } catch (const std::exception&) {
    _exit(70);
  }
}

// Reads to the end or the deadline. True where the other side closed.
bool read_until(int from, Clock::time_point deadline, std::string& text) {
  std::array<char, 65536> buffer;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{from, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = read(from, buffer.data(), buffer.size());
    if (n <= 0) return n == 0;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

ProcessAnswer answer_in_process(const std::function<std::string()>& work,
                                const AnswerLimits& limits) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    work_and_end(ends[1], work, limits.memory);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return {};
  }
  ProcessAnswer answer;
  const bool closed = read_until(ends[0], Clock::now() + limits.time, answer.text);
  close(ends[0]);
  if (!closed) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!closed) return {ProcessAnswer::Ending::too_long, ""};
  const bool whole = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !answer.text.empty() &&
                     answer.text.back() == '\0';
  if (!whole) return {ProcessAnswer::Ending::failed, ""};
  answer.text.pop_back();
  answer.ending = ProcessAnswer::Ending::answered;
  return answer;
}

}  // namespace shardwise
