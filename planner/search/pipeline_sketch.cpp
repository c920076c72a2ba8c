#include "planner/search/pipeline_sketch.hpp"

#include <algorithm>
#include <set>

#include "simulator/model_partition.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

// A lower bound: fewer microbatches are never more in flight, which is swept by a test.
int in_flight_at_least(const PipelineSchedule& schedule, PipelineShape shape, int stage) {
  PipelineShape shorter = shape;
  shorter.microbatches = 2 * shape.stages;
  const bool fewer =
      shorter.microbatches < shape.microbatches && !refusal(schedule, shorter).has_value();
  return awaiting_backward(schedule.order(fewer ? shorter : shape, stage));
}

StageSketch stage_sketch(const PipelineSchedule& schedule, PipelineShape shape, int stage,
                         const std::vector<int>& blocks) {
  StageSketch s;
  s.chunks = shape.chunks_per_stage;
  s.before = s.least_blocks = 1 << 30;
  for (int local = 0; local < shape.chunks_per_stage; ++local) {
    const int c = schedule.model_chunk(shape, stage, local);
    const auto at = blocks.begin() + c;
    s.blocks += *at;
    s.least_blocks = std::min(s.least_blocks, *at);
    s.begin_with_block += c > 0 && *at > 0;
    s.end_with_block += at + 1 != blocks.end() && *at > 0;
    int before = 0;
    for (auto b = blocks.begin(); b != at; ++b) before += *b;
    s.before = std::min(s.before, before);
    s.embedding = s.embedding || c == 0;
    s.head = s.head || at + 1 == blocks.end();
  }
  s.in_flight = in_flight_at_least(schedule, shape, stage);
  return s;
}

void add_least(StateBounds::Least& to, const StateBounds::Least& one, std::int64_t layers) {
  to.kept += layers * one.kept;
  to.with_gradients += layers * one.with_gradients;
  to.at_step += layers * one.at_step;
}

}  // namespace

PipelineSketch sketch_of(const ParallelPlan& p, int layers, const PipelineVariant& variant) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const PipelineShape shape{p.pipeline, p.chunks, p.microbatches};
  const std::vector<int> blocks =
      blocks_per_chunk(layers, schedule.model_chunks(shape), p.layers_per_stage);
  PipelineSketch sketch{variant,
                        static_cast<double>(p.microbatches) / schedule.weight_copies,
                        schedule.splits_backward,
                        {}};
  for (const int stage : std::set<int>{0, std::min(1, p.pipeline - 1), p.pipeline - 1})
    sketch.stages.push_back(stage_sketch(schedule, shape, stage, blocks));
  return sketch;
}

StateBounds::StateBounds(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
                         const std::vector<LayerState>& states) {
  const auto& all = layers.kinds();
  blocks_.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StageStateBytes s = state_bytes(site, p, states[i]);
    const Least one{s.kept, s.with_gradients, s.at_step};
    // The first and the last layer are the ends of the model.
    int count = all[i].layers;
    if (i == 0) embedding_ = one, --count;
    if (i + 1 == all.size()) head_ = one, --count;
    if (count > 0) blocks_.emplace_back(one, count);
  }
  std::stable_sort(blocks_.begin(), blocks_.end(), [](const auto& a, const auto& b) {
    return a.first.with_gradients < b.first.with_gradients;
  });
}

StateBounds::Least StateBounds::of(const StageSketch& stage) const {
  Least sum;
  int left = stage.blocks;
  for (auto kind = blocks_.begin(); left > 0; ++kind) {
    add_least(sum, kind->first, std::min(left, kind->second));
    left -= kind->second;
  }
  if (stage.embedding) add_least(sum, embedding_, 1);
  if (stage.head) add_least(sum, head_, 1);
  return sum;
}

Seconds sketched_time(const PipelineSketch& sketch, const LayerBounds& layers,
                      const DataTraffic& traffic, std::optional<Seconds> within) {
  const Seconds there = layers.least(layers.blocks(), 1, 0).forward;
  Seconds most;
  for (const StageSketch& s : sketch.stages) {
    const RunBound own = layers.least(s.blocks, s.chunks, s.least_blocks);
    const RunBound before = layers.least(s.before, 1, 0);
    const Seconds forward = own.forward + s.begin_with_block * traffic.gathers.forward;
    Seconds pass = forward + own.backward + s.end_with_block * traffic.gathers.backward;
    Seconds ends, host = own.host;
    if (s.embedding) ends += layers.embedding_time(), host += layers.embedding_host();
    if (s.head) ends += layers.head_time(), host += layers.head_host();
    pass += ends;
    const Seconds own_passes = before.forward + sketch.passes * pass;
    Seconds passed = own_passes, time = passed;
    if (!sketch.splits_backward) {
      const RunBound behind = layers.least(layers.blocks() - s.before, 1, 0);
      passed = std::max(passed, there + behind.backward + layers.head_time());
      time = passed + before.backward;
      Seconds back = std::max(before.forward + sketch.passes * forward, there);
      if (traffic.holds_up && !(s.embedding && s.least_blocks == 0))
        back = std::max(back, own_passes - own.backward - ends);
      if (!traffic.least.empty())
        time = std::max(
            time, traffic.end(back, passed, traffic.least[static_cast<std::size_t>(s.blocks)]));
    }
    time = std::max(time, sketch.passes * host) + traffic.stepped;
    most = std::max(most, (1 - 1e-9) * time);
    if (within && most > *within) break;
  }
  return most;
}

Bytes sketched_memory(const PipelineSketch& sketch, const LayerBounds& layers,
                      const StateBounds& states, const ParallelPlan& p, Bytes outside) {
  Bytes most;
  for (const StageSketch& s : sketch.stages) {
    const StateBounds::Least held = states.of(s);
    const Bytes saved = p.offload.activations ? Bytes(0) : layers.least_saved(s.least_blocks);
    most = std::max(
        {most, held.with_gradients, held.at_step, held.kept + std::int64_t{s.in_flight} * saved});
  }
  return most + outside;
}

KnownPipelines::List KnownPipelines::found(const PlanSpace& space, const PlanPoint& x) {
  auto list = std::make_shared<std::vector<PipelineSketch>>();
  for (const PipelineVariant& v : space.variants(x)) {
    const ParallelPlan p = *space.plan(PlanSpace::with(x, v));
    list->push_back(sketch_of(p, space.workload(p).model.layers, v));
  }
  return list;
}

// On GPUs of unlike kinds layers may be dealt by speed, which depends on more.
KnownPipelines::List KnownPipelines::of(std::size_t site, const PlanSpace& space,
                                        const PlanPoint& x) {
  if (space.cluster().groups.size() > 1) return found(space, x);
  const ParallelPlan p = *space.plan(x);
  const std::tuple key{site, p.pipeline, p.microbatches};
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  List list = found(space, x);
  const std::lock_guard lock(mutex_);
  if (!list->empty()) known_[key] = list;
  return list;
}

}  // namespace shardwise
