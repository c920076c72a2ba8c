#include "planner/search/plan_bounds.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/memory/communicator_memory.hpp"
#include "simulator/memory/memory_play.hpp"
#include "simulator/memory/optimizer_memory.hpp"
#include "simulator/memory/stage_holdings.hpp"

namespace shardwise {
namespace {

constexpr double rounded_down = 1 - 1e-9;
// Of what is rounded up to whole bytes or elements layer by layer.
constexpr double rounded_by_layers = 1 - 1e-6;

// Model chunks of a plan: where each lies in the model and on the stages.
struct ChunkMap {
  const PipelineSchedule& schedule;
  PipelineShape shape;
  std::vector<int> blocks, first;

  ChunkMap(const ParallelPlan& p, int layers)
      : schedule(*find_pipeline_schedule(p.schedule_row())),
        shape{p.pipeline, p.chunks, p.microbatches},
        blocks(blocks_per_chunk(layers, schedule.model_chunks(shape), p.layers_per_stage)),
        first(blocks.size(), 0) {
    for (std::size_t c = 1; c < first.size(); ++c) first[c] = first[c - 1] + blocks[c - 1];
  }
  std::size_t chunk(int stage, int local) const {
    return static_cast<std::size_t>(schedule.model_chunk(shape, stage, local));
  }
  RunBound run(const LayerBounds& layers, std::size_t c) const {
    return layers.run({first[c], blocks[c], c == 0, c + 1 == first.size()});
  }
  // Passes of each kind through one local chunk: all microbatches, or those of its direction.
  double passes() const { return static_cast<double>(shape.microbatches) / schedule.weight_copies; }
};

}  // namespace

std::vector<LayerState> layer_states(const BoundSite& site, const LayerBounds& layers,
                                     const ParallelPlan& p) {
  std::vector<LayerState> states;
  states.reserve(layers.kinds().size());
  const double kept = stored_base(site.workload, true, true).gradient;
  // Beside adapters, whole layers' gradients are made as wide as theirs (stored_where_trained).
  const bool adapts = row(site.workload.method).adapter;
  const double made = adapts ? std::min(kept, stored_adapter(site.workload).gradient) : kept;
  for (const LayerKind& kind : layers.kinds()) {
    LayerState& state =
        states.emplace_back(layer_state(site.workload, p, kind.parameters, kind.trainable));
    if (!kind.trainable || (kind.ungraded == 0 && made == kept)) continue;
    const double all = made / kept * static_cast<double>(state.gradients);
    const double none = made * static_cast<double>(kind.ungraded);
    state.gradients = static_cast<std::int64_t>(std::max(0.0, all - none));
  }
  return states;
}

namespace {

// The kinds that blocks are of, and how many of them: the first and the last layer are the ends.
std::vector<std::pair<const LayerKind*, int>> kinds_of_blocks(const LayerBounds& layers) {
  const auto& kinds = layers.kinds();
  std::vector<std::pair<const LayerKind*, int>> list;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const int ends = (i == 0 ? 1 : 0) + (i + 1 == kinds.size() ? 1 : 0);
    if (kinds[i].layers > ends) list.emplace_back(&kinds[i], kinds[i].layers - ends);
  }
  return list;
}

// Of all layers, as the plan shards them over its data ranks.
LayerState whole_state(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p) {
  LayerState sum;
  std::vector<LayerState> states = layer_states(site, layers, p);
  for (std::size_t k = 0; k < states.size(); ++k) sum += states[k] *= layers.kinds()[k].layers;
  return sum;
}

// What stages keep.
class StageStates {
 public:
  StageStates(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
              const ChunkMap& map, const std::vector<LayerState>& states)
      : site_(site), layers_(layers), plan_(p), map_(map), states_(states) {}

