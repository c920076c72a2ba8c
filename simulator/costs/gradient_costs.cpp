// The traffic of data parallelism in the cost model: gradients reduced, compressed or not, and
// weights gathered.
#include <algorithm>
#include <utility>

#include "simulator/costs/cost_model.hpp"
#include "simulator/gathered_layers.hpp"
#include "simulator/per_definition.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/tied_tables.hpp"

namespace shardwise {

Seconds CostModel::reduce(Collective collective, double bytes, GroupKind group, int layers,
                          StageCosts& costs) const {
  CollectiveUse call = use(WorkKind::reduce_gradients, collective, ceil_bytes(bytes), group);
  call.per_step =
      static_cast<double>(layers) * (reduces_every_microbatch() ? plan_.microbatches : 1);
  if (call.shape.ranks > 1) add_use(costs.collectives, call);
  return call.each.time;
}

double CostModel::reduced_element() const {
  return w_.activation_dtype() == DType::fp32
             ? 4.0
             : bytes_per_element(w_.framework.gradients.reduce_dtype);
}

// Uncompressed gradients in the format that goes over the wire: `sent` says what each takes. What
// replicas of a shard group add to is the shard, of experts too (Megatron-LM @d98e8a64dd
// megatron/core/parallel_state.py, the intra and inter partial expert data-parallel groups; PyTorch
// torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce over a mesh of two
// dimensions), unless experts are spread over replicas.
template <typename Sent>
Seconds CostModel::reductions(const TrainableElements& elements, Sent sent) const {
  const double each = reduced_element();
  const Framework& f = w_.framework;
  const bool scatters = shards_weights(f, plan_) ||
                        (plan_.zero_stage == 2 && !f.gradients.stage_2_all_reduces) ||
                        (plan_.zero_stage == 1 && !f.gradients.stage_1_all_reduces);
  const Collective usual = scatters ? Collective::reduce_scatter : Collective::all_reduce;
  const double dense = each * static_cast<double>(elements.dense);
  const bool hybrid = plan_.shard_group && *plan_.shard_group < plan_.data;
  Seconds total;
  if (elements.dense > 0 && scatters && hybrid) {
    total += sent(Collective::reduce_scatter, dense, GroupKind::shard);
    total += sent(Collective::all_reduce, dense / plan_.shard_ranks(), GroupKind::replicate);
  } else if (elements.dense > 0) {
    total += sent(usual, dense, GroupKind::gradient);
  }
  if (elements.expert == 0) return total;
  const double expert = each * static_cast<double>(elements.expert);
  const int copies = layout_.shape(GroupKind::expert_shard).ranks;
  const bool in_two =
      scatters && hybrid &&
      copies * (plan_.data / *plan_.shard_group) == layout_.shape(GroupKind::expert_gradient).ranks;
  if (!in_two) return total + sent(usual, expert, GroupKind::expert_gradient);
  if (copies > 1) total += sent(Collective::reduce_scatter, expert, GroupKind::expert_shard);
  return total + sent(Collective::all_reduce, expert / copies, GroupKind::replicate);
}

Seconds CostModel::reduce_time(const TrainableElements& elements, int layers,
                               StageCosts& costs) const {
  const auto compression = gradient_compression(plan_.compression);
  TrainableElements plain = elements;
  Seconds total;
  if (elements.dense > 0 && compression) {
    total += compressed_reduce_time(*compression, elements, layers, costs);
    plain.dense = 0;
  }
  return total + reductions(plain, [&](Collective collective, double bytes, GroupKind group) {
           return reduce(collective, bytes, group, layers, costs);
         });
}

CostModel::WholeWeights CostModel::whole_weights(const LayerState& sharded,
                                                 const LayerParameters& p) {
  return {static_cast<double>(sharded.gathered - sharded.gathered_experts),
          static_cast<double>(sharded.gathered_experts), std::max(1, p.fetches)};
}

CostModel::WholeWeights CostModel::whole_weights(const TrainableElements& stepped) const {
  const double each = stored_stepped(w_).weight, matrix = gathered_matrix_weight(w_);
  return {each * static_cast<double>(stepped.dense - stepped.linear) +
              matrix * static_cast<double>(stepped.linear),
          matrix * static_cast<double>(stepped.expert)};
}

// Where all ranks of a shard group have the same experts, those travel with the dense weights;
// experts that are spread, over the ranks that have the same ones (Megatron-LM @001199898
// megatron/core/distributed/distributed_data_parallel.py, intra_expt_dp_group; DeepSpeed @02aa38c3a
// runtime/zero/stage_1_and_2.py, _configure_moe_settings; torchtitan, dp_mod_ep_mesh).
template <typename Sent>
Seconds CostModel::gathers(const WholeWeights& whole, Sent sent) const {
  const bool joined = plan_.expert * plan_.expert_tensor == plan_.tensor;
  const double dense = whole.dense + (joined ? whole.experts : 0.0);
  Seconds total;
  if (dense > 0) total += sent(dense, GroupKind::shard);
  if (!joined && whole.experts > 0) total += sent(whole.experts, GroupKind::expert_shard);
  return total;
}

CostModel::LeastTraffic CostModel::least_traffic(const TrainableElements& all) const {
  const auto least = [&](Collective collective, double bytes, GroupKind group) {
    return collectives_.transfer_bound(collective, bytes / plan_.pipeline, layout_.shape(group));
  };
  LeastTraffic t;
  if (layout_.shape(GroupKind::gradient).ranks > 1) t.reduced = reductions(all, least);
  if (plan_.zero_stage > 0 && plan_.shard_ranks() > 1 && !w_.framework.sharding.overlap_gather)
    t.gathered = gathers(whole_weights(all), [&](double bytes, GroupKind group) {
      return least(Collective::all_gather, bytes, group);
    });
  return t;
}

// The kernels that compress run between the collectives, on their stream.
Seconds CostModel::compressed_reduce_time(const GradientCompression& row,
                                          const TrainableElements& elements, int layers,
                                          StageCosts& costs) const {
  const double n = static_cast<double>(elements.dense);
  const double width = bytes_per_element(w_.framework.gradients.dtype);
  Seconds around;  // on the slowest of the cards
  for (const NodeGroup& g : cluster_.groups) {
    const KernelModel kernels(g.gpu, profile_, attention_choice(w_, plan_));
    around = longest(
        around, kernels.memory_bound(ceil_bytes((row.passes * width + row.passes_fixed) * n), 8));
  }
  const auto sent = [&](Collective collective, double bytes) {
    return reduce(collective, bytes, GroupKind::gradient, layers, costs);
  };
  switch (row.kind) {
    case CompressionKind::cast:
      return around + sent(Collective::all_reduce, row.wire_bytes * n);
    case CompressionKind::signs:
      return around + sent(Collective::all_to_all, row.wire_bytes * n) +
             sent(Collective::all_gather, row.wire_bytes * n);
    case CompressionKind::low_rank:
      break;
  }
  const double rest = static_cast<double>(elements.dense - elements.in_matrices);
  const double sides = row.rank * static_cast<double>(elements.matrix_sides);  // P and Q together
  return around + sent(Collective::all_reduce, width * rest) +
         sent(Collective::all_reduce, width * sides / 2) +
         sent(Collective::all_reduce, width * sides / 2);
}

bool CostModel::reduces_every_microbatch() const {
  return shardwise::reduces_every_microbatch(w_.framework, plan_);
}

bool CostModel::reduces_at_end() const {
  return !shards_weights(w_.framework, plan_) && !w_.framework.gradients.overlap_reduce &&
         !reduces_every_microbatch();
}

bool CostModel::reduces_in_line() const {
  const Framework& f = w_.framework;
  const bool at_2 = f.gradients.overlap_reduce_at_stage_2.value_or(f.gradients.overlap_reduce);
  return reduces_every_microbatch() &&
         !(shards_weights(f, plan_) ? f.gradients.overlap_reduce_at_stage_3 : at_2);
}

Seconds CostModel::gather_time(const WholeWeights& whole, double per_step,
                               StageCosts& costs) const {
  return gathers(whole, [&](double bytes, GroupKind group) {
    const double n = whole.messages;
    CollectiveUse call =
        use(WorkKind::gather_parameters, Collective::all_gather, ceil_bytes(bytes / n), group);
    call.per_step = n * per_step;
    if (call.shape.ranks > 1) add_use(costs.collectives, call);
    return n * call.each.time;
  });
}

// FSDP1's hooks leave a unit alone that backward has gathered, but a reentrant checkpoint runs its
// forward pass before backward comes to its output (PyTorch torch/distributed/fsdp/
// _runtime_utils.py, _pre_forward; "a redundant AllGather": huggingface/transformers 4.48.1
// training_args.py:1894). Neither gather is prefetched: its first forward pass makes no graph, so
// that nothing marks the unit as one that backward needs (_register_pre_backward_hooks,
// _get_handle_to_prefetch), and both follow the reduction of the unit behind on one stream.
//
// Between a module of L elements of a layer run again and its backward lie twice those behind it,
// so that of ZeRO-3's the first L - reuse / 2 are fetched twice (DeepSpeed @edaa722126
// runtime/zero/partitioned_param_coordinator.py:634-664, __params_to_release).
double CostModel::gathered_again(const LayerDefinition& d) const {
  const Framework& f = w_.framework;
  bool again = false;
  for (std::size_t i = 0; i < d.redone.size(); ++i)
    again = again || (d.redone[i] && d.script.runs_again[i]);
  if (!again) return 0;
  if (f.sharding.checkpoints_gather_again) return 1;
  const LayerParameters& p = d.graph.parameters;
  const auto elements = static_cast<double>(p.base() + p.adapter + p.expert_adapter);
  if (f.sharding.fetch_reuse_elements == 0 || elements <= 0) return 0;
  return std::max(0.0, 1 - static_cast<double>(f.sharding.fetch_reuse_elements) / (2 * elements));
}

bool CostModel::reshards(LayerRole role) const {
  if (role == LayerRole::embedding) return embedding_gathers(w_, plan_).again;
  return !at_an_end(role) && reshards_weights(w_.framework, plan_);
}

Seconds CostModel::stream_time(const LayerParameters& p, bool trainable, LayerRole role,
                               double passes) const {
  StageCosts unused;
  Seconds sum;
  const WholeWeights whole = whole_weights(layer_state(w_, plan_, p, trainable), p);
  sum += (reshards(role) ? 2 : 1) * passes * gather_time(whole, passes, unused);
  if (layout_.shape(GroupKind::gradient).ranks == 1) return sum;
  const TrainableElements t = trainable_elements(w_, p, trainable);
  return sum + (reduces_every_microbatch() ? passes : 1) * reduce_time(t, 1, unused);
}

// DeepSpeed. Gradients that a bucket has room for are copied into it: at stages 1 and 2 by the
// stream that computes (stage_1_and_2.py, reduce_independent_p_g_buckets_and_remove_grads), at
// stage 3 by that of the reductions, which then joins them rank by rank (stage3.py,
// __add_grad_to_ipg_bucket; coalesced_collectives.py, reduce_scatter_coalesced); larger ones are
// reduced as they are. All are divided by the ranks in a kernel of its own before they are reduced.
// A rank's part is then copied out, or added to what microbatches before have left of it: at stage
// 2 after it is copied out (copy_grads_in_partition, independent_gradient_partition_epilogue), at
// stage 3 at once (partition_grads).
CostModel::UnitCopies CostModel::partition_copies(const LayerDefinition& d,
                                                  const KernelModel& kernels) const {
  const int stage = plan_.zero_stage;
  if (stage < 1 || plan_.shard_ranks() == 1) return {};
  const TrainableElements t = trainable_elements(w_, d);
  const double all = static_cast<double>(t.dense + t.expert);
  if (all <= 0) return {};
  const double room = static_cast<double>(w_.framework.gradient_bucket_at(stage).value) /
                      bytes_per_element(w_.framework.gradients.reduce_dtype);
  double fits = 0;
  for (const Operator& op : d.graph.operators) {
    const auto made = static_cast<double>(op.weight_gradient_elements);
    if (made <= room * op.weight_gradients) fits += made;
  }
  fits = std::min(fits, all);
  const double element = w_.activation_dtype() == DType::fp32 ? 4.0 : 2.0;
  const auto moved = [&](double elements) {
    return elements > 0 ? kernels.memory_bound(ceil_bytes(element * elements)) : Seconds(0);
  };
  const bool every = reduces_every_microbatch();
  const double before = every ? 1.0 - 1.0 / plan_.microbatches : 0.0;  // share that is added to
  const double part = all / plan_.shard_ranks();
  UnitCopies c;
  if (stage >= 3) {
    c.reduction = moved(4 * fits + 2 * all + (2 + before) * part);
    return c;
  }
  c.backward = (every ? 1.0 : 1.0 / plan_.microbatches) * moved(2 * fits);
  c.reduction = moved(2 * all + (2 + 3 * before) * part);
  return c;
}

// Bytes of each operator as calibrate/count_sharding_copies.py counts them. A unit that is not
// resharded after forward is copied out once; what is not reduced with every microbatch goes into
// the buffer with the last, while autograd joins gradients of views in every backward pass.
CostModel::UnitCopies CostModel::unit_copies(const LayerDefinition& d,
                                             const KernelModel& kernels) const {
  if (w_.framework.gradients.copies_into_buckets) return partition_copies(d, kernels);
  const ShardedParameters& s = w_.framework.sharding.parameters;
  const bool copies = s.copy_out || s.joins_gradients || s.copies_gradients;
  if (plan_.zero_stage < 3 || plan_.shard_ranks() == 1 || !copies) return {};
  const auto moved = [&](double bytes) {
    return bytes > 0 ? kernels.memory_bound(ceil_bytes(bytes)) : Seconds(0);
  };
  const bool fp32 = w_.activation_dtype() == DType::fp32;
  const double made = fp32 ? 4.0 : 2.0;
  const double sent = fp32 ? 4.0 : bytes_per_element(w_.framework.gradients.reduce_dtype);
  const TrainableElements t = trainable_elements(w_, d);
  const double gradients = static_cast<double>(t.dense + t.expert);
  UnitCopies c;
  if (s.joins_gradients) {
    c.backward = moved(2 * made * gradients);
    c.reduction = moved(((sent > made ? made + sent : 0) + 2 * sent) * gradients);
    return c;
  }
  const double times = reduces_every_microbatch() ? 1.0 : 1.0 / plan_.microbatches;
  if (s.copies_gradients) {
    c.backward = times * moved((made + sent) * gradients);
    return c;
  }
  const Seconds out = moved(2 * static_cast<double>(state_of(d).gathered));
  c.forward = w_.forward_passes() * out;
  c.backward = (reshards(d.role) ? out : Seconds(0)) + times * moved((made + sent) * gradients);
  return c;
}

CostModel::BlockGathers CostModel::block_gathers(const LayerParameters& p, bool trainable) const {
  if (plan_.shard_ranks() == 1 || !shards_weights(w_.framework, plan_)) return {};
  StageCosts unused;
  const Seconds time =
      gather_time(whole_weights(layer_state(w_, plan_, p, trainable), p), 1, unused);
  const bool again = reshards(LayerRole::block) && !keeps_layers_gathered(w_, plan_);
  return {time, again ? time : Seconds(0)};
}

void CostModel::schedule_gathers(const CostedChunks& chunks, StageCosts& costs) const {
  if (plan_.shard_ranks() == 1 || plan_.zero_stage == 0) return;
  Seconds at_end;
  const bool by_layer = shards_weights(w_.framework, plan_);
  PerDefinition<WholeWeights> weights;
  for (const CostedChunk& chunk : chunks) {
    const std::vector<bool> kept = layers_kept_gathered(w_, plan_, *chunk.layers);
    for (std::size_t i = 0; i < chunk.layers->size(); ++i) {
      const LayerDefinition& d = *(*chunk.layers)[i].definition;
      LayerSchedule& l = costs.chunks[chunk.place][i];
      const WholeWeights& whole = weights.of(d, [&](const LayerDefinition& of) {
        return by_layer ? whole_weights(state_of(of), of.graph.parameters)
                        : whole_weights(trainable_elements(w_, of));
      });
      if (whole.dense + whole.experts == 0) continue;
      if (by_layer) {
        const bool goes = reshards(d.role), again = goes && !kept[i];
        const int forward = goes || w_.copies_reference() ? w_.forward_passes() : 1;
        const double more = again ? gathered_again(d) : 0;
        const double passes = chunk.times * (forward + again + more) * plan_.microbatches;
        const Seconds once = gather_time(whole, passes, costs);
        l.gather_forward = forward * once;
        const bool apart = w_.framework.sharding.checkpoints_gather_again && more > 0;
        if (again) l.gather_backward = (apart ? 1 : 1 + more) * once;
        if (apart) l.gather_again = more * once;
        continue;
      }
      const Seconds time = gather_time(whole, chunk.times, costs);
      if (w_.framework.sharding.overlap_gather)
        l.gather_first = time;
      else
        at_end += chunk.times * time;
    }
  }
  if (at_end > Seconds(0)) costs.gather_at_end = at_end;
}

// A table that is looked up on one stage and multiplied with on another: both keep all of it, and
// add up their gradients, in the format in which those are reduced, once per step. A model that is
// held twice (DualPipe) has both ends on the same stages.
void CostModel::schedule_tied(const ModelPartition& partition, StepCosts& costs) const {
  if (!shares_table(w_) || plan_.layer_split) return;
  const auto stage_of = [&](LayerRole role) {
    std::optional<int> found;
    for (std::size_t s = 0; s < partition.stages.size(); ++s)
      for (const ModelChunk& chunk : partition.stages[s])
        for (const ChunkLayer& layer : chunk.layers)
          if (!found && layer.definition->role == role) found = static_cast<int>(s);
    return found;
  };
  const std::optional<int> first = stage_of(LayerRole::embedding), last = stage_of(LayerRole::head);
  if (!first || !last || *first == *last) return;
  const auto& chunks = partition.stages[static_cast<std::size_t>(*first)];
  const std::int64_t table =
      chunks.front().layers.front().definition->graph.operators.front().weight_gradient_elements;
  if (table == 0) return;
  tie(*first, *last, static_cast<double>(table), costs);
}

// Two stages add up the gradients of so many elements.
void CostModel::tie(int first, int last, double elements, StepCosts& costs) const {
  const GroupShape pair = layout_.stage_pair(first, last);
  const Bytes size = ceil_bytes(reduced_element() * elements);
  const CollectiveTime each = collectives_.time(Collective::all_reduce, size, pair);
  costs.tied.push_back({each.time, first, last});
  for (const int stage : {first, last})
    costs.stages[static_cast<std::size_t>(stage)].collectives.push_back(
        {WorkKind::reduce_gradients, GroupKind::pipeline, pair, Collective::all_reduce, size, each,
         false, 1});
}

// Where the stages together hold the model twice, the one from the other end has the same chunks,
// through which the other half of the microbatches went (deepseek-ai/DualPipe @7cb1e5e632
// examples/example_dualpipe.py: each adds the other's gradients to its own). A rank that steps a
// part of them needs that part.
void CostModel::schedule_second_copies(const ModelPartition& partition, StepCosts& costs) const {
  if (find_pipeline_schedule(plan_.schedule_row())->weight_copies == 1) return;
  const bool parts = plan_.zero_stage > 0;
  const double dense = parts ? plan_.shard_ranks() : 1;
  const double expert = parts ? layout_.shape(GroupKind::expert_shard).ranks : 1;
  for (int s = 0; s < plan_.pipeline / 2; ++s) {
    double elements = 0;
    for (const ModelChunk& chunk : partition.stages[static_cast<std::size_t>(s)])
      for (const ChunkLayer& layer : chunk.layers) {
        const TrainableElements t = trainable_elements(w_, *layer.definition);
        elements += static_cast<double>(t.dense) / dense + static_cast<double>(t.expert) / expert;
      }
    if (elements > 0) tie(s, plan_.pipeline - 1 - s, elements, costs);
  }
}

// Gradients are reduced bucket by bucket as backward fills them, or all at the end.
void CostModel::schedule_reduces(const CostedChunks& chunks, const KernelModel& kernels,
                                 StageCosts& costs) const {
  if (layout_.shape(GroupKind::gradient).ranks == 1) return;
  const bool per_layer = shards_weights(w_.framework, plan_);
  const Bytes full_bucket = w_.framework.gradient_bucket_at(plan_.zero_stage);
  struct OfLayer {
    TrainableElements trained;
    Seconds before;
  };
  PerDefinition<OfLayer> of_layers;
  TrainableElements all;
  Seconds copies;  // of a bucket, or of all
  for (const CostedChunk& chunk : chunks) {
    TrainableElements bucket;
    for (std::size_t i = chunk.layers->size(); i-- > 0;) {
      const auto& [t, before] =
          of_layers.of(*(*chunk.layers)[i].definition, [&](const LayerDefinition& d) {
            return OfLayer{trainable_elements(w_, d), unit_copies(d, kernels).reduction};
          });
      bucket += t;
      copies += (reduces_at_end() ? chunk.times : 1) * before;
      for (int n = 0; n < chunk.times; ++n) all += t;
      const double bytes = static_cast<double>(bucket.dense + bucket.expert) *
                           bytes_per_element(w_.framework.gradients.reduce_dtype);
      const bool full = bytes >= static_cast<double>(full_bucket.value);
      if (bucket.dense + bucket.expert == 0 || (!per_layer && !full && i > 0)) continue;
      if (!reduces_at_end())
        costs.chunks[chunk.place][i].reduce =
            std::exchange(copies, Seconds(0)) + reduce_time(bucket, chunk.times, costs);
      bucket = {};
    }
  }
  if (reduces_at_end() && all.dense + all.expert > 0)
    costs.reduce_at_end = copies + reduce_time(all, 1, costs);
}

}  // namespace shardwise
