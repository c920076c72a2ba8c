// The workload of one method on one cluster: what the framework that it runs in makes of a request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/cluster.hpp"
#include "planner/request/resolved_request.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

struct ChosenWorkload {
  Workload workload;
  std::vector<std::string> notes;  // what was put in place of something, in whole sentences
};

// `zero_stage` decides between a framework and its other engine (Framework::with_zero).
ChosenWorkload choose_workload(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, int zero_stage);

// For one plan: its ZeRO stage decides so, and its format may be left_unlowered().
ChosenWorkload choose_workload(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, const ParallelPlan& plan);

// The format in which a framework that lowers precision by FSDP trains a plan that has none of it;
// nothing where it trains as it says.
std::optional<DType> left_unlowered(const Framework& row, DType compute, const ParallelPlan& plan);
std::string told_unlowered(const Framework& row, DType format);

// --precision where it names a format below 16 bits that a card of the cluster has no matrix units
// for.
Problems precision_problems(const ResolvedRequest& request, const Cluster& cluster);

// How the checkpoint's own file stores what adapters freeze, where that is counted here and the
// framework trains beside quantised weights; others read such a file into 16 bits.
std::optional<Quantization> stored_base(const ResolvedRequest& request, const Framework& framework);

// What a framework does otherwise on this GPU: its attention kernel, its allocator's segments.
void settle_on(const Gpu& gpu, DType compute, Framework& framework);

// And once all is known that a request or a record asks of attention, what the GPU has of that.
// Where sums are to be taken in one order, Transformer Engine's cuDNN kernel does not go backward
// on Blackwell with dropout of the weights, and FlashAttention-2 does (NVIDIA/TransformerEngine
// v2.16 transformer_engine/common/fused_attn/fused_attn.cpp, nvte_get_fused_attn_backend,
// "determinism on Blackwell"; before v2.12 no fused kernel does). Operands of 8 bits: few cards.
void settle_attention(const Gpu& gpu, Workload& workload);

}  // namespace shardwise
