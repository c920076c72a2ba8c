#include "simulator/costs/cost_model.hpp"

#include <algorithm>

#include "simulator/costs/newton_schulz.hpp"
#include "simulator/graphs/weight_tensors.hpp"
#include "simulator/memory/communicator_memory.hpp"
#include "simulator/per_definition.hpp"

namespace shardwise {
namespace {

// Room for the collectives of a layer or a stage, so that few lists grow.
constexpr std::size_t usual_uses = 12;

// DDP copies each gradient into its bucket, divided by the ranks, and back when the bucket is
// reduced, a kernel each time for every tensor, by C++ (PyTorch torch/csrc/distributed/c10d/
// reducer.cpp, copy_grad_to_bucket in mark_variable_ready_dense and copy_bucket_to_grad in
// finalize_bucket_dense, without gradient_as_bucket_view); under no_sync with the last microbatch
// only. What this is for one of them.
struct BucketCopies {
  Seconds kernels, host;
};

BucketCopies bucket_copies(const Workload& w, const ParallelPlan& plan, const LayerDefinition& d,
                           const KernelModel& kernels, Seconds launch) {
  const Framework& f = w.framework;
  if (!f.gradients.bucket_copies || plan.zero_stage > 1 || plan.data * plan.context == 1) return {};
  const TrainableElements t = trainable_elements(w, d);
  const int copies = 2 * trained_tensors(d.graph);
  const double moved =
      4 * static_cast<double>(t.dense + t.expert) * bytes_per_element(f.gradients.reduce_dtype);
  const double times = 1.0 / plan.microbatches;
  return {times * kernels.memory_bound(ceil_bytes(moved), copies),
          times * copies * kernels.host_slowdown() * launch};
}

bool steps_by_ranges(const Framework& f) {
  return f.gradients.life == GradientLife::persistent && f.host.us_per_gradient > 0;
}

// Of the tensors in a buffer of gradients that stays, those of which a rank steps a part: it has a
// range of the buffer, of each expert's weights among the ranks that have the same experts. Python
// goes through them one by one (Megatron-LM @d98e8a64dd megatron/core/optimizer/
// distrib_optimizer.py, Range, _copy_model_grads_to_main_grads).
int tensors_in_range(const WeightTensors& of_stage, const ParallelPlan& plan,
                     const RankLayout& layout) {
  const auto part = [&](int tensors, GroupKind group) {
    const int ranks = plan.zero_stage > 0 ? layout.shape(group).ranks : 1;
    return (tensors + ranks - 1) / ranks;
  };
  return part(of_stage.dense, GroupKind::gradient) +
         part(of_stage.expert, GroupKind::expert_gradient);
}

// Weights that are kept in MXFP8 are gathered in 16 bits and cast from there on every rank by copy_
// of one after the other, before a pass reads them (Megatron-LM core_v0.15.0 to core_v0.18.0
// megatron/core/distributed/param_and_grad_buffer.py, reuse_grad_buf_for_mxfp8_param_ag; since
// 8e57bb6423, 30 July 2026, without copy_ itself).
Seconds casts_of_stored_weights(const WeightTensors& of_stage, const Workload& w,
                                const HostCalibration& host, const KernelModel& kernels) {
  const bool stored =
      w.framework.narrow.weights == NarrowWeights::stored && w.compute == DType::mxfp8;
  const double weights = stored && !w.step_is_graph ? of_stage.narrow : 0;
  return weights * host.mxfp8_weight_cast * kernels.host_per_kernel(KernelStyle::eager);
}

}  // namespace

TrainableElements trainable_elements(const Workload& w, const LayerParameters& p, bool trainable) {
  TrainableElements t;
  if (trainable) {
    t.dense = p.linear + p.other + p.table;
    t.linear = p.linear;
    t.expert = p.expert;
  }
  if (row(w.method).adapter) {
    t.dense += p.adapter;
    t.expert += p.expert_adapter;
  }
  return t;
}

TrainableElements trainable_elements(const Workload& w, const LayerDefinition& d) {
  const LayerParameters& p = d.graph.parameters;
  TrainableElements t = trainable_elements(w, p, d.trainable);
  if (d.trainable) {
    for (const Operator& op : d.graph.operators)
      for (const Kernel& k : op.backward_weight)
        if (const auto* gemm = std::get_if<GemmWork>(&k);
            gemm != nullptr && gemm->batch == 1 && !gemm->grouped) {
          const std::int64_t elements = std::int64_t{gemm->m} * gemm->n;
          if (t.in_matrices + elements > p.linear + p.other) continue;
          t.in_matrices += elements;
          t.matrix_sides += std::int64_t{gemm->m} + gemm->n;
        }
  }
  if (d.trainable && d.role == LayerRole::embedding) {  // tables, one row per token
    t.in_matrices = p.linear + p.other + p.table;
    t.matrix_sides = t.in_matrices / w.model.hidden + w.model.hidden;
  }
  return t;
}

AttentionChoice attention_choice(const Workload& w, const ParallelPlan& plan) {
  return {std::nullopt, w.framework.layers.kernels, ChipLoad{plan.gpus()}, w.half_operands(),
          w.framework.attention.cudnn};
}

CostModel::CostModel(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster,
                     const Profile& profile, const CollectiveModel* collectives,
                     const LayerTimes* known)
    : w_(workload),
      plan_(plan),
      cluster_(cluster),
      profile_(profile),
      layout_(plan, cluster),
      own_collectives_(collectives != nullptr
                           ? std::nullopt
                           : std::make_optional<CollectiveModel>(cluster, profile.links)),
      collectives_(collectives != nullptr ? *collectives : *own_collectives_),
      known_(known) {}

CollectiveUse CostModel::use(WorkKind work, Collective collective, Bytes size,
                             GroupKind group) const {
  const GroupShape& shape = layout_.shape(group);
  for (const KnownCollective& k : known_collectives_)
    if (k.size == size && k.collective == collective && k.group == group)
      return {work, group, shape, collective, size, k.time};
  const CollectiveTime time = collectives_.time(collective, size, shape);
  if (known_collectives_.empty()) known_collectives_.reserve(usual_uses);
  known_collectives_.push_back({collective, group, size, time});
  return {work, group, shape, collective, size, time};
}

LayerState CostModel::state_of(const LayerDefinition& d) const {
  return layer_state(w_, plan_, d.graph.parameters, d.trainable);
}

std::vector<CostModel::StageGroup> CostModel::groups_of_stage(int stage) const {
  const int ranks = plan_.gpus() / plan_.pipeline;
  std::vector<StageGroup> found;
  int first = 0;
  for (const NodeGroup& g : cluster_.groups) {
    const int begin = std::max(first, stage * ranks);
    const int end = std::min(first + g.gpus(), (stage + 1) * ranks);
    if (begin < end) found.push_back({&g, end - begin});
    first += g.gpus();
  }
  return found;
}

// Share of the multiprocessors that a group's collectives hold; half at the most.
double CostModel::multiprocessors_taken(GroupKind kind, int of) const {
  const GroupShape shape = layout_.shape(kind);
  if (shape.ranks == 1 || of <= 0) return 0;
  // Of a matmul's own overlap: Transformer Engine transformer_engine/pytorch/module/base.py
  // @0004dbd02, initialize_ub (num_sm).
  constexpr int user_buffers = 16;
  const int channels = kind == GroupKind::tensor && plan_.async_tensor
                           ? user_buffers
                           : ring_channels(collectives_, collectives_.resolve(shape));
  return std::min(0.5, static_cast<double>(channels) / of);
}

// Gathers and reductions of the data-parallel group run beside the layers around them. What a
// collective of length t takes from a pass is its share of t, as long as the pass lasts; where
// gradients are reduced once a step, a microbatch pays its part of that.
void CostModel::slow_beside_collectives(const Gpu& gpu, StageCosts& costs) const {
  const double share = multiprocessors_taken(GroupKind::gradient, gpu.sm_count);
  if (share == 0) return;
  const auto lost = [&](Seconds beside, Seconds compute) {
    return share * std::min(beside, (1 / (1 - share)) * compute);
  };
  const bool every = reduces_every_microbatch();
  const double part = every ? 1.0 : 1.0 / plan_.microbatches;
  for (auto& chunk : costs.chunks)
    for (LayerSchedule& l : chunk) {
      const Seconds gather = (1.0 / plan_.microbatches) * l.gather_first.value_or(Seconds(0));
      PassTime& forward = l.time.forward;
      forward.compute += lost(l.gather_forward.value_or(gather), forward.compute);
      const Seconds beside = l.gather_backward.value_or(Seconds(0)) +
                             l.gather_again.value_or(Seconds(0)) +
                             part * l.reduce.value_or(Seconds(0));
      PassTime& backward = l.time.backward_input;
      backward.compute += lost(
          beside, backward.compute + l.time.recompute.compute + l.time.backward_weight.compute);
    }
}

const LayerTimes::One& CostModel::known_time(const LayerDefinition& d, std::size_t group,
                                             LayerTimes& found) const {
  const auto same = [&](const LayerTimes::One& k) {
    return k.definition == &d && k.group == group;
  };
  if (known_ != nullptr) {
    const auto it = std::find_if(known_->layers.begin(), known_->layers.end(), same);
    if (it != known_->layers.end()) return *it;
  }
  const auto it = std::find_if(found.layers.begin(), found.layers.end(), same);
  if (it != found.layers.end()) return *it;
  LayerTimes::One& one = found.layers.emplace_back();
  one.definition = &d;
  one.group = group;
  one.uses.reserve(usual_uses);
  one.time = layer_time(d, kernels_of(group, found), &one.uses);
  return one;
}

const KernelModel& CostModel::kernels_of(std::size_t group, LayerTimes& found) const {
  for (const LayerTimes* times : {known_, static_cast<const LayerTimes*>(&found)})
    if (times != nullptr)
      for (const auto& [of, kernels] : times->kernels)
        if (of == group) return kernels;
  const KernelModel kernels(cluster_.groups[group].gpu, profile_, attention_choice(w_, plan_));
  return found.kernels.emplace_back(group, kernels).second;
}

LayerTimes CostModel::times_of(const std::deque<LayerDefinition>& definitions) const {
  LayerTimes found;
  for (std::size_t group = 0; group < cluster_.groups.size(); ++group)
    for (const LayerDefinition& d : definitions) known_time(d, group, found);
  return found;
}

CostModel::CostedChunks CostModel::costed_chunks(const std::vector<ModelChunk>& chunks,
                                                 StagesCosted which,
                                                 std::vector<std::size_t>& alike) {
  CostedChunks found;
  found.reserve(chunks.size());
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::vector<ChunkLayer>& layers = chunks[c].layers;
    if (which == StagesCosted::all) {
      found.push_back({&layers, c, 1});
      continue;
    }
    auto same = std::find_if(found.begin(), found.end(), [&](const CostedChunk& other) {
      return equal_layers(*other.layers, layers);
    });
    if (same == found.end()) same = found.insert(same, {&layers, c, 0});
    ++same->times;
    alike.push_back(same->place);
  }
  return found;
}

