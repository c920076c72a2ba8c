// Plan layouts: the ways to lay a model over the GPUs that are worth a try, before microbatch and
// recomputation are chosen.
//
//   data parallel over all GPUs with every ZeRO stage of the framework; 3 also in shard groups of
//   one node (HSDP). Adapters have next to no gradients and states: 0 and 3 only, and 0 alone
//   beside weights that cannot be sharded (packed_weights.hpp)
//   tensor parallel inside a node, where the framework can and its GPUs have NVLink; without NVLink
//   apart, for where nothing else fits with room to spare
//   pipelines of up to 16 stages, where the framework can, over what TP leaves
//   experts of a layer dealt to ranks of one node, as many as can be, where the framework can;
//   else shared as the rest of the layer is
//   each sequence over `context` GPUs, one width of context parallelism at a time
//   a layer split (device_map) over the cards of one node, where it has no pipelines: as many on
//   each, and where the cards differ in memory as many as each has room for
//
// A small, sensible set; the whole plan space is another command's business.
#pragma once

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

// Whether every card has as much memory.
bool equal_memory(const Cluster& cluster);

// Layers for each card of such a split, by the cards' memory. The last one also holds the head and
// its logits, which nobody knows before they are played: they are taken to be worth no layer, an
// eighth and a quarter of all. Without those splits that are even.
std::vector<std::vector<int>> layers_by_memory(const Workload& workload, const Cluster& cluster);

// Whether norms and residuals are sharded along the sequence, where nobody says: as the framework
// does. Experts beside tensor parallelism need it (plan_rules.cpp).
bool sequence_parallel_by_default(const Framework& framework, int tensor, bool experts);

}  // namespace shardwise
