// All bounds of a plan beside its forecast, found as a search finds them (search_steps.cpp): with
// what it knows of other plans' layers.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "planner/forecast/forecast_parts.hpp"
#include "planner/search/known_layers.hpp"
#include "planner/search/pipeline_sketch.hpp"
#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_search.hpp"

namespace shardwise {

struct BoundedPlan {
  Seconds step;
  Bytes fullest;           // of its stages
  bool fits = false;       // all of them
  Seconds step_from_kept;  // the step, forecast from those layers; told where it fits
  std::array<Seconds, 6> times{};
  std::array<Bytes, 5> sizes{};

  Seconds time() const { return *std::max_element(times.begin(), times.end()); }
  Bytes size() const { return *std::max_element(sizes.begin(), sizes.end()); }
  bool is_bounded() const {
    return time() <= step && size() <= fullest && (!fits || step_from_kept == step);
  }
};

// Not safe to ask from several threads.
class BoundedPlans {
 public:
  // Both outlive it.
  BoundedPlans(const SearchSite& site, const Profile& profile)
      : site_(site), profile_(profile), collectives_(site.cluster, profile.links) {}

  // Of a legal plan among those with at most so many stages; nothing where its step is longer than
  // any that can be told.
  std::optional<BoundedPlan> of(const ParallelPlan& p, int most_stages) {
    const BoundSite at{site_.space.workload(p), site_.cluster, profile_, collectives_};
    const ParallelPlan whole = unstaged(p);
    const auto layers = layers_.of(0, at, whole);
    const Question question{at.workload, p, site_.cluster};
    const auto f = forecast(question, profile_);
    if (!f) return std::nullopt;
    BoundedPlan b;
    b.step = b.step_from_kept = f->step_time.expected;
    b.fits = true;
    for (const StageForecast& s : f->stages) {
      b.fullest = std::max(b.fullest, s.peak.device);
      b.fits = b.fits && s.peak.device <= s.capacity;
    }
    const KnownCosts lent{&collectives_, layers->definitions(at.workload, p),
                          layers->times(at.workload, p, site_.cluster, profile_, collectives_)};
    if (b.fits)
      b.step_from_kept =
          forecast(question, profile_, {.memory = false, .known = &lent})->step_time.expected;
    bound(at, *layers, p, whole, most_stages, b);
    return b;
  }

 private:
  static ParallelPlan unstaged(const ParallelPlan& p) {
    ParallelPlan whole = p;
    whole.data *= p.pipeline;
    whole.pipeline = whole.chunks = whole.microbatches = 1;
    whole.layer_split = false;
    whole.layers_per_stage.clear();
    whole.shard_group.reset();
    whole.schedule = usual_schedule;
    return whole;
  }

  void bound(const BoundSite& at, const LayerBounds& layers, const ParallelPlan& p,
             const ParallelPlan& whole, int most_stages, BoundedPlan& b) {
    const PipelineSketch sketch = sketch_of(p, layers.blocks(), {});
    const std::vector<LayerState> held = layer_states(at, layers, p);
    const StateBounds states(at, layers, p, held);
    const DataTraffic traffic = data_traffic(at, layers, p);
    b.times = {mean_work_bound(layers, whole, site_.space.batch()) +
                   mean_host_step_bound(at, layers, whole, most_stages),
               pipeline_bound(layers, p, traffic),
               costed_bound(at, layers, p, slots_),
               together_bound(at, layers, p, slots_),
               stream_bound(at, layers, p),
               sketched_time(sketch, layers, traffic)};
    b.sizes = {memory_bound(at, layers, p, counts_, held) + communicators_of(at, p),
               stage_mean_bound(at, layers, p),
               sketched_memory(sketch, layers, states, p, outside_tensors(at)),
               mean_memory_bound(at, layers, whole, most_stages),
               mean_states_bound(at, layers, whole, most_stages)};
  }

  const SearchSite& site_;
  const Profile& profile_;
  CollectiveModel collectives_;
  KnownLayers layers_;
  InFlightCounts counts_;
  KnownSlots slots_;
};

}  // namespace shardwise
