// LentPlays: plays of memory that the choices of one question lend each other from card to card.
//
// Whoever asks about many cards tries the same plans on most of them, and a plan allocates the same
// on another card, unless that trains in another format or attends by another kernel.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "planner/forecast/forecast.hpp"

namespace shardwise {

// Safe to ask from several threads; what it lends changes no forecast, whoever was first.
class LentPlays {
 public:
  // What was played for such a question; nullptr: nothing. REQUIRES questions that differ in their
  // clusters and what follows from those alone.
  std::shared_ptr<const MemoryPlays> of(const Question& question);
  // Beyond so many it keeps no more.
  void add(const Question& question, std::shared_ptr<const MemoryPlays> plays);

 private:
  static constexpr int most_kept = 512;

  struct Played {
    Workload workload;
    std::shared_ptr<const MemoryPlays> plays;
  };
  const Played* find(const std::string& plan, const Workload& workload) const;

  std::mutex mutex_;
  std::map<std::string, std::vector<Played>> by_plan_;
  int kept_ = 0;
};

}  // namespace shardwise
