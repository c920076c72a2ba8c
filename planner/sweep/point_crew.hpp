// PointCrew: threads that answer points. Points go in from one thread, rows come out to it, in the
// order in which they are finished.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "planner/sweep/point_facts.hpp"
#include "planner/sweep/study.hpp"
#include "planner/sweep/sweep_row.hpp"

namespace shardwise {

struct FinishedPoint {
  std::int64_t point = 0;
  SweepRow row;
  Seconds took;
};

// One point, on the calling thread. What throws is a bug of ours and becomes a row that says so: it
// must not cost the study its other points.
FinishedPoint finish_point(const Study& study, std::int64_t point, PointFacts& facts);

class PointCrew {
 public:
  // `study` and `facts` outlive the crew.
  PointCrew(const Study& study, PointFacts& facts, int threads);
  PointCrew(const PointCrew&) = delete;
  PointCrew& operator=(const PointCrew&) = delete;
  ~PointCrew();  // lets the points that are begun be finished, and drops the others

  // How many points keep every thread busy while a row is written or sent. No more: what waits in
  // one hand is missed in another at the end.
  int handful() const {
    const int threads = static_cast<int>(threads_.size());
    return threads + 1 + threads / 8;
  }
  void give(std::int64_t point);
  std::optional<FinishedPoint> take(std::chrono::milliseconds patience);  // nothing came in time

 private:
  void work();

  const Study& study_;
  PointFacts& facts_;
  std::mutex mutex_;
  std::condition_variable given_, done_;
  std::deque<std::int64_t> waiting_;
  std::deque<FinishedPoint> finished_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

// How many threads a process should answer points on: the cores that it may run on, each shared
// with the other processes of this machine that may run there too. `masks`: of all of them, this
// one included, bit by bit.
int fair_threads(const std::vector<std::vector<bool>>& masks, std::size_t mine);

// The cores that this process may run on, and the name of its machine.
std::vector<bool> own_cores();
std::string this_host();

}  // namespace shardwise
