// A workload: what is trained and how, before anybody says on which GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "catalog/adapter.hpp"
#include "catalog/dtype.hpp"
#include "catalog/framework.hpp"
#include "catalog/graph_scope.hpp"
#include "catalog/optimizer.hpp"
#include "catalog/preference.hpp"
#include "catalog/transformer.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// Standard deviation of the tokens of a trained router's experts on real text, over their mean: the
// mean over seven mixtures. Four by the Gini coefficient of their experts' tokens on wikitext,
// times the root of pi as of normal draws: DeepSeek-MoE-16B (0.105), Nemotron-30B (0.150),
// DeepSeek-V2-Lite and Qwen3.5-35B ("above 0.24", taken as 0.24), by the abstract of arXiv
// 2605.20982. Three by what its ranks got in one pass, as fullest_place has it: DeepSeek-R1 on 32
// ranks, a deviation of 491.7 from 1,024 at the mean of its layers (NVIDIA/TensorRT-LLM @195a8bdc
// examples/ep_load_balancer/README.md), 1.36; Qwen3-VL-30B-A3B on 4, the fullest 1.18 times the
// mean, of images and text together ('DP/EP arrival-skew under two EP4 topologies' of September
// 2026, text in a public repo), 0.98; Kimi K3 on 16, 1.069 times (vllm-project/vllm pull request
// 50647; 896 experts), 0.29.
constexpr double trained_expert_spread = 0.56;

struct Workload {
  Transformer model;
  Method method = Method::full;
  Adapter adapter;              // lora, dora, qlora
  int sequence = 4096;          // tokens per sequence
  ImagesSeen images;            // of a sequence, where the model has a vision tower
  int frozen_layers = 0;        // the first n layers have no gradient
  DType compute = DType::bf16;  // of the matrix multiplications
  const OptimizerRow* optimizer = optimizer_named("adamw");
  Framework framework;  // defaults resolved; overrides below already applied
  bool causal = true;
  bool hidden_dropout = false;  // dropout after attention and MLP: one mask byte each
  std::optional<Seconds>
      load_per_sequence;           // the data loaders of one node; absent: never waited for
  bool attention_dropout = false;  // dropout of the attention weights
  bool blocking_launches = false;  // CUDA_LAUNCH_BLOCKING=1: launches return with their kernels
  // Tokens travel to and from experts behind the kernels of another microbatch (Megatron-LM
  // overlap_moe_expert_parallel_comm).
  bool overlaps_experts = false;
  double expert_imbalance = 1;  // tokens of the fullest rank's experts over the mean, where experts
                                // are spread over ranks
  double expert_spread = 0;  // standard deviation of an expert's tokens over their mean: what fills
                             // one rank more than others where no imbalance is given
  // Depths of multi-token prediction (arXiv 2412.19437, section 2.2) that are trained beside the
  // next token: a layer and a loss more for each. Where they are several, they share the layer.
  int prediction_depths = 0;
  const PreferenceRow* preference = nullptr;  // nullptr: the next token is trained for
  int sequences_per_sample = 1;               // batches and microbatches count samples
  // Each data rank orthogonalises its part of the matrices (Muon) though it shards no states.
  bool shares_orthogonalization = false;
  bool pads_experts = false;   // every expert computes equally many tokens, dropped or padded
  bool step_is_graph = false;  // one CUDA graph holds forward and backward: the CPU issues nothing
  GraphScopes graph_scopes;    // else what graphs of every layer hold (captured_parts.hpp)

  // The framework's own AdamW, where that is what steps.
  const WrittenOptimizer* written_optimizer() const {
    const bool steps = framework.update.written && optimizer == optimizer_named("adamw");
    return steps ? &*framework.update.written : nullptr;
  }

  // Takes an optimizer, and what it decides in the framework's place: when gradients go. Without
  // gradients that are kept no wider weights stand beside 16-bit ones.
  void step_with(const OptimizerRow& row) {
    optimizer = &row;
    if (!row.in_backward) return;
    framework.gradients.life = GradientLife::in_backward;
    framework.update.clips_gradients = false;
    for (WeightRecipe* weights :
         {&framework.formats.pretrain_weights, &framework.formats.finetune_weights})
      if (*weights == WeightRecipe::half_with_master) *weights = WeightRecipe::pure_half;
  }

  // A reference model is a copy beside the one that is trained, unless that is its own base under
  // adapters.
  bool copies_reference() const {
    return preference != nullptr && preference->reference && trains_base();
  }
  // Through all layers, of one microbatch: with gradients, and without.
  int forward_passes() const {
    return 1 + (preference != nullptr ? preference->forward_passes : 0);
  }
  std::int64_t tokens_per_sample() const { return std::int64_t{sequence} * sequences_per_sample; }

  // A loss in slices of the tokens is the next token's: log-probabilities of answers are taken of
  // whole logits (trl 1.14.1 trl/trainer/dpo_trainer.py, _compute_loss, without Liger).
  void prefer(const PreferenceRow* row) {
    preference = row;
    if (row != nullptr && framework.loss.kind == LossKind::chunked)
      framework.loss.kind = LossKind::dense;
    sequences_per_sample = row != nullptr ? row->sequences : 1;
  }

  // How the model's classes are written, where they run; else as most are.
  ModelCode own_code() const {
    const bool eager = framework.layers.kernels == KernelStyle::eager;
    return eager && (framework.layers.runs_transformers || model.code.stated) ? model.code
                                                                              : ModelCode{};
  }
  bool trains_base() const { return row(method).trains_base; }
  // Whether adapters stand beside frozen weights that are stored in fewer bits.
  bool freezes_quantized() const {
    return row(method).adapter && adapter.base != Quantization::none;
  }
  // Whether frozen weights that nothing quantises are stored in another format than products are
  // made in. torch.autocast copies those at every use: it caches copies of fp32 weights that have
  // a gradient alone (PyTorch aten/src/ATen/autocast_mode.cpp, cached_cast).
  bool stores_frozen_apart() const {
    const bool wide = framework.formats.frozen_dtype == DType::fp32;
    return !trains_base() && framework.formats.frozen_dtype != activation_dtype() &&
           (wide || !freezes_quantized());
  }
  // Whether the output projection has a gradient of its own, not only an adapter.
  bool trains_head() const {
    return trains_base() || (adapter.targets.lm_head && !framework.adapters.on_head);
  }
  bool trains_embedding() const { return trains_base() || adapter.targets.embedding; }
  WeightRecipe weights() const {
    return method == Method::pretrain ? framework.formats.pretrain_weights
                                      : framework.formats.finetune_weights;
  }
  // The 16-bit format beside fp8: fp8 computes matrix products only.
  DType activation_dtype() const {
    if (compute == DType::fp32 || compute == DType::tf32) return DType::fp32;
    return compute == DType::fp16 ? DType::fp16 : DType::bf16;
  }
  // Of 16-bit operands outside products; absent where they are fp32.
  std::optional<DType> half_operands() const {
    const DType own = activation_dtype();
    return own == DType::fp32 ? std::nullopt : std::make_optional(own);
  }
  // Of products outside the narrow formats: tf32 rounds the operands of fp32 ones inside the
  // tensor cores (torch.backends.cuda.matmul.allow_tf32).
  DType product_dtype() const { return compute == DType::tf32 ? DType::tf32 : activation_dtype(); }
};

}  // namespace shardwise
