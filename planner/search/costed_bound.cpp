// The bound of a plan's time from its own costs, without playing the step.
#include <algorithm>
#include <utility>

#include "planner/search/plan_bounds.hpp"
#include "planner/search/stages_together.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/gathered_layers.hpp"

namespace shardwise {
namespace {

// A clock that counts picoseconds rounds the work of a layer, which takes microseconds, by no more.
constexpr double rounded_by_clock = 1 - 1e-7;

// One pass over a chunk whose layers' weights are gathered ahead of it, out of the host's memory
// where they live there: the way of a layer's weights waits for the one before it and for the
// layer that leaves the window, and a layer for its weights. What else the stream of gathers does
// can only delay them.
class GatheredPass {
 public:
  GatheredPass(double window, std::size_t layers)
      : window_(static_cast<std::size_t>(std::max(1.0, window))), layers_(layers) {}

  void layer(Seconds work, const std::optional<Seconds>& gather,
             const std::optional<Seconds>& copy) {
    const bool comes = gather || copy;
    if (comes) {
      const bool full = done_.size() >= window_;
      Seconds from = full ? done_[done_.size() - window_] : Seconds(0);
      if (copy) from = copied_ = std::max(copied_, from) + *copy;
      gathered_ = std::max(gathered_, from) + gather.value_or(Seconds(0));
      end_ = std::max(end_, gathered_);
    }
    end_ += work;
    if (!comes) return;
    if (done_.empty()) done_.reserve(layers_);
    done_.push_back(end_);
  }
  Seconds end() const { return end_; }

