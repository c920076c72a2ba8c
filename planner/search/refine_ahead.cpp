#include "planner/search/refine_ahead.hpp"

#include <algorithm>

#include "planner/on_all_cores.hpp"

namespace shardwise {

RefineAhead::RefineAhead(SearchSteps& steps) : steps_(steps) {
  const std::size_t cores = one_of_a_crew ? 1 : cores_here();
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
    {
      std::unique_lock lock(mutex_);
      offered_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
      if (closed_) return;
    }
    if (const auto next = take()) make(*next);
  }
}

std::shared_ptr<Refinement> RefineAhead::take() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return nullptr;
  const std::shared_ptr<Refinement> first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

void RefineAhead::make(Refinement& one) {
  auto open = Refinement::State::open;
  if (!one.state.compare_exchange_strong(open, Refinement::State::claimed)) return;
  try {
    steps_.refine(one.entry, one.limits, one.made);
  } catch (...) {
    one.failed = std::current_exception();
  }
  one.state = Refinement::State::made;
  one.state.notify_all();
}

void RefineAhead::offer(const SearchEntry& entry, const SearchLimits& limits) {
  entry.ahead = std::make_shared<Refinement>(entry, limits);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(entry.ahead);
  }
  offered_.notify_one();
}

std::vector<Refined> RefineAhead::refine(const std::vector<One>& wave) {
  std::vector<std::shared_ptr<Refinement>> all;
  all.reserve(wave.size());
  std::size_t open = 0;
  for (const auto& [entry, limits] : wave) {
    const bool begun = entry.ahead && entry.ahead->limits == limits;
    all.push_back(begun ? entry.ahead : std::make_shared<Refinement>(entry, limits));
    open += all.back()->state == Refinement::State::open;
  }
  // The caller makes them in order; the others begin with the last, before what was offered.
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
    while (one->state == Refinement::State::claimed)
      if (const auto next = take())
        make(*next);
      else
        one->state.wait(Refinement::State::claimed);
    if (one->failed) std::rethrow_exception(one->failed);
    parts.push_back(std::move(one->made));
  }
  return parts;
}

}  // namespace shardwise
