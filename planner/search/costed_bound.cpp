// The bound of a plan's time from its own costs, without playing the step.
#include <algorithm>

#include "planner/search/plan_bounds.hpp"
#include "simulator/cost_model.hpp"

namespace shardwise {
namespace {

Seconds forward_of(const std::vector<LayerSchedule>& chunk) {
  Seconds sum;
  for (const LayerSchedule& l : chunk) sum += l.time.forward.device();
  return sum;
}

Seconds backward_of(const std::vector<LayerSchedule>& chunk) {
  Seconds sum;
  for (const LayerSchedule& l : chunk)
    sum += l.time.recompute.device() + l.time.backward_input.device() +
           l.time.backward_weight.device();
  return sum;
}

// What the stream of data-parallel collectives is busy with in a step.
Seconds data_stream(const StageCosts& stage, const StepCosts& costs, double passes) {
  Seconds sum;
  for (const auto& chunk : stage.chunks)
    for (const LayerSchedule& l : chunk) {
      sum +=
          passes * (l.gather_forward.value_or(Seconds(0)) + l.gather_backward.value_or(Seconds(0)));
      sum += (costs.reduces_every_microbatch ? passes : 1) * l.reduce.value_or(Seconds(0));
    }
  return sum;
}

struct Walk {
  std::vector<Seconds> head, tail;  // before the first slot of a chunk; after its last backward
};

// Chunk by chunk along the model, with the transfers between stages.
Walk walk_chunks(const PipelineSchedule& schedule, PipelineShape shape, const StepCosts& costs) {
  const auto chunks = static_cast<std::size_t>(schedule.model_chunks(shape));
  std::vector<Seconds> forward(chunks), backward(chunks);
  std::vector<int> stage_of(chunks, -1);
  for (int s = 0; s < shape.stages; ++s)
    for (int k = 0; k < shape.chunks_per_stage; ++k) {
      const auto c = static_cast<std::size_t>(schedule.model_chunk(shape, s, k));
      const auto& list =
          costs.stages[static_cast<std::size_t>(s)].chunks[static_cast<std::size_t>(k)];
      // Where the model is held twice, the copy that is faster stands for both.
      const Seconds f = forward_of(list), b = backward_of(list);
      const bool known = stage_of[c] >= 0;
      forward[c] = known ? std::min(forward[c], f) : f;
      backward[c] = known ? std::min(backward[c], b) : b;
      stage_of[c] = s;
    }
  Walk w{{Seconds(0)}, {Seconds(0)}};
  for (std::size_t c = 0; c + 1 < chunks; ++c) {
    // Where the model is held twice, the other copy's neighbour may be near: nothing is counted.
    const bool sent = schedule.weight_copies == 1 && stage_of[c] != stage_of[c + 1];
    const int before = (stage_of[c + 1] + shape.stages - 1) % shape.stages;
    const auto send = [&](int link) {
      return sent ? costs.send[static_cast<std::size_t>(link)] : Seconds(0);
    };
    w.head.push_back(w.head.back() + forward[c] + send(before));
    w.tail.push_back(w.tail.back() + backward[c] + send(stage_of[c]));
  }
  return w;
}

StepCosts costs_of(const BoundSite& site, const ParallelPlan& p) {
  auto policy = *recompute_policy(p.recompute);
  if (policy.row->searched) policy = *recompute_policy("none");
  const ModelPartition partition =
      partition_model(site.workload, p, *find_pipeline_schedule(p.schedule_row()), policy);
  return CostModel(site.workload, p, site.cluster, site.profile).costs(partition);
}

}  // namespace

Seconds stream_bound(const BoundSite& site, const ParallelPlan& of_all) {
  ParallelPlan p = of_all;
  p.schedule = "1f1b";
  p.chunks = 1;
  p.layers_per_stage.clear();
  if (p.zero_stage < 3 || p.shard_ranks() == 1 || p.layer_split) return Seconds(0);
  const StepCosts costs = costs_of(site, p);
  Seconds sum;
  for (const StageCosts& stage : costs.stages)
    sum += data_stream(stage, costs, static_cast<double>(p.microbatches));
  return (1 - 1e-9) / p.pipeline * sum;
}

Seconds costed_bound(const BoundSite& site, const ParallelPlan& p) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const StepCosts costs = costs_of(site, p);
  const PipelineShape shape{p.pipeline, p.chunks, p.microbatches};
  const Walk walk = walk_chunks(schedule, shape, costs);
  const double passes = static_cast<double>(p.microbatches) / schedule.weight_copies;
  Seconds ready, longest;  // all stages: gradients reduced; one stage: everything
  for (int s = 0; s < p.pipeline; ++s) {
    const StageCosts& stage = costs.stages[static_cast<std::size_t>(s)];
    Seconds work, head(1e300), tail(1e300);
    for (int k = 0; k < p.chunks; ++k) {
      const auto c = static_cast<std::size_t>(schedule.model_chunk(shape, s, k));
      const auto& list = stage.chunks[static_cast<std::size_t>(k)];
      work += passes * (forward_of(list) + backward_of(list));
      head = std::min(head, walk.head[c]);
      tail = std::min(tail, schedule.splits_backward ? Seconds(0) : walk.tail[c]);
    }
    const Seconds computed = std::max(head + work, data_stream(stage, costs, passes));
    const Seconds reduced =
        computed + (p.async_data ? Seconds(0) : stage.reduce_at_end.value_or(Seconds(0)));
    const Seconds after = stage.optimizer + stage.host_optimizer.value_or(Seconds(0)) +
                          stage.gather_at_end.value_or(Seconds(0));
    ready = std::max(ready, reduced);
    longest = std::max({longest, reduced + after, head + work + tail});
  }
  if (costs.waits_for_all_stages) {
    Seconds least(1e300);
    for (const StageCosts& stage : costs.stages)
      least = std::min(least, stage.optimizer + stage.gather_at_end.value_or(Seconds(0)));
    longest = std::max(longest, ready + least);
  }
  return (1 - 1e-9) * longest;
}

}  // namespace shardwise
