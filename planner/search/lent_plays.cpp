#include "planner/search/lent_plays.hpp"

#include <algorithm>
#include <utility>

#include "simulator/memory/played_alike.hpp"

namespace shardwise {

const LentPlays::Played* LentPlays::find(const std::string& plan, const Workload& w) const {
  const auto here = by_plan_.find(plan);
  if (here == by_plan_.end()) return nullptr;
  const auto alike = [&](const Played& one) {
    const Workload& before = one.workload;
    return before.framework.id == w.framework.id && before.optimizer == w.optimizer &&
           before.method == w.method && played_alike(before, w);
  };
  const auto it = std::find_if(here->second.begin(), here->second.end(), alike);
  return it == here->second.end() ? nullptr : &*it;
}

std::shared_ptr<const MemoryPlays> LentPlays::of(const Question& q) {
  const std::string plan = whole_text(q.plan);
  const std::lock_guard lock(mutex_);
  const Played* played = find(plan, q.workload);
  return played == nullptr ? nullptr : played->plays;
}

void LentPlays::add(const Question& q, std::shared_ptr<const MemoryPlays> plays) {
  const std::string plan = whole_text(q.plan);
  const std::lock_guard lock(mutex_);
  if (kept_ == most_kept || find(plan, q.workload) != nullptr) return;
  by_plan_[plan].push_back({q.workload, std::move(plays)});
  ++kept_;
}

}  // namespace shardwise
