#include "planner/search/refine_ahead.hpp"

#include <algorithm>

#include "planner/on_all_cores.hpp"

namespace shardwise {

RefineAhead::RefineAhead(SearchSteps& steps) : steps_(steps) {
  const std::size_t cores = one_of_a_crew ? 1 : std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < cores; ++i) helpers_.emplace_back([this] { help(); });
}

RefineAhead::~RefineAhead() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  offered_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void RefineAhead::help() {
  for (;;) {
    std::shared_ptr<Refinement> next;
    {
      std::unique_lock lock(mutex_);
      offered_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
      if (closed_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    make(*next);
  }
}

bool RefineAhead::make(Refinement& one) {
  auto open = Refinement::State::open;
  if (!one.state.compare_exchange_strong(open, Refinement::State::claimed)) return false;
  try {
    steps_.refine(one.entry, one.best_known, one.made);
  } catch (...) {
    one.failed = std::current_exception();
  }
  one.state = Refinement::State::made;
  one.state.notify_all();
  return true;
}

void RefineAhead::offer(const SearchEntry& entry) {
  entry.ahead = std::make_shared<Refinement>(entry, std::nullopt);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(entry.ahead);
  }
  offered_.notify_one();
}

std::vector<Refined> RefineAhead::refine(const std::vector<SearchEntry>& wave,
                                         std::optional<Seconds> best_known) {
  std::vector<std::shared_ptr<Refinement>> all;
  all.reserve(wave.size());
  std::size_t open = 0;
  for (const SearchEntry& e : wave) {
    all.push_back(e.ahead ? e.ahead : std::make_shared<Refinement>(e, best_known));
    open += all.back()->state == Refinement::State::open;
  }
  // The caller makes them in order; the others begin with the last, and before all that was offered.
  if (open > 1 && !helpers_.empty()) {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& one : all)
        if (one->state == Refinement::State::open) waiting_.push_front(one);
    }
    offered_.notify_all();
  }
  for (const auto& one : all) make(*one);
  std::vector<Refined> parts;
  parts.reserve(all.size());
  for (const auto& one : all) {
    one->state.wait(Refinement::State::claimed);
    if (one->failed) std::rethrow_exception(one->failed);
    parts.push_back(std::move(one->made));
  }
  return parts;
}

}  // namespace shardwise
