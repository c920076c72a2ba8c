#include "planner/sweep/point_crew.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "planner/on_all_cores.hpp"
#include "planner/sentence.hpp"
#include "planner/sweep/point_answer.hpp"

namespace shardwise {

FinishedPoint finish_point(const Study& study, std::int64_t point, PointFacts& facts) {
  const auto begin = std::chrono::steady_clock::now();
  const Request asked = study.request_of(point);
  FinishedPoint done;
  done.point = point;
  try {
    const PointAnswer answer = answer_point(asked, facts);
    done.row = sweep_row({point, asked, answer});
  } catch (const std::exception& e) {
    done.row = failed_row(point, asked, sentence("this is our bug, please report it: ", e.what()));
  }
  done.took =
      Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return done;
}

PointCrew::PointCrew(const Study& study, PointFacts& facts, int threads)
    : study_(study), facts_(facts) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

PointCrew::~PointCrew() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    waiting_.clear();
  }
  given_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PointCrew::give(std::int64_t point) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(point);
  }
  given_.notify_one();
}

std::optional<FinishedPoint> PointCrew::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!done_.wait_for(lock, patience, [this] { return !finished_.empty(); })) return std::nullopt;
  FinishedPoint first = std::move(finished_.front());
  finished_.pop_front();
  return first;
}

void PointCrew::work() {
  one_of_a_crew = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    given_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::int64_t point = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    FinishedPoint done = finish_point(study_, point, facts_);
    lock.lock();
    finished_.push_back(std::move(done));
    done_.notify_one();
  }
}

int fair_threads(const std::vector<std::vector<bool>>& masks, std::size_t mine) {
  double share = 0;
  for (std::size_t core = 0; core < masks[mine].size(); ++core) {
    if (!masks[mine][core]) continue;
    const auto sharing = std::count_if(masks.begin(), masks.end(), [&](const auto& mask) {
      return core < mask.size() && mask[core];
    });
    share += 1.0 / static_cast<double>(sharing);
  }
  return std::max(1, static_cast<int>(share + 1e-9));  // 3 times 1/3 is one
}

std::vector<bool> own_cores() {
  std::vector<bool> cores(CPU_SETSIZE, false);
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    const unsigned known = std::max(1U, std::thread::hardware_concurrency());
    std::fill_n(cores.begin(), std::min<std::size_t>(known, cores.size()), true);
    return cores;
  }
  for (std::size_t i = 0; i < cores.size(); ++i) cores[i] = CPU_ISSET(i, &set);
  return cores;
}

std::string this_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

}  // namespace shardwise