 private:
  std::size_t window_, layers_;
  std::vector<Seconds> done_;  // ends of the layers that were gathered
  Seconds copied_, gathered_, end_;
};

Seconds forward_of(const std::vector<LayerSchedule>& chunk, const StepCosts& costs) {
  GatheredPass pass(costs.gather_window, chunk.size());
  for (const LayerSchedule& l : chunk)
    pass.layer(l.time.forward.device(), l.gather_forward, l.copy_in);
  return pass.end();
}

Seconds backward_of(const std::vector<LayerSchedule>& chunk, const StepCosts& costs) {
  GatheredPass pass(costs.gather_window, chunk.size());
  for (auto l = chunk.rbegin(); l != chunk.rend(); ++l)
    pass.layer(l->time.recompute.device() + l->time.backward_input.device() +
                   l->time.backward_weight.device(),
               l->gather_backward, l->copy_in);
  return pass.end();
}

// Of one chunk of layers.
struct ChunkCost {
  Seconds forward, backward;  // with the gathers that they are sure to wait for
};

// Where arrivals have a lane of their own, the weights of a pass may be there before its input.
ChunkCost chunk_cost(const std::vector<LayerSchedule>& chunk, const StepCosts& costs) {
  if (!costs.overlaps_pipeline_comm) return {forward_of(chunk, costs), backward_of(chunk, costs)};
  ChunkCost c;
  for (const LayerSchedule& l : chunk) {
    c.forward += l.time.forward.device();
    c.backward += l.time.recompute.device() + l.time.backward_input.device() +
                  l.time.backward_weight.device();
  }
  return c;
}

// What the stream of data-parallel collectives is busy with in a step.
Seconds data_stream(const StageCosts& stage, const StepCosts& costs, double passes) {
  Seconds sum;
  for (const std::size_t c : stage.alike)
    for (const LayerSchedule& l : stage.chunks[c]) {
      sum +=
          passes * (l.gather_forward.value_or(Seconds(0)) + l.gather_backward.value_or(Seconds(0)) +
                    l.gather_again.value_or(Seconds(0)));
      sum += (costs.reduces_every_microbatch ? passes : 1) * l.reduce.value_or(Seconds(0));
    }
  return sum;
}

// What the lane of copies to the GPU is busy with, there before the passes end.
Seconds copies_in(const StageCosts& stage, double passes) {
  Seconds sum;
  for (const std::size_t c : stage.alike)
    for (const LayerSchedule& l : stage.chunks[c])
      sum += 2 * passes * l.copy_in.value_or(Seconds(0));
  return sum;
}

// What the host issues of a chunk, forward and back (simulator/step/step_lowering.hpp: what runs
// again is issued where it takes the GPU any time).
Seconds chunk_issue_time(const std::vector<LayerSchedule>& chunk) {
  Seconds sum;
  for (const LayerSchedule& l : chunk) {
    sum += l.time.forward.host + l.time.backward_input.host + l.time.backward_weight.host;
    if (l.time.recompute.device() > Seconds(0)) sum += l.time.recompute.host;
  }
  return sum;
}

// Alike for stages of equal layers.
struct StageCost {
  std::vector<ChunkCost> chunks;
  Seconds stream, host, copies;
};

// By stage, each looked at once: `alike` says where.
std::vector<StageCost> stage_costs(const StepCosts& costs, double passes) {
  std::vector<StageCost> list(costs.stages.size());
  for (std::size_t s = 0; s < list.size(); ++s) {
    if (costs.alike[s] != s) continue;
    const StageCosts& stage = costs.stages[s];
    list[s].chunks.reserve(stage.chunks.size());
    for (std::size_t c = 0; c < stage.chunks.size(); ++c)
      list[s].chunks.push_back(stage.alike[c] < c ? list[s].chunks[stage.alike[c]]
                                                  : chunk_cost(stage.chunks[c], costs));
    list[s].stream = data_stream(costs.stages[s], costs, passes);
    list[s].copies = copies_in(costs.stages[s], passes);
    // Where the host is ahead in every layer, kernels take longer than this.
    if (stage.paces.empty())
      for (const std::size_t c : stage.alike)
        list[s].host += passes * chunk_issue_time(stage.chunks[c]);
  }
  return list;
}

struct Walk {
  std::vector<int> stage_of;  // each chunk
  // Before the input of a chunk's first slot is on its way, and there; after its last backward.
  std::vector<Seconds> sent, head, tail;
};

// Chunk by chunk along the model, with the transfers between stages.
Walk walk_chunks(const PipelineSchedule& schedule, PipelineShape shape, const StepCosts& costs,
                 const std::vector<StageCost>& stages) {
  const auto chunks = static_cast<std::size_t>(schedule.model_chunks(shape));
  std::vector<Seconds> forward(chunks), backward(chunks);
  std::vector<int> stage_of(chunks, -1);
  for (int s = 0; s < shape.stages; ++s)
    for (int k = 0; k < shape.chunks_per_stage; ++k) {
      const auto c = static_cast<std::size_t>(schedule.model_chunk(shape, s, k));
      const ChunkCost& cost =
          stages[costs.alike[static_cast<std::size_t>(s)]].chunks[static_cast<std::size_t>(k)];
      // Where the model is held twice, the copy that is faster stands for both.
      const Seconds f = cost.forward, b = cost.backward;
      const bool known = stage_of[c] >= 0;
      forward[c] = known ? std::min(forward[c], f) : f;
      backward[c] = known ? std::min(backward[c], b) : b;
      stage_of[c] = s;
    }
  Walk w{{}, {Seconds(0)}, {Seconds(0)}, {Seconds(0)}};
  for (std::size_t c = 0; c + 1 < chunks; ++c) {
    // Where the model is held twice, the other copy's neighbour may be near: nothing is counted.
    const bool sent = schedule.weight_copies == 1 && stage_of[c] != stage_of[c + 1];
    const int before = (stage_of[c + 1] + shape.stages - 1) % shape.stages;
    const auto send = [&](int link) {
      return sent ? costs.send[static_cast<std::size_t>(link)] : Seconds(0);
    };
    w.sent.push_back(w.head.back() + forward[c]);
    w.head.push_back(w.sent.back() + send(before));
    w.tail.push_back(w.tail.back() + backward[c] + send(stage_of[c]));
  }
  w.stage_of = std::move(stage_of);
  return w;
}

// What one microbatch's arrivals at a chunk take, whichever lane takes it.
ArrivalCost arrival_time(const PipelineSchedule& schedule, PipelineShape shape,
                         const StepCosts& costs, const Walk& walk, int stage, int chunk) {
  const int c = schedule.model_chunk(shape, stage, chunk);
  const auto elsewhere = [&](int neighbour) {
    if (neighbour < 0 || neighbour >= schedule.model_chunks(shape)) return false;
    return schedule.weight_copies > 1 ||
           walk.stage_of[static_cast<std::size_t>(neighbour)] != stage;
  };
  ArrivalCost cost;
  const int before = (stage + shape.stages - 1) % shape.stages;
  if (elsewhere(c - 1)) cost.forward = costs.send[static_cast<std::size_t>(before)];
  if (elsewhere(c + 1)) cost.backward = costs.send[static_cast<std::size_t>(stage)];
  return cost;
}

// What a stage's compute spends on them.
ArrivalCost arrival_cost(const PipelineSchedule& schedule, PipelineShape shape,
                         const StepCosts& costs, const Walk& walk, int stage, int chunk) {
  if (costs.overlaps_pipeline_comm) return {};
  return arrival_time(schedule, shape, costs, walk, stage, chunk);
}

// Where operators to run again are searched for, activations that run again do not go to the host.
StepCosts costs_of(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan) {
  ParallelPlan p = plan;
  auto policy = *recompute_policy(p.recompute);
  if (policy.row->searched) {
    policy = *recompute_policy("none");
    p.offload.activations = false;
  }
  const ModelPartition partition =
      partition_model(site.workload, p, *find_pipeline_schedule(p.schedule_row()), policy,
                      layers.definitions(site.workload, p));
  const LayerTimes* times =
      layers.times(site.workload, p, site.cluster, site.profile, site.collectives);
  return CostModel(site.workload, p, site.cluster, site.profile, &site.collectives, times)
      .costs(partition, CostModel::StagesCosted::distinct);
}

// Stage by stage, of the plainest way to deal them.
Seconds dealt_stream_bound(const BoundSite& site, const LayerBounds& layers, ParallelPlan p) {
  p.schedule = usual_schedule;
  p.chunks = 1;
  p.layers_per_stage.clear();
  const StepCosts costs = costs_of(site, layers, p);
  Seconds sum;
  const auto stages = stage_costs(costs, static_cast<double>(p.microbatches));
  for (const std::size_t s : costs.alike) sum += stages[s].stream;
  return rounded_by_clock / p.pipeline * sum;
}

// Weights are whole: the mean stage computes its share of the model and reduces the gradients of
// its share, in the last microbatch's backward pass at the earliest.
Seconds whole_weights_bound(const BoundSite& site, const LayerBounds& layers,
                            const ParallelPlan& p) {
  if (gradient_compression(p.compression) || p.async_data) return Seconds(0);
  const CostModel cost(site.workload, p, site.cluster, site.profile, &site.collectives);
  TrainableElements all;
  for (const LayerKind& k : layers.kinds())
    for (int i = 0; i < k.layers; ++i)
      all += trainable_elements(site.workload, k.parameters, k.trainable);
  const CostModel::LeastTraffic least = cost.least_traffic(all);
  const Seconds stepped = host_step_bound(site, layers, p);
  const RunBound model = layers.whole();
  const double share = static_cast<double>(p.microbatches) / p.pipeline;
  const Seconds kernels = share * (model.forward + model.backward);
  const Seconds work = std::max(kernels, share * model.host);
  Seconds reduced = work + least.reduced;
  if (!cost.reduces_at_end()) {
    reduced = std::max(work, least.reduced);
    if (p.pipeline == 1) reduced = std::max(reduced, kernels - model.backward + least.reduced);
  }
  return rounded_by_clock * (reduced + stepped + least.gathered);
}

// The first and the last of stages that are alike; unlike numbers of microbatches are
// left to the sums.
bool is_played(const StepCosts& costs, const ParallelPlan& p, int stage) {
  if (costs.rounds) return false;
  const auto s = static_cast<std::size_t>(stage);
  return costs.alike[s] == s || stage + 1 == p.pipeline || costs.alike[s + 1] != costs.alike[s];
}

// The end of a step, from those of its stages.
class StepEnd {
 public:
  explicit StepEnd(bool async_data) : async_data_(async_data) {}

