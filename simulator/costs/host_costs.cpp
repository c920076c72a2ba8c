// What crosses between a GPU and its host in a step: the optimizer on the CPU, weights and
// gradients that live there, activations that wait there for their backward.
#include <algorithm>

#include "simulator/costs/cost_model.hpp"

namespace shardwise {
namespace {

// Of a box that does not say.
BytesPerSecond usual_memory(const Node& node, const HostLinks& h) {
  const int channels = node.cpu_sockets > 1 ? h.memory_channels_per_socket * node.cpu_sockets
                                            : h.memory_channels_of_one_socket;
  return BytesPerSecond(h.memory_channel.value * channels);
}

// bitsandbytes' optimizers step one tensor after another and wait for the GPU after each (0.45.0
// optim/optimizer.py:294-296, step; 0.50.2 the same, sync_gpu), so that no kernel runs beside what
// the CPU does for one. torchao's, whose rows these are too, wait for none, but call a compiled
// function for each.
bool waits_for_each_tensor(const OptimizerRow& o) {
  return o.one_by_one && o.rank == 0 && (o.paged || o.format == StateFormat::blockwise_8bit);
}

}  // namespace

// Of what a rank steps, `n` elements: at stage 3 it has a part of each tensor, below about as many
// whole ones as its share is of all. The CPU waits for what they tell, so that it is not ahead.
Seconds CostModel::read_partition(double n, int tensors, const KernelModel& kernels) const {
  const PartitionReads reads = partition_reads(w_, plan_);
  if (reads.kernels_of_each == 0) return Seconds(0);
  const bool parts = plan_.zero_stage == 3;
  const int ranks = parts ? 1 : layout_.shape(GroupKind::gradient).ranks;
  const int own = (tensors + ranks - 1) / ranks;
  const Bytes moved = ceil_bytes(reads.bytes_each * n);
  const Framework& f = w_.framework;
  const double us_of_each =
      (parts ? f.host.us_per_read_tensor_stage_3 : f.host.us_per_read_tensor) +
      (reads.checked ? f.host.us_per_checked_tensor : 0);
  return longest(
      kernels.memory_bound(moved, reads.kernels_of_each * own, MemoryAccess::streaming, moved),
      own * kernels.host_slowdown() * Seconds(us_of_each * 1e-6));
}

void CostModel::schedule_optimizer(const LayerState& state, int tensors, const KernelModel& kernels,
                                   const NodeGroup& group, StageCosts& costs) const {
  const double n = static_cast<double>(state.stepped_elements);
  if (!plan_.offload.optimizer) {
    const OptimizerPass pass = optimizer_pass(w_);
    const int launches = pass.kernels_of_each > 0 ? pass.kernels_of_each * tensors : pass.kernels;
    const double zeroed = static_cast<double>(zeroed_gradients(w_, state).value);
    costs.optimizer =
        kernels.memory_bound(ceil_bytes(pass.bytes_each * n + zeroed), launches,
                             MemoryAccess::streaming, ceil_bytes(pass.cold_each * n + zeroed));
    costs.optimizer += read_partition(n, tensors, kernels);
    // Tensor by tensor the CPU may be what takes the time: operators without autograd or modules
    // around them.
    if (pass.kernels_of_each > 0)
      costs.optimizer = longest(
          costs.optimizer, launches * kernels.host_slowdown() * profile_.host.per_looped_launch);
    // Its Python takes 14 to 19 us on a core that runs an eager Linear in 15: an operator (0.45.0
    // with its CUDA library stubbed out, torch 2.15 on an AMD EPYC, 2026-11-29). Trainers in C++
    // take less for one; DeepSpeed hands it a partition.
    if (waits_for_each_tensor(*w_.optimizer) && plan_.zero_stage == 0)
      costs.optimizer +=
          tensors * std::min(host_per_kernel(kernels), kernels.host_per_kernel(KernelStyle::eager));
  } else {
    costs.host_traffic.optimizer = ceil_bytes(host_optimizer_bytes(w_) * n);
    costs.host_traffic.optimizer_rate = host_step_rate(group);
    costs.host_optimizer = costs.host_traffic.optimizer / costs.host_traffic.optimizer_rate;
    if (plan_.nvme) {
      // fp32 weights and both moments are read and written back; a drive serves all GPUs at once.
      const StoredParameter p = w_.trains_base() ? stored_base(w_, true, true) : stored_adapter(w_);
      const Bytes swapped = ceil_bytes((4 + p.optimizer) * n);
      const BytesPerSecond drives = group.node.nvme_bandwidth.value_or(profile_.links.host.drive);
      costs.nvme_each_way = swapped / BytesPerSecond(drives.value / cluster_.gpus_of_node(group));
    }
    if (!plan_.offload.parameters) {
      const Bytes stepped_copy = ceil_bytes(2 * n);
      costs.host_traffic.copied_in += stepped_copy;
      costs.copy_in_at_end = stepped_copy / host_copy_rate();
    }
  }
  const Bytes checked = checked_gradients(w_, plan_, state);
  if (checked.value > 0)
    costs.optimizer += kernels.memory_bound(checked, 1, MemoryAccess::streaming, checked);
  costs.host_per_step =
      profile_.host.step_operators * host_per_kernel(kernels) +
      tensors * kernels.host_slowdown() * Seconds(w_.framework.host.us_per_stepped_tensor * 1e-6);
}

// The host steps for all its GPUs at once, at the speed of its memory. What other stages of the box
// do at the same time is for the flow network to say, where it knows the memory.
BytesPerSecond CostModel::host_step_rate(const NodeGroup& group) const {
  const HostLinks& links = profile_.links.host;
  const BytesPerSecond host =
      group.node.host_memory_bandwidth.value_or(usual_memory(group.node, links));
  const int sharers =
      group.node.host_memory_bandwidth ? stage_gpus_on_a_node() : cluster_.gpus_of_node(group);
  return BytesPerSecond(host.value * (links.memory_fraction / sharers));
}

int CostModel::stages_on_a_host() const {
  const int gpus = plan_.gpus(), each = gpus / plan_.pipeline;
  const int node = std::min(gpus, collectives_.topology().gpus_per_node());
  const bool shared = cluster_.groups.size() == 1 &&
                      cluster_.groups.front().node.host_memory_bandwidth &&
                      !collectives_.topology().several_chassis();
  return shared && gpus % node == 0 && node % each == 0 ? node / each : 1;
}

// The mean stage alone; where stages share a memory it serves what all of them want.
Seconds CostModel::least_host_step(double elements) const {
  if (!plan_.offload.optimizer || cluster_.groups.size() > 1) return Seconds(0);
  const double bytes = host_optimizer_bytes(w_) * elements / plan_.pipeline;
  return Seconds(stages_on_a_host() * bytes / host_step_rate(cluster_.groups.front()).value);
}

Seconds CostModel::copy_in_time(const LayerState& s) const {
  if (!plan_.offload.parameters) return Seconds(0);
  return Bytes(s.offloaded(w_.framework)) / host_copy_rate();
}

int CostModel::stage_gpus_on_a_node() const {
  return std::min(plan_.gpus() / plan_.pipeline, collectives_.topology().gpus_per_node());
}
BytesPerSecond CostModel::host_copy_rate() const {
  return collectives_.topology().host_copy(stage_gpus_on_a_node());
}

// Each parameter's states are brought in for its update (bitsandbytes/optim/optimizer.py,
// prefetch_state). They are used in turn, so those that went longest without use, which a driver
// evicts first, are the next to be wanted: where not all find room, all of them cross both ways.
// Assumed: at the rate of pinned copies; migrations of pages may be slower.
void CostModel::swap_states(Bytes states, StageCosts& costs) const {
  const BytesPerSecond link = host_copy_rate();
  costs.host_traffic.copied_in += states;
  costs.host_traffic.copied_out += states;
  costs.host_traffic.copy_rate = link;
  costs.copy_in_at_end = costs.copy_in_at_end.value_or(Seconds(0)) + 2.0 * (states / link);
}

void CostModel::schedule_offload(const CostedChunks& chunks, StageCosts& costs) const {
  const BytesPerSecond link = host_copy_rate();
  costs.host_traffic.copy_rate = link;
  if (plan_.offload.optimizer) schedule_gradient_copies(chunks, costs);
  if (!plan_.offload.parameters) return;
  for (const CostedChunk& chunk : chunks)
    for (std::size_t i = 0; i < chunk.layers->size(); ++i) {
      const LayerState s = state_of(*(*chunk.layers)[i].definition);
      const Bytes weights(s.offloaded(w_.framework));
      costs.chunks[chunk.place][i].copy_in = copy_in_time(s);
      // Forward and backward.
      costs.host_traffic.copied_in += 2 * chunk.times * plan_.microbatches * weights;
    }
}

// Gradients follow their reduction, bucket by bucket or all at the end; those that nothing reduces
// follow the layer's backward. Where microbatches add up on the host, DeepSpeed's ZeRO-2 takes the
// 16-bit sum to the host with each and back to the GPU for the next, and then the fp32 one once
// (@edaa722126 runtime/zero/stage_1_and_2.py:1516-1560, 1650-1668): 4 m + 2 bytes of a gradient for
// m > 1 microbatches, where these are 4 m. Ways there and back count as one.
void CostModel::schedule_gradient_copies(const CostedChunks& chunks, StageCosts& costs) const {
  const bool alone = layout_.shape(GroupKind::gradient).ranks == 1;
  const std::int64_t times = reduces_every_microbatch() ? plan_.microbatches : 1;
  Bytes all;
  for (const CostedChunk& chunk : chunks) {
    Bytes bucket;
    for (std::size_t i = chunk.layers->size(); i-- > 0;) {
      LayerSchedule& l = costs.chunks[chunk.place][i];
      const Bytes own(gradients_on_host(w_, state_of(*(*chunk.layers)[i].definition)));
      bucket += own;
      all += chunk.times * own;
      if (bucket.value == 0 || reduces_at_end() || !(alone || l.reduce)) continue;
      l.copy_out = bucket / costs.host_traffic.copy_rate;
      bucket = Bytes(0);
    }
  }
  if (reduces_at_end() && all.value > 0) costs.copy_out_at_end = all / costs.host_traffic.copy_rate;
  costs.host_traffic.copied_out += times * all;
}

// What a unit saves (ActivationOffload: a layer, or a chunk where there is a pipeline) is copied
// out while the next unit's forward runs, and back while another unit's backward does. Units being
// alike, a pass takes as long as its copy where that is longer than its kernels; what is longer is
// put behind the unit's last layer.
void CostModel::schedule_activation_copies(const CostedChunks& chunks, StageCosts& costs) const {
  const BytesPerSecond link = host_copy_rate();
  costs.host_traffic.copy_rate = link;
  const auto busy = [](const PassTime& t) { return longest(t.device(), t.host); };
  for (const CostedChunk& chunk : chunks) {
    Bytes away;
    Seconds forward, backward;
    for (std::size_t i = 0; i < chunk.layers->size(); ++i) {
      const LayerDefinition& d = *(*chunk.layers)[i].definition;
      LayerTime& t = costs.chunks[chunk.place][i].time;
      forward += busy(t.forward);
      backward += busy(t.recompute) + busy(t.backward_input) + busy(t.backward_weight);
      if (d.role == LayerRole::block)
        away += ceil_bytes(plan_.offloaded_share * static_cast<double>(d.script.saved_bytes));
      const bool last = i + 1 == chunk.layers->size();
      if (plan_.pipeline > 1 && !last) continue;
      const Seconds copy = away / link;
      t.forward.copies = longest(Seconds(0), copy - forward);
      t.backward_input.copies = longest(Seconds(0), copy - backward);
      const Bytes copied = std::int64_t{chunk.times} * plan_.microbatches * away;
      costs.host_traffic.copied_out += copied;
      costs.host_traffic.copied_in += copied;
      away = Bytes(0);
      forward = backward = Seconds(0);
    }
  }
}

}  // namespace shardwise