  StageStateBytes of(int stage) const {
    std::vector<int> counts(states_.size());
    for (int local = 0; local < plan_.chunks; ++local) {
      const std::size_t c = map_.chunk(stage, local);
      if (c == 0) ++counts.front();
      if (c + 1 == map_.first.size()) ++counts.back();
      const int end = map_.first[c] + map_.blocks[c];
      for (int i = map_.first[c]; i < end; ++i) ++counts[layers_.kind_of(i)];
    }
    LayerState sum;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      LayerState all = states_[k];
      sum += all *= counts[k];
    }
    return state_bytes(site_, plan_, sum);
  }
  // What a layer has to reduce, in the format that is sent; nothing where buckets stay allocated.
  Bytes reduced(int block) const {
    const Framework& f = site_.workload.framework;
    const StageHabits habits(f, plan_);
    if (!habits.shards_weights || !habits.shards_gradients || f.gradients.reduce_buffers > 0)
      return Bytes(0);
    const std::size_t kind = layers_.kind_of(block);
    const StoredParameter p = stored_where_trained(site_.workload, layers_.kinds()[kind].trainable);
    return Bytes(static_cast<std::int64_t>(static_cast<double>(states_[kind].unsharded_gradients) *
                                           bytes_per_element(f.gradients.reduce_dtype) /
                                           p.raw_gradient));
  }
  Bytes gathered(int block) const { return Bytes(states_[layers_.kind_of(block)].gathered); }
  // The last layer of a chunk, whole: the first to go back.
  Bytes gathered_last(std::size_t chunk) const {
    if (chunk + 1 == map_.first.size()) return Bytes(states_.back().gathered);
    const int blocks = map_.blocks[chunk];
    if (blocks == 0) return Bytes(chunk == 0 ? states_.front().gathered : 0);
    return gathered(map_.first[chunk] + blocks - 1);
  }

 private:
  const BoundSite& site_;
  const LayerBounds& layers_;
  const ParallelPlan& plan_;
  const ChunkMap& map_;
  const std::vector<LayerState>& states_;  // of each kind of layer
};

// Whether a stage has blocks of other kinds, or other numbers of them, than the one before it.
bool differs_from_last(const LayerBounds& layers, const ParallelPlan& p, const ChunkMap& map,
                       int stage) {
  for (int local = 0; local < p.chunks; ++local) {
    const std::size_t here = map.chunk(stage, local), last = map.chunk(stage - 1, local);
    if (map.blocks[here] != map.blocks[last]) return true;
    for (int i = 0; i < map.blocks[here]; ++i)
      if (layers.kind_of(map.first[here] + i) != layers.kind_of(map.first[last] + i)) return true;
  }
  return false;
}

// The ends, the first between them, and each that begins with other layers: where layers are
// alike, the earlier stage holds more microbatches.
std::vector<int> telling_stages(const LayerBounds& layers, const ParallelPlan& p,
                                const ChunkMap& map) {
  std::vector<int> stages;
  for (int s = 0; s < p.pipeline; ++s)
    if (s < 2 || s + 1 == p.pipeline || differs_from_last(layers, p, map, s)) stages.push_back(s);
  return stages;
}

}  // namespace

Bytes outside_tensors(const BoundSite& site) {
  Bytes least(std::int64_t{1} << 62);
  for (const NodeGroup& g : site.cluster.groups) {
    const ContextCalibration& c = site.profile.row(g.gpu.family).context;
    least =
        std::min(least, c.cuda_context + std::int64_t{c.cublas_workspaces} * c.cublas_workspace);
  }
  return least;
}

StageStateBytes state_bytes(const BoundSite& site, const ParallelPlan& p, const LayerState& sum) {
  const Framework& f = site.workload.framework;
  std::int64_t kept = sum.left_by_offload(f), gradients = 0;
  if (!p.offload.parameters) kept += sum.offloaded(f) + sum.narrow_copies;
  if (!p.offload.optimizer) kept += sum.master + sum.optimizer;
  const GradientLife life = f.gradients.life;
  // A CPU optimizer takes gradients when they are reduced to shards; others stay until it has
  // stepped.
  const bool leave = p.offload.optimizer && StageHabits(f, p).shards_gradients;
  if (!leave && life != GradientLife::in_backward) gradients = sum.gradients;
  const bool persistent = life == GradientLife::persistent;
  if (persistent) kept += sum.gradients;
  const std::int64_t all = persistent ? kept : kept + gradients;
  // Where other ranks' shares of the gradients are dropped before, or all of them as soon as they
  // are widened (OptimizerMemory), no gradient is counted.
  const bool widened = f.update.clones_partition && f.update.fp32_gradient_at_step &&
                       !f.update.fused && !persistent && p.zero_stage == 2;
  const bool drops =
      ((steps_flat_shard(f, p) && p.zero_stage == 1) || widened) && !p.offload.optimizer;
  const std::int64_t temporary = OptimizerMemory::least_temporaries(site.workload, p, sum);
  return {Bytes(kept), Bytes(all), Bytes((drops ? kept : all) + temporary)};
}

