#include "simulator/memory/communicator_memory.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/pipeline_schedule.hpp"
#include "simulator/tied_tables.hpp"

namespace shardwise {
namespace {

constexpr int steps = 8;  // NCCL_STEPS, src/include/device.h:26

// Does the tuner pick in-switch reduction for any of these, between 1 KiB and 1 GiB?
bool reduces_in_switch(const CollectiveModel& model, const GroupShape& shape, CollectiveSet used) {
  for (std::size_t k = 0; k < collective_count; ++k) {
    const auto kind = static_cast<Collective>(k);
    for (int power = 10; used.has(kind) && power <= 30; power += 2) {
      const Bytes size(std::int64_t{1} << power);
      const Algorithm chosen = model.time(kind, size, shape).algorithm;
      if (chosen == Algorithm::nvls || chosen == Algorithm::nvls_tree) return true;
    }
  }
  return false;
}

bool uses_ring(CollectiveSet used) {
  return used.has(Collective::all_reduce) || used.has(Collective::all_gather) ||
         used.has(Collective::reduce_scatter) || used.has(Collective::broadcast);
}

Bytes point_to_point(const CollectiveModel& model, const GroupShape& shape, const GroupLinks& l,
                     CollectiveSet used) {
  const CommunicatorBuffers& b = model.calibration().buffers;
  const bool all = used.has(Collective::all_to_all);
  if (!all && !used.has(Collective::send_recv)) return Bytes(0);
  const bool nvlink = l.kind <= PathKind::nvl;
  int per_peer = nvlink ? b.point_to_point_channels_nvlink : b.point_to_point_channels_pcie;
  if (l.nodes > 1) per_peer = std::min(per_peer, 2);
  const int peers = all ? l.local - 1 : shape.nodes == 1 ? 1 : 0;  // inside the node
  Bytes sum = static_cast<std::int64_t>(peers) * per_peer * b.peer_per_channel;
  if (l.nodes > 1) sum += std::int64_t{b.channel_limit} * 16 * b.shared_pool_chunk;
  return sum;
}

// Whether first and last stage add up the gradients of tied tables (CostModel::schedule_tied).
bool sums_tied_tables(const Workload& w, const ParallelPlan& p) {
  if (!shares_table(w)) return false;
  if (p.pipeline == 1 || p.layer_split) return false;
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const PipelineShape shape{p.pipeline, p.chunks, p.microbatches};
  const int last = schedule.model_chunks(shape) - 1;
  for (int chunk = 0; chunk < p.chunks; ++chunk)  // in a V both ends are on the first stage
    if (schedule.model_chunk(shape, 0, chunk) == last) return false;
  return true;
}

// Megatron makes the ranks that share an expert a group of their own, be they those of the tensor
// group (Megatron-LM @d98e8a64dd megatron/core/parallel_state.py, EXPERT_TENSOR_PARALLEL_GROUP;
// transformer/moe/token_dispatcher.py: self.tp_group = pg_collection.expt_tp). A dispatcher in one
// kernel has no such gathers.
bool has_expert_tensor_group(const Workload& w, const ParallelPlan& p) {
  if (!w.model.moe || p.expert_tensor == 1 || w.framework.experts.dispatches_once) return false;
  return w.framework.layers.kernels == KernelStyle::fused || p.expert_tensor != p.tensor;
}

}  // namespace

int ring_channels(const CollectiveModel& model, const GroupLinks& l) {
  const CommunicatorBuffers& b = model.calibration().buffers;
  if (l.kind > PathKind::nvl) return b.pcie_channels;
  double found = 1;
  if (l.local > 1) found = std::floor(l.ring.value / l.generation->channel.value + 0.5);
  // Between nodes a channel needs a NIC of its own (src/graph/search.cc, inter-node search): one
  // GPU alone takes as many as its slot feeds.
  if (l.nodes > 1) {
    if (l.local == 1) found = std::floor(model.topology().gpu_to_nic().value / l.nic.value + 0.5);
    found = std::min<double>(found, l.nics);
  }
  return std::clamp(2 * static_cast<int>(std::max(1.0, found)), 2, b.channel_limit);
}

CommunicatorMemory nccl_memory(const CollectiveModel& model, const GroupShape& shape,
                               CollectiveSet used) {
  if (shape.ranks <= 1 || used == CollectiveSet{}) return {};
  const CommunicatorBuffers& b = model.calibration().buffers;
  const GroupLinks l = model.resolve(shape);
  const std::int64_t channels = ring_channels(model, l);
  CommunicatorMemory memory{b.fixed, Bytes(0)};
  Bytes connections(0);
  if (uses_ring(used)) connections += channels * b.ring_per_channel;
  if (used.has(Collective::all_reduce))  // a tree beside the ring, whichever runs
    connections += channels * (shape.ranks == 2 ? b.tree_pair_per_channel : b.tree_per_channel);
  connections += point_to_point(model, shape, l, used);
  const bool through_host =
      l.local > 1 &&
      model.topology().local(l.local, shape.local_stride).transport == Transport::shm;
  (through_host ? memory.host : memory.device) += connections;
  if (reduces_in_switch(model, shape, used))
    memory.device += std::int64_t{2} * l.generation->nvls_channels * steps * l.local * b.nvls_chunk;
  return memory;
}

CommunicatorMemory plan_communicators(const Workload& w, const ParallelPlan& p,
                                      const Cluster& cluster, const RankLayout& layout,
                                      const CollectiveModel& model) {
  CommunicatorMemory total;
  const auto open = [&](const GroupShape& shape, CollectiveSet used) {
    if (w.framework.process.connects_at_once) used.add(Collective::all_reduce);
    const CommunicatorMemory m = nccl_memory(model, shape, used);
    total.device += m.device;
    total.host += m.host;
  };
  using enum Collective;
  if (p.tensor > 1)
    open(layout.shape(GroupKind::tensor), p.sequence_parallel
                                              ? CollectiveSet{all_gather, reduce_scatter}
                                              : CollectiveSet{all_reduce});
  if (p.context > 1) open(layout.shape(GroupKind::context), {all_gather, reduce_scatter});
  const bool hybrid = p.shard_group && *p.shard_group < p.data;
  if (p.zero_stage >= 1 && p.shard_ranks() > 1)
    open(layout.shape(GroupKind::shard), {all_gather, reduce_scatter});
  else if (p.data * p.context > 1)
    open(layout.shape(GroupKind::gradient), {all_reduce});
  if (hybrid) open(layout.shape(GroupKind::replicate), {all_reduce});
  if (p.expert > 1) open(layout.shape(GroupKind::expert), {all_to_all});
  if (p.expert > 1) open(layout.shape(GroupKind::expert_gradient), {all_gather, reduce_scatter});
  if (p.pipeline > 1 && !p.layer_split) open(layout.pipeline_link(0), {send_recv});
  if (has_expert_tensor_group(w, p))
    open(layout.shape(GroupKind::expert_tensor), {all_gather, reduce_scatter});
  if (sums_tied_tables(w, p)) open(layout.stage_pair(0, p.pipeline - 1), {all_reduce});
  const GroupShape world = group_shape(layout.world(), 1, gpus_per_node(cluster), layout.world());
  for (int i = 0; i < w.framework.process.world_groups; ++i) open(world, {all_reduce});
  return total;
}

}  // namespace shardwise
