// on_all_cores: work(i) for every i below n, on as many threads as there are cores. Each i has its
// own place for what it finds, so that threads change nothing in an answer.
//
// A thread that is one of a crew which fills the cores already (a sweep's) says so, and what it
// asks for runs on it alone: the same work in the same places, but no threads by the square of the
// cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace shardwise {

inline thread_local bool one_of_a_crew = false;

// A thread beside which others have work for all cores: what may turn out to be of no use is left
// for when it is needed, on the threads that it asks to share its work as well.
inline thread_local bool one_of_many = false;

// As long as it lives this thread is one of a crew.
class CrewMember {
 public:
  CrewMember() { one_of_a_crew = true; }
  ~CrewMember() { one_of_a_crew = before_; }
  CrewMember(const CrewMember&) = delete;
  CrewMember& operator=(const CrewMember&) = delete;

 private:
  const bool before_ = one_of_a_crew;
};

// As long as it lives others have work for all cores beside this thread, if `many`.
class BesideMany {
 public:
  explicit BesideMany(bool many = true) { one_of_many = many; }
  ~BesideMany() { one_of_many = before_; }
  BesideMany(const BesideMany&) = delete;
  BesideMany& operator=(const BesideMany&) = delete;

 private:
  const bool before_ = one_of_many;
};

// Asked of the system once: each answer opens a file.
inline std::size_t cores_here() {
  static const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return cores;
}

// on_all_cores on at most so many threads: work that waits for other work leaves its core free.
template <class Work>
void on_threads(std::size_t most, std::size_t n, Work work) {
  if (one_of_a_crew) {
    for (std::size_t at = 0; at < n; ++at) work(at);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::future<void>> workers;
  const auto share = [&] {
    for (std::size_t at = next++; at < n; at = next++) work(at);
  };
  // The caller is one of them, and what it has worked with before is near it.
  for (std::size_t i = 1; i < std::min(most, n); ++i)
    workers.push_back(std::async(std::launch::async, [&share, many = one_of_many] {
      const BesideMany marked(many);
      share();
    }));
  share();
  for (auto& worker : workers) worker.get();
}

template <class Work>
void on_all_cores(std::size_t n, Work work) {
  on_threads(cores_here(), n, std::move(work));
}

}  // namespace shardwise