// What a plan adds to a layer's passes, alike as they may be to those of other plans.
void CostModel::add_copies(const LayerDefinition& d, const UnitCopies& unit,
                           const KernelModel& kernels, LayerTime& time) const {
  PassTime& weight = time.backward_weight;
  const BucketCopies copies = bucket_copies(w_, plan_, d, kernels, profile_.host.per_looped_launch);
  time.forward.compute += unit.forward;
  weight.compute += unit.backward + copies.kernels;
  (w_.blocking_launches ? weight.compute : weight.host) += gradient_hooks(d, kernels) + copies.host;
}

StageCosts CostModel::stage_costs(const std::vector<ModelChunk>& all, int stage, LayerTimes& found,
                                  StagesCosted which) const {
  std::vector<std::size_t> alike;
  const CostedChunks chunks = costed_chunks(all, which, alike);
  // Ranks of one stage work in step: the slowest kind of GPU among them sets the pace.
  StageCosts slowest;
  const Gpu* paced = nullptr;
  const KernelModel* paced_kernels = nullptr;
  Seconds most(-1.0);
  const std::vector<StageGroup> groups = groups_of_stage(stage);
  std::vector<std::pair<int, Seconds>> kernel_times;  // of one microbatch, by group
  for (const auto& [group, ranks] : groups) {
    Seconds of_kernels;
    const auto place = static_cast<std::size_t>(group - cluster_.groups.data());
    const KernelModel& kernels = kernels_of(place, found);
    StageCosts costs;
    LayerState state;
    int tensors = 0;
    WeightTensors weights;
    Seconds total;
    PerDefinition<UnitCopies> units;
    std::vector<std::pair<const LayerTimes::One*, int>> used;  // and by how many layers
    costs.chunks.resize(all.size());
    costs.collectives.reserve(usual_uses);
    for (const CostedChunk& chunk : chunks) {
      std::vector<LayerSchedule>& list = costs.chunks[chunk.place];
      list.reserve(chunk.layers->size());
      for (const ChunkLayer& layer : *chunk.layers) {
        const LayerTimes::One& one = known_time(*layer.definition, place, found);
        auto it =
            std::find_if(used.begin(), used.end(), [&](const auto& u) { return u.first == &one; });
        if (it == used.end()) it = used.insert(used.end(), {&one, 0});
        it->second += chunk.times;
        const UnitCopies& unit = units.of(
            *layer.definition, [&](const LayerDefinition& d) { return unit_copies(d, kernels); });
        list.emplace_back().time = one.time;
        add_copies(*layer.definition, unit, kernels, list.back().time);
        const LayerTime& t = one.time;
        total += chunk.times * (t.forward.device() + t.backward_input.device());
        of_kernels += chunk.times * (t.forward.compute + t.recompute.compute +
                                     t.backward_input.compute + t.backward_weight.compute);
      }
    }
    for (const auto& [one, layers] : used) {
      tensors += layers * trained_tensors(one->definition->graph);
      weights = weights + layers * weight_tensors(one->definition->graph);
      LayerState all_of_them = state_of(*one->definition);
      state += all_of_them *= layers;
      for (CollectiveUse each : one->uses) {
        each.per_step *= static_cast<double>(layers) * plan_.microbatches;
        add_use(costs.collectives, each);
      }
    }
    kernel_times.emplace_back(ranks, of_kernels);
    if (steps_by_ranges(w_.framework)) tensors = tensors_in_range(weights, plan_, layout_);
    schedule_optimizer(state, tensors, kernels, *group, costs);
    costs.host_per_step += casts_of_stored_weights(weights, w_, profile_.host, kernels);
    for (const auto& [one, layers] : used)
      costs.optimizer += layers * orthogonalization_time(w_, plan_, *one->definition, kernels,
                                                         profile_.host.per_looped_launch);
    if (total > most) {
      most = total;
      slowest = std::move(costs);
      paced = &group->gpu;
      paced_kernels = &kernels;
    }
  }
  if (groups.size() > 1) {
    Seconds longest_time;
    for (const auto& [ranks, time] : kernel_times) longest_time = longest(longest_time, time);
    for (const auto& [ranks, time] : kernel_times)
      slowest.paces.push_back({ranks, longest_time > Seconds(0) ? time / longest_time : 1.0, {}});
  }
  schedule_gathers(chunks, slowest);
  if (paced_kernels != nullptr) schedule_reduces(chunks, *paced_kernels, slowest);
  if (paced != nullptr) slow_beside_collectives(*paced, slowest);
  if (plan_.offload.parameters || plan_.offload.optimizer) schedule_offload(chunks, slowest);
  if (plan_.offload.activations) schedule_activation_copies(chunks, slowest);
  slowest.alike = std::move(alike);
  return slowest;
}

