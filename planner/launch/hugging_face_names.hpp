// How Hugging Face's Trainer, and what builds on it, spells optimizers and adapted linears.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/adapter.hpp"
#include "catalog/optimizer.hpp"
#include "planner/launch/plan_key.hpp"
#include "planner/launch/plan_words.hpp"

namespace shardwise {

// transformers/training_args.py, OptimizerNames; the first spelling of a row is the one written.
inline constexpr Meaning hugging_face_optimizers[] = {
    {"adamw_torch_fused", "adamw"},
    {"adamw_torch", "adamw"},
    {"adamw_hf", "adamw"},
    {"adamw_bnb_8bit", "adamw8bit"},
    {"adamw_8bit", "adamw8bit"},
    {"paged_adamw_32bit", "paged-adamw"},
    {"paged_adamw_8bit", "paged-adamw8bit"},
    {"adafactor", "adafactor"},
    {"sgd", "sgd"},
    {"lion_32bit", "lion"},
    {"lion_8bit", "lion8bit"},
    {"galore_adamw", "galore-adamw"},
    {"galore_adamw_8bit", "galore-adamw8bit"},
    {"apollo_adamw", "apollo-adamw"},
    {"adamw_torch_4bit", "adamw4bit"},
    // torchao's, whose states are of the same bytes: a code, and an fp32 scale of 256
    // (pytorch/ao @0196250048 torchao/optim/subclass_8bit.py).
    {"adamw_torch_8bit", "adamw8bit"},
    {"adamw_torch_xla", "adamw"},
    {"adamw_torch_npu_fused", "adamw"},
    {"adamw_apex_fused", "adamw"},
    {"paged_adamw", "paged-adamw"},
    {"ademamix", "ademamix"},
    {"ademamix_8bit", "ademamix8bit"},
    {"schedule_free_adamw", "schedule-free-adamw"},
    {"lomo", "lomo"},
    {"adalomo", "adalomo"}};

// The linears of llama-like models, which most share.
inline constexpr Meaning hugging_face_linears[] = {
    {"q_proj", "q"},        {"k_proj", "k"},
    {"v_proj", "v"},        {"o_proj", "o"},
    {"gate_proj", "gate"},  {"up_proj", "up"},
    {"down_proj", "down"},  {"embed_tokens", "embedding"},
    {"lm_head", "lm_head"}, {"all-linear", "all-linear"}};

// FSDP's strategies by PyTorch's names, each in the spelling of the Trainer's list of `fsdp` and of
// the configurations' keys: the ZeRO stage, and "-node" where every node shards for itself
// (transformers 5.24.0 trainer_utils.py, FSDPOption; accelerate's FSDP_SHARDING_STRATEGY).
inline constexpr Meaning fsdp_parts[] = {
    {"full_shard", "3"},        {"shard_grad_op", "2"},
    {"hybrid_shard", "3-node"}, {"hybrid_shard_zero2", "2-node"},
    {"no_shard", "0"},          {"offload", "offload"},
    {"auto_wrap", "auto_wrap"}};
inline constexpr Meaning fsdp_strategies[] = {{"FULL_SHARD", "3"},
                                              {"1", "3"},
                                              {"SHARD_GRAD_OP", "2"},
                                              {"2", "2"},
                                              {"NO_SHARD", "0"},
                                              {"3", "0"},
                                              {"HYBRID_SHARD", "3-node"},
                                              {"4", "3-node"},
                                              {"hybrid_shard", "3-node"},
                                              {"HYBRID_SHARD_ZERO2", "2-node"},
                                              {"5", "2-node"},
                                              {"hybrid_shard_zero2", "2-node"},
                                              {"full_shard", "3"},
                                              {"shard_grad_op", "2"},
                                              {"no_shard", "0"},
                                              {"_HYBRID_SHARD_ZERO2", "2-node"}};

// Words "fsdp-part:3-node", "fsdp-part:offload" -> `word`: "3-node+offload". Nothing without any.
void gather_fsdp_parts(PlanWords& words, std::string_view word);
// "2-node" of fsdp_strategies, which stands `where`: the ZeRO stage and the shard group.
void say_sharding(PlanWords& words, const std::string& sharding, const std::string& where,
                  const PlanFileContext& context);

// "" where the Trainer has no such optimizer.
std::string_view hugging_face_optimizer(const OptimizerRow& optimizer);

bool every_linear(const AdapterTargets& targets);  // of a block: what "all-linear" stands for
std::vector<std::string_view> hugging_face_targets(const AdapterTargets& targets);

// What one entry of PEFT's target_modules means here.
struct NamedLinears {
  std::vector<std::string_view> linears{};  // "q", "all-linear"
  std::string note{};                       // why none, or not exactly these, are meant there
};

// `target`: one module's name, the end of such a name ("self_attn.q_proj"), several between commas
// (LLaMA-Factory), or a pattern of whole names, which PEFT holds against each
// (peft/tuners/tuners_utils.py, check_target_module_exists).
NamedLinears linears_named(const std::string& target);

// Words "target:q", "target:all-linear" -> lora_targets.
void gather_targets(PlanWords& words, const std::string& file);
// Words quantized-4bit, quantized-8bit, double-quant, adapter and dora -> method and quantization.
void gather_method(PlanWords& words, const std::string& file);

}  // namespace shardwise
