// Plan layouts: the ways to lay a model over the GPUs that are worth a try, before microbatch and
// recomputation are chosen.
//
//   data parallel over all GPUs with every ZeRO stage of the framework; 3 also in shard groups of
//   one node (HSDP). Adapters have next to no gradients and states: 0 and 3 only
//   tensor parallel inside a node, where the framework can and its GPUs have NVLink; without NVLink
//   apart, for where nothing else fits
//   pipelines of up to 16 stages, where the framework can, over what TP leaves
//   experts of a layer dealt to ranks of one node, as many as can be, where the framework can;
//   else shared as the rest of the layer is
//   each sequence over `context` GPUs, one width of context parallelism at a time
//   a layer split (device_map) over the cards of one node, where it has no pipelines: as many on
//   each, and where the cards differ in memory as many as each has room for
//
// A small, sensible set; the whole plan space is another command's business.
#pragma once

#include <string_view>
#include <vector>

#include "catalog/cluster.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// In order of preference where two are equally good. Every layout multiplies out to the GPUs;
// those whose data ranks do not divide `batch` are left out.
std::vector<ParallelPlan> plan_layouts(const Workload& workload, const Cluster& cluster, int batch,
                                       int context = 1);
// Those with tensor parallelism over other links than NVLink.
std::vector<ParallelPlan> slow_tensor_layouts(const Workload& workload, const Cluster& cluster,
                                              int batch);

// Whether layers can lie on the cards of one box that take turns (device_map): up to eight of them,
// in a framework without pipelines.
bool splits_layers(const Workload& workload, const Cluster& cluster);

// Whether frozen weights lie whole on every GPU whatever is sharded. Codes that GPTQ and its kin
// pack are buffers of their modules (AutoGPTQ @179776bd1d auto_gptq/nn_modules/qlinear/
// qlinear_cuda_old.py:42-58), and FSDP and ZeRO-3 shard parameters alone; LLaMA-Factory stops there
// ("DeepSpeed ZeRO-3 or FSDP is incompatible with PTQ-quantized models.", its issue 6898). No such
// plan is proposed. One that is asked for is forecast as with fms-acceleration, which makes
// parameters of them and views these as codes before each call (@25171a048c
// plugins/accelerated-peft/src/fms_acceleration_peft/autogptq_utils.py,
// patch_forward_to_view_attributes_before_call).
bool leaves_packed_whole(const Workload& workload);
inline constexpr std::string_view told_packed_whole =
    "GPTQ's packed weights are buffers, which FSDP and ZeRO-3 leave whole on every GPU";

// Layers for each card of such a split, by the cards' memory. The last one also holds the head and
// its logits, which nobody knows before they are played: they are taken to be worth no layer, an
// eighth and a quarter of all. Without those splits that are even.
std::vector<std::vector<int>> layers_by_memory(const Workload& workload, const Cluster& cluster);

// Whether norms and residuals are sharded along the sequence, where nobody says: as the framework
// does. Experts beside tensor parallelism need it (plan_rules.cpp).
bool sequence_parallel_by_default(const Framework& framework, int tensor, bool experts);

}  // namespace shardwise
