// Which framework a method runs in when nobody says.
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

#include "catalog/load.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

std::string_view usual_framework(Method method, int gpus);

// The framework row that is advised where weights, gradients and optimizer have to leave the GPU:
// ZeRO-Offload (arXiv 2101.06840) in the trainer that `full` usually runs in on one.
inline constexpr std::string_view offloads_most = "hf-deepspeed";

// The framework row that is advised where a method does not fit one GPU; empty: none.
constexpr std::string_view leanest_on_one_gpu(Method method) {
  if (method == Method::full) return "torchtune-low-memory";
  return method == Method::lora || method == Method::qlora ? "unsloth" : "";
}

// The ids of all rows that a question comes to that names no framework: those above, and those in
// which launch targets run a plan.
std::vector<std::string> frameworks_unnamed();

// The file of such a row, or of the engine that it changes to with ZeRO, where the catalog at hand
// was trimmed by it. What only the row could say is then left unsaid.
std::optional<std::string> lacking_file(const Catalog& catalog, std::string_view id);

// Whether nobody names a framework where one GPU and several usually run different ones: scaling
// that is read off two answers would be theirs as well.
bool framework_follows_gpus(const Request& asked, const std::vector<Method>& methods);
inline constexpr const char* framework_follows_gpus_note =
    "No framework was named: one GPU and several GPUs are forecast in different ones. To compare "
    "the two, name one with --framework.";

}  // namespace shardwise
