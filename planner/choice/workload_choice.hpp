// Which framework a method runs in when nobody says, and the workload that follows.
//
//   pretrain    Megatron-LM: TP, PP and a distributed optimizer; what large runs are reported with
//   full        Hugging Face Trainer; over several GPUs PyTorch FSDP2, which reduces gradients in
//               every microbatch, where Accelerate accumulates them whole
//   lora, dora  PEFT; over several GPUs with FSDP through Accelerate
//   qlora       PEFT; over several GPUs fsdp_qlora, which shards 4-bit weights and reads them once
//               (`quantized_sharding` of its row: plain FSDP, DDP and DeepSpeed keep them whole);
//               models of experts on one GPU: Unsloth, which quantises those (`quantizes_experts`)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/cluster.hpp"
#include "planner/request/resolved_request.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// The framework row that is advised where a method does not fit one GPU; empty: none.
constexpr std::string_view leanest_on_one_gpu(Method method) {
  if (method == Method::full) return "torchtune-low-memory";
  return method == Method::lora || method == Method::qlora ? "unsloth" : "";
}

struct ChosenWorkload {
  Workload workload;
  std::vector<std::string> notes;  // what was put in place of something, in whole sentences
};

// `zero_stage` decides between a framework and its other engine (Framework::with_zero).
ChosenWorkload choose_workload(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, int zero_stage);

// --precision where it names a format below 16 bits that a card of the cluster has no matrix units
// for.
Problems precision_problems(const ResolvedRequest& request, const Cluster& cluster);

// How the checkpoint's own file stores what adapters freeze, where that is counted here and the
// framework trains beside quantised weights; others read such a file into 16 bits.
std::optional<Quantization> stored_base(const ResolvedRequest& request, const Framework& framework);

// Whether nobody names a framework where one GPU and several usually run different ones: scaling
// that is read off two answers would be theirs as well.
bool framework_follows_gpus(const Request& asked, const std::vector<Method>& methods);
inline constexpr const char* framework_follows_gpus_note =
    "No framework named: one GPU and several are forecast in different ones; to compare the two, "
    "name one by --framework.";

// The attention kernel that runs on a GPU where `wanted` is not to be had: Transformer Engine's
// fused attention needs compute capability 8.0, or it stores the scores
// (dot_product_attention/utils.py). So does every fused kernel in bf16: PyTorch's memory-efficient
// one takes fp16 and fp32 below (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp,
// less_than_sm80_mem_efficient_dtypes), and flash-attn none at all.
AttentionKernel attention_on(const Gpu& gpu, DType compute, AttentionKernel wanted);

// What a framework does otherwise on this GPU: its attention kernel, its allocator's segments.
void settle_on(const Gpu& gpu, DType compute, Framework& framework);

}  // namespace shardwise