  // Of the next stage. `tail`: of other stages, after this one's compute.
  void add(const StageCosts& stage, const StageEnd& end, Seconds tail) {
    Seconds reduced = std::max(end.compute, end.stream);
    if (!async_data_)
      reduced +=
          stage.reduce_at_end.value_or(Seconds(0)) + stage.copy_out_at_end.value_or(Seconds(0));
    reduced_.push_back(reduced);
    passed_ = std::max(passed_, end.compute + tail);
    ready_ = std::max({ready_, reduced, passed_});
  }
  // The stages of a node share what steps for them; what follows the last of them is at least what
  // follows any.
  Seconds longest(const StepCosts& costs) const {
    const auto together = static_cast<std::size_t>(costs.stages_on_a_host);
    Seconds longest = passed_;
    for (std::size_t first = 0; first < reduced_.size(); first += together) {
      Seconds begun(1e300), stepped, behind(1e300);
      for (std::size_t s = first; s < std::min(first + together, reduced_.size()); ++s) {
        const StageCosts& stage = costs.stages[costs.alike[s]];
        const Seconds own = stage.host_optimizer.value_or(Seconds(0)), after = follows(stage);
        const Seconds from = costs.waits_for_all_stages ? ready_ : reduced_[s];
        begun = std::min(begun, from);
        stepped += own;
        behind = std::min(behind, after);
        longest = std::max(longest, from + own + after);
      }
      if (stepped > Seconds(0)) longest = std::max(longest, begun + stepped + behind);
    }
    return longest;
  }

