// Channel: what the ranks of a sweep say to one another, over MPI. The one place that knows MPI.
//
//   a rank -> rank 0   ask, or a finished point, which asks as well; at the end: leave
//   rank 0 -> a rank   a point for every ask, or that there is none left
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/sweep/point_crew.hpp"

namespace shardwise {

// What rank 0 heard.
struct RankWord {
  int rank = 0;
  bool leaves = false;
  std::optional<FinishedPoint> done;  // absent of a mere ask
};

class Channel {
 public:
  Channel(int argc, char** argv);  // starts MPI
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();  // ends it, together with all other ranks

  int rank() const { return rank_; }
  int size() const { return size_; }
  [[noreturn]] void abort(int code);  // ends the whole job

  std::string from_first(const std::string& text);             // rank 0's, on every rank
  std::vector<std::string> to_first(const std::string& text);  // everybody's, on rank 0
  // What the processes on this machine say, and which of them is this one.
  std::pair<std::vector<std::vector<bool>>, std::size_t> on_this_machine(
      const std::vector<bool>& cores);

  void ask();
  void report(const FinishedPoint& done);
  void leave();
  std::optional<std::int64_t> answered();  // waits for rank 0's word on the last ask or report

  std::optional<RankWord> heard();  // does not wait
  void answer(int rank, std::optional<std::int64_t> point);

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace shardwise
