#include "planner/forecast/host_memory.hpp"

#include <algorithm>

#include "simulator/memory/pinned_memory.hpp"

namespace shardwise {
namespace {

// What one reader holds while it loads: the whole checkpoint in 16 bits, or its stages' share.
// Where weights go to their GPUs as they come, the file being read, of which a small model has one
// only: quantised on the GPU that keeps them (transformers/quantizers/quantizer_bnb_4bit.py,
// update_device_map: the current GPU where nobody says), or sent to one card or spread over several
// by a device_map (transformers 5.24.0 core_model_loading.py:1461-1494: each tensor goes to its
// device as it is read). Before they are sharded, what became of them lies here too.
Bytes reading_bytes(const Workload& w, const ParallelPlan& plan, bool shards, std::int64_t ranks,
                    Bytes checkpoint_shard) {
  const auto total = static_cast<double>(parameter_count(w.model).total);
  const Bytes file = std::min(checkpoint_shard, ceil_bytes(2 * total));
  if (w.freezes_quantized() && shards)
    return file + ceil_bytes(total * row(w.adapter.base).bytes_per_weight);
  if (w.freezes_quantized() || plan.layer_split) return file;
  if (w.framework.loading.alone_on_gpu && plan.gpus() == 1 && !plan.offload.parameters) return file;
  const auto stages_here = static_cast<double>(std::min<std::int64_t>(plan.pipeline, ranks));
  return ceil_bytes(2 * total * (shards ? 1 : stages_here / plan.pipeline));
}

// What an optimizer on the host steps: the master copy where there is one; else the weights as they
// are stored, which lie there already where they are offloaded too (torch/distributed/fsdp/api.py,
// CPUOffload: gradients follow the parameters, and the step runs on the CPU), or else a pinned copy
// of them (torchao/optim/cpu_offload.py, CPUOffloadOptimizer).
std::int64_t stepped_on_host(const Workload& w, const ParallelPlan& plan, const LayerState& s) {
  if (s.master > 0) return s.master;
  if (plan.offload.parameters) return 0;
  return w.trains_base() ? s.weights : s.adapters;
}

HostMemory on_one_node(const Workload& w, const ParallelPlan& plan, const Node& node,
                       std::int64_t ranks, const HostMemoryFacts& facts, const HostShare& share) {
  const LayerState& s = share.states;
  HostMemory host;
  // Layers that are split over cards are driven by one process.
  const std::int64_t resident = (plan.layer_split ? 1 : ranks) * facts.process_resident.value;
  std::int64_t each = (share.communicators + share.activations + share.paged_out).value;
  // On NVMe four buffers of a sub-group of 1e9 elements stay (deepspeed/runtime/zero/
  // offload_config.py:67-105, buffer_count; sub_group_size of its documentation).
  if (plan.offload.optimizer && plan.nvme)
    each += s.gradients + std::min<std::int64_t>(s.optimizer + s.master, 16'000'000'000);
  else if (plan.offload.optimizer)
    each += s.optimizer + stepped_on_host(w, plan, s) + gradients_on_host(w, s);
  if (plan.offload.optimizer && plan.nvme) host.drives = Bytes(ranks * (s.optimizer + s.master));
  if (plan.offload.parameters) each += s.offloaded(w.framework);
  host.steady = Bytes(resident + ranks * each);

  // Loading: every rank that reads its own copy holds the whole checkpoint until its shard is cut;
  // otherwise one rank does, and the others build empty (meta) tensors.
  const bool shards = shards_weights(w.framework, plan) && plan.shard_ranks() > 1;
  const std::int64_t readers = w.framework.loading.every_rank_on_host && shards ? ranks : 1;
  const std::int64_t pretrain = w.method == Method::pretrain ? 0 : 1;  // initialised on the GPU
  const std::int64_t reading =
      pretrain * readers * reading_bytes(w, plan, shards, ranks, facts.checkpoint_shard).value;
  const std::int64_t kept = plan.offload.parameters ? ranks * s.offloaded(w.framework) : 0;
  host.load_peak = Bytes(resident + reading + kept);
  host.load_once = Bytes(resident + reading / readers + kept);
  host.available = node.host_ram;
  return host;
}

// What is left, or the negative of what is needed on a node that does not say what it has: that
// one is taken before those that have enough.
Bytes left(const HostMemory& h) {
  return h.available.value_or(Bytes(0)) - std::max(h.steady, h.load_peak);
}

}  // namespace

HostMemory host_memory(const Workload& w, const ParallelPlan& plan, const Cluster& cluster,
                       const HostMemoryFacts& facts, const HostShare& share) {
  std::optional<HostMemory> worst;
  for (const NodeGroup& g : cluster.groups) {
    const HostMemory here = on_one_node(w, plan, g.node, cluster.gpus_of_node(g), facts, share);
    if (!worst || left(here) < left(*worst)) worst = here;
  }
  return *worst;
}

}  // namespace shardwise