// The loaders of a node feed all its data ranks at once.
void CostModel::schedule_loading(StageCosts& first_stage) const {
  if (!w_.load_per_sequence) return;
  const int sharers = std::max(1, stage_gpus_on_a_node() / (plan_.tensor * plan_.context));
  first_stage.load =
      static_cast<double>(plan_.microbatch) * static_cast<double>(sharers) * *w_.load_per_sequence;
}

// Each microbatch of the step goes to the data rank that would be done with it first, which makes
// the time of the last one as short as it can be.
void CostModel::balance_by_speed(StepCosts& costs) const {
  StageCosts& stage = costs.stages.front();
  if (stage.paces.empty()) return;
  const int each = plan_.tensor * plan_.context;  // ranks of one data rank
  std::vector<double> pace;                       // by rank
  for (const RankPace& p : stage.paces)
    pace.insert(pace.end(), static_cast<std::size_t>(p.ranks), p.time);
  const auto ranks_of = [&](int d) { return pace.begin() + d * each; };
  std::vector<double> slowest;
  for (int d = 0; d < plan_.data; ++d)
    slowest.push_back(*std::max_element(ranks_of(d), ranks_of(d) + each));
  std::vector<int> rounds(slowest.size(), 0);
  for (int n = 0; n < plan_.data * plan_.microbatches; ++n) {
    std::size_t first = 0;
    for (std::size_t d = 1; d < slowest.size(); ++d)
      if ((rounds[d] + 1) * slowest[d] < (rounds[first] + 1) * slowest[first]) first = d;
    ++rounds[first];
  }
  costs.rounds = *std::max_element(rounds.begin(), rounds.end());
  stage.paces.clear();
  for (std::size_t rank = 0; rank < pace.size(); ++rank)
    stage.paces.push_back({1, pace[rank], rounds[rank / static_cast<std::size_t>(each)]});
}