Bytes communicators_of(const BoundSite& site, const ParallelPlan& p) {
  return plan_communicators(site.workload, p, site.cluster, RankLayout(p, site.cluster),
                            site.collectives)
      .device;
}

Seconds mean_work_bound(const LayerBounds& layers, const ParallelPlan& p, int batch) {
  const RunBound all = layers.whole();
  const double passes = static_cast<double>(batch) / p.microbatch;
  const double share = static_cast<double>(p.tensor) * p.context / p.gpus();
  return rounded_down * passes * share * std::max(all.forward + all.backward, all.host);
}

namespace {

// REQUIRES a plan with as many stages as `p` says; `elements`: those of one rank of each stage.
Seconds host_step_of(const BoundSite& site, const ParallelPlan& p, double elements) {
  if (p.pipeline > 1 && !site.workload.framework.update.clips_gradients) return Seconds(0);
  const CostModel cost(site.workload, p, site.cluster, site.profile, &site.collectives);
  return rounded_by_layers * cost.least_host_step(elements);
}

}  // namespace

Seconds host_step_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p) {
  if (!p.offload.optimizer) return Seconds(0);
  return host_step_of(site, p, static_cast<double>(whole_state(site, layers, p).stepped_elements));
}

Seconds mean_host_step_bound(const BoundSite& site, const LayerBounds& layers,
                             const ParallelPlan& p, int most_stages) {
  Seconds least = host_step_bound(site, layers, p);
  ParallelPlan staged = p;
  for (int stages = 2; stages <= most_stages && least > Seconds(0); ++stages) {
    if (p.data % stages != 0) continue;
    staged.pipeline = stages;
    staged.data = p.data / stages;
    // What data ranks share out is more for each where there are fewer of them.
    const std::int64_t elements = whole_state(site, layers, p).stepped_elements;
    const int times = p.zero_stage > 0 ? stages : 1;
    least = std::min(least, host_step_of(site, staged, static_cast<double>(times * elements)));
  }
  return least;
}

// A millionth for bytes that are rounded up to whole ones layer by layer.
Bytes rounded_sum(std::int64_t bytes) { return Bytes(bytes / 1'000'000 * 999'999); }

namespace {

// What the mean stage of a set keeps, and beside that while its optimizer steps. Stages divide what
// data ranks do not; what data ranks share out is the same on any number of stages, as there are
// fewer data ranks to each.
struct MeanStates {
  std::int64_t kept = 0, temporary = 0;

  MeanStates(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p, int stages) {
    const LayerState sum = whole_state(site, layers, p);
    const auto share = [&](std::int64_t bytes, int sharded_from) {
      return p.zero_stage >= sharded_from ? bytes : bytes / stages;
    };
    // Quantised weights that data ranks do not share out are divided by stages.
    const Workload& w = site.workload;
    const bool whole = w.freezes_quantized() && !w.framework.sharding.quantized;
    if (!p.offload.parameters)
      kept += (whole ? sum.weights / stages : share(sum.weights, 3)) +
              (sum.quantization + sum.adapters) / stages;
    if (!p.offload.optimizer) kept += share(sum.master + sum.optimizer, 1);
    temporary = share(OptimizerMemory::least_temporaries(site.workload, p, sum), 1);
  }
};

}  // namespace

Bytes mean_states_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
                        int most_stages) {
  const MeanStates mean(site, layers, p, most_stages);
  return rounded_sum(mean.kept + mean.temporary) + outside_tensors(site);
}

Bytes mean_memory_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
                        int most_stages) {
  const MeanStates mean(site, layers, p, most_stages);
  const std::int64_t saved = p.offload.activations ? 0 : layers.least_saved().value / most_stages;
  return rounded_sum(mean.kept) + rounded_sum(std::max(mean.temporary, saved)) +
         outside_tensors(site);
}

Bytes stage_mean_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p) {
  const StageStateBytes states = state_bytes(site, p, whole_state(site, layers, p));
  const std::int64_t saved = p.offload.activations ? 0 : layers.least_saved().value;
  const std::int64_t most =
      std::max({states.with_gradients.value, states.at_step.value, states.kept.value + saved});
  return rounded_sum(most / p.pipeline) + outside_tensors(site);
}

