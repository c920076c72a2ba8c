// One line on a terminal that tells how far a long answer is, and goes away with it.
//
//   validate: 1,204 of 5,136 records, about 5.1 s left
//
// Nothing is said in the first second, nor where there is no terminal.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>

#include "catalog/units.hpp"

namespace shardwise {

class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;

  // `terminal`: nullptr where there is none.
  explicit ProgressLine(std::ostream* terminal,
                        std::chrono::milliseconds silent = std::chrono::seconds(1))
      : terminal_(terminal), begun_(Clock::now()), next_(begun_ + silent) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `words` is asked only where the line is due; it gets the time since this began. Any thread.
  void tell(const std::function<std::string(Seconds)>& words);

 private:
  std::ostream* terminal_;
  Clock::time_point begun_, next_;
  bool shown_ = false;
  std::mutex mutex_;
};

// "about 5.1 s left": where `done` of `all` took so long.
std::string shown_rest(Seconds taken, double done, double all);

}  // namespace shardwise
