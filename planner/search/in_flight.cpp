#include "planner/search/in_flight.hpp"

#include <algorithm>
#include <utility>

#include "simulator/memory/memory_play.hpp"

namespace shardwise {

int awaiting_backward(std::span<const Slot> slots) {
  int in_flight = 0, peak = 0;
  for (const Slot& slot : slots) {
    if (slot.pass == Pass::forward) peak = std::max(peak, ++in_flight);
    if (slot.pass == Pass::backward || slot.pass == Pass::backward_input) --in_flight;
  }
  return peak;
}

namespace {

InFlightMost most_in_flight(std::span<const Slot> slots, int chunks) {
  std::vector<int> now(static_cast<std::size_t>(chunks));
  std::vector<bool> back(now.size());
  InFlightMost most{now, now};
  int in_flight = 0, at_all = 0, with_gradients = 0;
  for (const Slot& slot : slots) {
    const auto c = static_cast<std::size_t>(slot.chunk);
    if (slot.pass == Pass::forward) {
      ++now[c];
      ++in_flight;
    } else if (slot.pass == Pass::backward || slot.pass == Pass::backward_input) {
      --now[c];
      --in_flight;
      back[c] = true;
    }
    if (in_flight > at_all) {
      at_all = in_flight;
      most.at_all = now;
    }
    if (in_flight > with_gradients && std::find(back.begin(), back.end(), false) == back.end()) {
      with_gradients = in_flight;
      most.with_gradients = now;
    }
  }
  return most;
}

}  // namespace

const InFlightMost& InFlightCounts::of(const Workload& w, const ParallelPlan& p, int stage) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const Framework& f = w.framework;
  const std::array counted{f.process.records_streams, f.gradients.copy_while_accumulating};
  const Key key{&schedule,  f.gradients.life, f.gradients.copy_life, counted,
                p.pipeline, p.chunks,         p.microbatches,        stage};
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  InFlightMost counts = most_in_flight(slots_of_step(w, p, schedule, stage), p.chunks);
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(key, std::move(counts)).first->second;
}

}  // namespace shardwise