 private:
  // The CPU's step, on the GPU.
  static Seconds follows(const StageCosts& stage) {
    return stage.optimizer + stage.copy_in_at_end.value_or(Seconds(0)) +
           stage.gather_at_end.value_or(Seconds(0));
  }

  bool async_data_;
  std::vector<Seconds> reduced_;  // by stage: its gradients
  Seconds passed_, ready_;        // of all stages: passes, gradients
};

}  // namespace

namespace {

// Layer by layer, however they are dealt. `layers` has the model on one stage, where a tied head
// has no weights of its own.
Seconds sharded_weights_bound(const BoundSite& site, const LayerBounds& layers,
                              const ParallelPlan& p) {
  if (p.shard_ranks() == 1) return Seconds(0);
  if (gradient_compression(p.compression) || layers.joins_blocks() ||
      site.workload.model.tied_embeddings || keeps_layers_gathered(site.workload, p))
    return dealt_stream_bound(site, layers, p);
  const CostModel cost(site.workload, p, site.cluster, site.profile, &site.collectives);
  const auto passes = static_cast<double>(p.microbatches);
  const auto& kinds = layers.kinds();
  Seconds sum;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const LayerKind& k = kinds[i];
    const bool first = i == 0, last = i + 1 == kinds.size();
    const auto add = [&](int layers_of_kind, LayerRole role) {
      sum += layers_of_kind * cost.stream_time(k.parameters, k.trainable, role, passes);
    };
    if (first) add(1, LayerRole::embedding);
    if (k.layers > first + last) add(k.layers - first - last, LayerRole::block);
    if (last) add(1, LayerRole::head);
  }
  return rounded_by_clock / p.pipeline * sum;
}

// Of the mean stage: what lives on the host comes for every pass.
Seconds copies_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p) {
  if (!p.offload.parameters) return Seconds(0);
  const CostModel cost(site.workload, p, site.cluster, site.profile, &site.collectives);
  const std::vector<LayerState> states = layer_states(site, layers, p);
  Seconds once;
  for (std::size_t k = 0; k < states.size(); ++k)
    once += layers.kinds()[k].layers * cost.copy_in_time(states[k]);
  return rounded_by_clock * (2.0 * p.microbatches / p.pipeline) * once;
}

}  // namespace

Seconds stream_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p) {
  const Seconds stepped = host_step_bound(site, layers, p);
  const Seconds behind_copies = copies_bound(site, layers, p) + stepped;
  if (p.layer_split) return behind_copies;
  if (!shards_weights(site.workload.framework, p))
    return std::max(behind_copies, whole_weights_bound(site, layers, p));
  return std::max(behind_copies, sharded_weights_bound(site, layers, p) + stepped);
}