namespace {

// Of any block of the plan.
CostModel::BlockGathers block_gathers(const LayerBounds& layers, const ParallelPlan& p,
                                      const CostModel& cost) {
  if (p.zero_stage < 3 || p.shard_ranks() == 1) return {};
  std::optional<CostModel::BlockGathers> least;
  for (const auto& [kind, blocks] : kinds_of_blocks(layers)) {
    const auto one = cost.block_gathers(kind->parameters, kind->trainable);
    if (!least || one.forward < least->forward) least = one;
  }
  return least.value_or(CostModel::BlockGathers{});
}

// By what one element of linear layers, of other dense ones and of experts takes: traffic is as
// long as its bytes.
std::vector<CostModel::LeastTraffic> traffic_of_kinds(const BoundSite& site,
                                                      const LayerBounds& layers,
                                                      const ParallelPlan& p,
                                                      const CostModel& cost) {
  constexpr std::int64_t many = std::int64_t{1} << 40;
  const bool sharded = shards_weights(site.workload.framework, p);
  const CostModel::LeastTraffic linear = cost.least_traffic({.dense = many, .linear = many}),
                                other = cost.least_traffic({.dense = many}),
                                expert = cost.least_traffic({.expert = many});
  std::vector<CostModel::LeastTraffic> list;
  list.reserve(layers.kinds().size());
  for (const LayerKind& kind : layers.kinds()) {
    const TrainableElements t = trainable_elements(site.workload, kind.parameters, kind.trainable);
    // The mean stage's, of a plan with so many stages.
    const double of_linear = static_cast<double>(t.linear) / many * p.pipeline;
    const double of_other = static_cast<double>(t.dense - t.linear) / many * p.pipeline;
    const double of_expert = static_cast<double>(t.expert) / many * p.pipeline;
    list.push_back(of_linear * linear + of_other * other + of_expert * expert);
    if (sharded) list.back().gathered = Seconds(0);
  }
  return list;
}

// Each so many times, the least first.
std::vector<Seconds> rising(std::vector<std::pair<Seconds, int>>& kinds) {
  std::sort(kinds.begin(), kinds.end());
  std::vector<Seconds> all;
  for (const auto& [time, times] : kinds)
    all.insert(all.end(), static_cast<std::size_t>(times), time);
  return all;
}

}  // namespace

DataTraffic data_traffic(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p) {
  DataTraffic traffic;
  traffic.stepped = host_step_bound(site, layers, p);
  if (p.data * p.context == 1 || p.layer_split) return traffic;
  const CostModel cost(site.workload, p, site.cluster, site.profile, &site.collectives);
  traffic.gathers = block_gathers(layers, p, cost);
  if (gradient_compression(p.compression) || p.async_data) return traffic;
  traffic.behind_passes = cost.reduces_at_end();
  traffic.holds_up = traffic.gathers.backward > Seconds(0) && !layers.joins_blocks();
  traffic.of_kind = traffic_of_kinds(site, layers, p, cost);
  std::vector<std::pair<Seconds, int>> reduced, gathered;
  for (const auto& [kind, blocks] : kinds_of_blocks(layers)) {
    const auto& one = traffic.of_kind[static_cast<std::size_t>(kind - layers.kinds().data())];
    reduced.emplace_back(one.reduced, blocks);
    gathered.emplace_back(one.gathered, blocks);
  }
  const std::vector<Seconds> each_reduced = rising(reduced), each_gathered = rising(gathered);
  traffic.least.reserve(each_reduced.size() + 1);
  traffic.least.emplace_back();
  for (std::size_t i = 0; i < each_reduced.size(); ++i)
    traffic.least.push_back(traffic.least.back() +
                            CostModel::LeastTraffic{each_reduced[i], each_gathered[i]});
  return traffic;
}

