// RefineAhead: the other cores of a plan search refine what the search will most likely want next.
//
// The search goes round by round, and what a round takes from the queue depends on the one before;
// so rounds of a few short refinements would leave all cores but one waiting for each other. An
// entry's refinement does not depend on when it is made (search_steps.hpp): who waits for nothing
// makes those of the entries next in the queue, and the search takes them when it comes to them.
// What it never comes to is dropped; so the answer is the same on any number of cores.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "planner/search/search_steps.hpp"

namespace shardwise {

// One entry's refinement: whoever claims it makes it.
struct Refinement {
  enum class State { open, claimed, made };

  Refinement(SearchEntry of, const SearchLimits& by) : entry(std::move(of)), limits(by) {}

  SearchEntry entry;
  SearchLimits limits;
  Refined made;
  std::exception_ptr failed;
  std::atomic<State> state = State::open;
};

class RefineAhead {
 public:
  // On all cores but the caller's; on none where the caller is one of a crew (on_all_cores.hpp).
  explicit RefineAhead(SearchSteps& steps);
  RefineAhead(const RefineAhead&) = delete;
  RefineAhead& operator=(const RefineAhead&) = delete;
  ~RefineAhead();

  struct One {
    SearchEntry entry;
    SearchLimits limits;
  };
  // Refines these entries, of which some may be refined already, and some by other cores; while
  // those are at it, the caller goes on with what was offered.
  std::vector<Refined> refine(const std::vector<One>& wave);
  // An entry that comes next.
  void offer(const SearchEntry& entry, const SearchLimits& limits);
  bool has_helpers() const { return !helpers_.empty(); }

 private:
  void help();
  std::shared_ptr<Refinement> take();  // the first that waits, if any does
  void make(Refinement& one);          // if it is open

  SearchSteps& steps_;
  std::mutex mutex_;
  std::condition_variable offered_;
  std::deque<std::shared_ptr<Refinement>> waiting_;
  bool closed_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace shardwise