Seconds costed_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
                     KnownSlots& known) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const StepCosts costs = costs_of(site, layers, p);
  const PipelineShape shape{p.pipeline, p.chunks, p.microbatches};
  const double passes = static_cast<double>(p.microbatches) / schedule.weight_copies;
  const std::vector<StageCost> stages = stage_costs(costs, passes);
  const Walk walk = walk_chunks(schedule, shape, costs, stages);
  std::vector<ArrivalCost> arrivals(static_cast<std::size_t>(p.chunks));
  const bool host_bound = costs.is_host_bound();
  StepEnd step(p.async_data);
  for (int s = 0; s < p.pipeline; ++s) {
    const std::size_t first = costs.alike[static_cast<std::size_t>(s)];
    const StageCosts& stage = costs.stages[first];
    const StageCost& cost = stages[first];
    Seconds work, head(1e300), tail(1e300);
    for (int k = 0; k < p.chunks; ++k) {
      const auto c = static_cast<std::size_t>(schedule.model_chunk(shape, s, k));
      const ChunkCost& chunk = cost.chunks[static_cast<std::size_t>(k)];
      ArrivalCost& arrival = arrivals[static_cast<std::size_t>(k)];
      arrival = arrival_cost(schedule, shape, costs, walk, s, k);
      work += passes * (chunk.forward + chunk.backward + arrival.forward + arrival.backward);
      head = std::min(head, costs.overlaps_pipeline_comm ? walk.head[c] : walk.sent[c]);
      tail = std::min(tail, schedule.splits_backward ? Seconds(0) : walk.tail[c]);
    }
    StageEnd end{std::max({head + work, cost.host, cost.copies}), cost.stream};
    if (const auto slots = is_played(costs, p, s) ? known.of(schedule, shape, s) : nullptr) {
      const int reducing = p.async_data ? 0 : p.microbatches;  // none of them, or the last
      const StageEnd alone = stage_alone(*slots, stage, costs, reducing, head, arrivals,
                                         host_bound && stage.paces.empty());
      end = {std::max(end.compute, alone.compute), std::max(end.stream, alone.stream)};
    }
    step.add(stage, end, tail);
  }
  return rounded_by_clock * step.longest(costs);
}

Seconds together_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
                       KnownSlots& known) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  if (p.pipeline == 1 || p.async_data || schedule.weight_copies > 1) return Seconds(0);
  const StepCosts costs = costs_of(site, layers, p);
  const auto unlike = [](const StageCosts& stage) { return !stage.paces.empty(); };
  if (costs.rounds || std::any_of(costs.stages.begin(), costs.stages.end(), unlike))
    return Seconds(0);
  const PipelineShape shape{p.pipeline, p.chunks, p.microbatches};
  const Walk walk = walk_chunks(schedule, shape, costs, stage_costs(costs, p.microbatches));
  std::vector<KnownSlots::List> slots;
  std::vector<std::vector<ChunkInputs>> inputs(static_cast<std::size_t>(p.pipeline));
  for (int s = 0; s < p.pipeline; ++s) {
    slots.push_back(known.of(schedule, shape, s));
    if (!slots.back()) return Seconds(0);
    for (int k = 0; k < p.chunks; ++k) {
      const ArrivalCost time = arrival_time(schedule, shape, costs, walk, s, k);
      ChunkInputs& from = inputs[static_cast<std::size_t>(s)].emplace_back();
      from.model_chunk = schedule.model_chunk(shape, s, k);
      if (costs.overlaps_pipeline_comm) {
        from.sent_forward = time.forward;
        from.sent_backward = time.backward;
      } else {
        from.arrival = time;
      }
    }
  }
  const std::vector<StageEnd> ends = stages_together(slots, shape, costs, inputs);
  StepEnd step(p.async_data);
  for (std::size_t s = 0; s < ends.size(); ++s)
    step.add(costs.stages[costs.alike[s]], ends[s], Seconds(0));
  return rounded_by_clock * step.longest(costs);
}

}  // namespace shardwise