Seconds pipeline_bound(const LayerBounds& layers, const ParallelPlan& p,
                       const DataTraffic& traffic) {
  const ChunkMap map(p, layers.blocks());
  std::vector<RunBound> runs;
  std::vector<Seconds> head(1), tail(1);
  runs.reserve(map.first.size());
  head.reserve(map.first.size() + 1);
  tail.reserve(map.first.size() + 1);
  for (std::size_t c = 0; c < map.first.size(); ++c) {
    runs.push_back(map.run(layers, c));
    head.push_back(head.back() + runs.back().forward);
    tail.push_back(tail.back() + runs.back().backward);
  }
  const bool reduces = !traffic.of_kind.empty() && !map.schedule.splits_backward;
  Seconds most;
  for (int stage = 0; stage < p.pipeline; ++stage) {
    Seconds forward, backward, host, once_back, first(1e300), last(1e300);
    bool begins_with_block = true;
    CostModel::LeastTraffic once;
    for (int local = 0; local < p.chunks; ++local) {
      const std::size_t c = map.chunk(stage, local);
      forward += map.passes() * runs[c].forward;
      backward += map.passes() * runs[c].backward;
      host += map.passes() * runs[c].host;
      once_back += runs[c].backward;
      begins_with_block = begins_with_block && (c > 0 || map.blocks[c] > 0);
      if (map.blocks[c] > 0) {
        if (c > 0) forward += map.passes() * traffic.gathers.forward;
        if (c + 1 < runs.size()) backward += map.passes() * traffic.gathers.backward;
      }
      first = std::min(first, head[c]);
      last = std::min(last, map.schedule.splits_backward ? Seconds(0) : tail[c]);
      for (int i = map.first[c]; reduces && i < map.first[c] + map.blocks[c]; ++i)
        once = once + traffic.of_kind[layers.kind_of(i)];
    }
    Seconds passed = first + forward + backward;
    // One microbatch's way there and back, where no half of it waits for the other.
    if (!map.schedule.splits_backward) passed = std::max(passed, head.back() + tail.back() - last);
    most = std::max({most, passed + last, host});
    Seconds back = std::max(first + forward, head.back());
    if (traffic.holds_up && begins_with_block)
      back = std::max(back, first + forward + backward - once_back);
    if (reduces) most = std::max(most, traffic.end(back, passed, once));
  }
  return rounded_down * (most + traffic.stepped);
}

namespace {

// What microbatches in flight have saved, and what the backward pass that comes next adds.
Bytes saved_and_rise(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
                     const ChunkMap& map, const StageStates& states, int stage,
                     const std::vector<int>& in_flight) {
  if (p.offload.activations) return Bytes(0);
  const bool gathers = StageHabits(site.workload.framework, p).shards_weights;
  Bytes saved;
  std::optional<Bytes> least_rise;
  for (int local = 0; local < p.chunks; ++local) {
    const std::int64_t held = in_flight[static_cast<std::size_t>(local)];
    if (held == 0) continue;
    const std::size_t c = map.chunk(stage, local);
    const RunBound run = map.run(layers, c);
    saved += held * run.saved;
    const Bytes rise = run.rise + (gathers ? states.gathered_last(c) : Bytes(0));
    least_rise = std::min(least_rise.value_or(rise), rise);
  }
  return saved + least_rise.value_or(Bytes(0));
}

// Sharded gradients: while a block goes back, what the one behind it has to reduce is on its way.
Bytes while_reducing(const LayerBounds& layers, const ParallelPlan& p, const ChunkMap& map,
                     const StageStates& states, int stage) {
  Bytes most;
  if (p.zero_stage < 3 || layers.joins_blocks()) return most;
  for (int local = 0; local < p.chunks; ++local) {
    const std::size_t c = map.chunk(stage, local);
    if (map.blocks[c] < 2) continue;
    const int last = map.first[c] + map.blocks[c] - 1;
    const Bytes reduced = states.reduced(last);
    if (reduced == Bytes(0)) continue;
    most = std::max(
        most, reduced + states.gathered(last - 1) + layers.run({last - 1, 1, false, false}).rise);
  }
  return most;
}

}  // namespace

Bytes memory_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& p,
                   InFlightCounts& counts, const std::vector<LayerState>& layer_states) {
  const ChunkMap map(p, layers.blocks());
  const StageStates of_stages(site, layers, p, map, layer_states);
  Bytes most;
  for (const int stage : telling_stages(layers, p, map)) {
    const StageStateBytes states = of_stages.of(stage);
    const InFlightMost& in_flight = counts.of(site.workload, p, stage);
    const auto with = [&](const std::vector<int>& held) {
      return saved_and_rise(site, layers, p, map, of_stages, stage, held);
    };
    most =
        std::max({most, states.with_gradients, states.at_step, states.kept + with(in_flight.at_all),
                  states.kept + while_reducing(layers, p, map, of_stages, stage)});
    // Gradients that are always there are among what is kept.
    if (states.with_gradients > states.kept)
      most = std::max(most, states.with_gradients + with(in_flight.with_gradients));
  }
  return most + outside_tensors(site);
}

}  // namespace shardwise
