// SweepDesk: where the points of a sweep are handed out and their rows are kept. One in a sweep,
// used from one thread; who answers (threads here, ranks elsewhere) is nothing to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "planner/sweep/point_crew.hpp"
#include "planner/sweep/study.hpp"
#include "planner/sweep/sweep_store.hpp"

namespace shardwise {

// What a person asked for.
struct SweepTask {
  std::string study_file;  // path
  std::string out;         // path of the SQLite file
  bool resume = false;
  std::optional<int> threads;  // of this process; absent: by the cores at hand
};

// The study file, read and checked, with its own text.
struct OpenedStudy {
  Study study;
  std::string text;
};
Result<OpenedStudy> open_study(const std::string& path);

class SweepDesk {
 public:
  // Before it goes on with a file, it answers the first and the last of its points anew: a program
  // that forecasts anything else than the one which began the file must not add to it.
  static Result<SweepDesk> open(const SweepTask& task, const OpenedStudy& study,
                                const std::string& facts_fingerprint, PointFacts& facts,
                                std::ostream& progress);

  std::optional<std::int64_t> next();           // a point that nobody has yet; lowest first
  bool complete() const { return left_ == 0; }  // every point has its row
  Problems accept(const FinishedPoint& done, int rank, const std::string& host);
  Problems close();  // what is kept is on the disk
  std::string summary() const;

 private:
  using Clock = std::chrono::steady_clock;

  SweepDesk(SweepStore store, std::vector<std::int64_t> missing, std::ostream& progress);
  static Problems check_answers_alike(const SweepStore& store, const std::vector<bool>& finished,
                                      const Study& study, PointFacts& facts);
  void tell_progress();

  SweepStore store_;
  std::vector<std::int64_t> missing_;
  std::size_t handed_out_ = 0;
  std::size_t left_ = 0;
  std::ostream* progress_;
  Clock::time_point begun_, told_, flushed_;
};

// The whole sweep on threads of this process.
Problems sweep_here(SweepDesk& desk, const Study& study, PointFacts& facts, int threads);

}  // namespace shardwise
