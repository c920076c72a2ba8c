#include "planner/progress_line.hpp"

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr const char* erase_line = "\r\x1b[K";
constexpr std::chrono::milliseconds between_words{200};

}  // namespace

ProgressLine::~ProgressLine() {
  if (shown_) *terminal_ << erase_line << std::flush;
}

void ProgressLine::tell(const std::function<std::string(Seconds)>& words) {
  if (terminal_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + between_words;
  shown_ = true;
  const Seconds taken(std::chrono::duration<double>(now - begun_).count());
  *terminal_ << erase_line << words(taken) << std::flush;
}

std::string shown_rest(Seconds taken, double done, double all) {
  if (done <= 0) return "how long is not known yet";
  return sentence("about ", shown_time((all - done) / done * taken), " left");
}

}  // namespace shardwise