StepCosts CostModel::costs(const ModelPartition& partition, StagesCosted which) const {
  StepCosts costs;
  const auto stages = static_cast<std::size_t>(plan_.pipeline);
  costs.stages.resize(stages);
  costs.alike.resize(stages);
  LayerTimes found;
  std::vector<std::size_t> distinct;
  for (std::size_t s = 0; s < stages; ++s) {
    // On one kind of GPU, stages of equal layers cost the same.
    const auto same = std::find_if(distinct.begin(), distinct.end(), [&](std::size_t other) {
      return cluster_.groups.size() == 1 &&
             equal_layers(partition.stages[s], partition.stages[other]);
    });
    if (same != distinct.end()) {
      costs.alike[s] = *same;
      if (which == StagesCosted::all) costs.stages[s] = costs.stages[*same];
      continue;
    }
    distinct.push_back(s);
    costs.alike[s] = s;
    costs.stages[s] = stage_costs(partition.stages[s], static_cast<int>(s), found, which);
  }
  const std::int64_t tokens = plan_.microbatch * w_.tokens_per_sample() / plan_.context /
                              (plan_.sequence_parallel ? plan_.tensor : 1);
  const std::int64_t element = w_.activation_dtype() == DType::fp32 ? 4 : 2;
  const Bytes whole(tokens * w_.model.stream_width() * element);
  // What all tensor ranks of a stage hold need cross the network once only.
  const bool in_parts =
      w_.framework.parallel.partitions_pipeline_messages && !plan_.sequence_parallel;
  const Bytes message(in_parts ? (whole.value + plan_.tensor - 1) / plan_.tensor : whole.value);
  const Seconds gather =
      in_parts && plan_.tensor > 1
          ? use(WorkKind::tensor_comm, Collective::all_gather, whole, GroupKind::tensor).each.time
          : Seconds(0);
  for (int s = 0; s < plan_.pipeline; ++s) {
    const GroupShape link = layout_.pipeline_link(s);
    const CollectiveTime each = collectives_.time(Collective::send_recv, message, link);
    costs.send.push_back(link.ranks > 1 ? each.time + gather : each.time);
    // One message forward and one back for every microbatch and chunk; the last stage sends to the
    // first only where it holds a chunk that another follows.
    const int sent = s + 1 < plan_.pipeline ? plan_.chunks : plan_.chunks - 1;
    if (link.ranks == 1 || sent == 0) continue;
    costs.stages[static_cast<std::size_t>(s)].collectives.push_back(
        {WorkKind::pipeline_send, GroupKind::pipeline, link, Collective::send_recv, message, each,
         false, 2.0 * sent * plan_.microbatches});
  }
  schedule_tied(partition, costs);
  schedule_second_copies(partition, costs);
  costs.reduces_every_microbatch = reduces_every_microbatch();
  costs.reduces_in_line = reduces_in_line();
  costs.overlaps_pipeline_comm = plan_.chunks > 1 ? w_.framework.parallel.overlap_interleaved_comm
                                                  : w_.framework.parallel.overlap_pipeline_comm;
  costs.waits_for_all_stages = w_.framework.update.clips_gradients;
  costs.stages_on_a_host = stages_on_a_host();
  schedule_loading(costs.stages.front());
  if (plan_.balance_by_speed) balance_by_speed(costs);
  costs.gather_window = w_.framework.sharding.parameters.gathered_layers_forward;
  return costs;
}

}  // namespace shardwise
