#include "planner/choice/workload_choice.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "catalog/find.hpp"
#include "catalog/require.hpp"
#include "planner/figures.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

const Framework& catalogued(const Catalog& catalog, std::string_view id) {
  const Framework* found = framework_of_id(catalog, id);
  if (found == nullptr)  // asked for by another of its names
    if (const auto named = find_framework(catalog, id)) found = *named;
  require(found != nullptr, "resolve() and lacking_file() have seen to the row");
  return *found;
}

// Nobody chooses 4-bit weights to have the experts, which are most of them, in 16 bits or more.
constexpr std::string_view quantizes_experts = leanest_on_one_gpu(Method::qlora);

constexpr const char* one_tensor =
    "transformers 5 keeps those of a layer in one tensor, which bitsandbytes passes over";

// What was asked for, else what the checkpoint is stored in, else what the framework makes of it.
Quantization quantization_of(const ResolvedRequest& r, const Framework& f) {
  if (r.asked.quantization) return *r.asked.quantization;
  return stored_base(r, f).value_or(f.quantized.kind);
}

bool would_leave_experts_whole(const ResolvedRequest& r, Method method, const Framework& f) {
  return method == Method::qlora && r.model.moe && !f.quantized.experts &&
         is_bitsandbytes(quantization_of(r, f));
}

const Framework& framework_row(const ResolvedRequest& r, Method method, int gpus, int zero_stage) {
  const Catalog& catalog = r.facts->catalog;
  const Framework& row =
      catalogued(catalog, r.asked.framework ? std::string_view(*r.asked.framework)
                                            : usual_framework(method, std::max(gpus, r.most_gpus)));
  if (!r.asked.framework && would_leave_experts_whole(r, method, row) &&
      !lacking_file(catalog, quantizes_experts))
    return catalogued(catalog, quantizes_experts);
  if (zero_stage > 0 && !row.with_zero.empty()) return catalogued(catalog, row.with_zero);
  return row;
}

bool all_compute(const Cluster& cluster, DType format) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(),
                     [&](const NodeGroup& g) { return g.gpu.rate(format).has_value(); });
}

// Cards without bf16 (Turing, Volta, Pascal) train in fp16, then in fp32.
DType usual_format(const Framework& row, const Cluster& cluster, std::vector<std::string>& notes) {
  const std::array<DType, 3> formats{row.defaults.compute, DType::fp16, DType::fp32};
  const auto* format = std::find_if(formats.begin(), formats.end() - 1,
                                    [&](DType d) { return all_compute(cluster, d); });
  if (*format == row.defaults.compute) return *format;
  const auto without = std::find_if(
      cluster.groups.begin(), cluster.groups.end(),
      [&](const NodeGroup& g) { return !g.gpu.rate(row.defaults.compute).has_value(); });
  notes.push_back(sentence(without->gpu.name, " has no ", name(row.defaults.compute),
                           " matrix units: trained in ", name(*format), '.'));
  return *format;
}

Adapter adapter_for(const ResolvedRequest& r, Method method, const Framework& f) {
  Adapter adapter;
  if (!row(method).adapter) return adapter;
  adapter.rank = r.asked.lora_rank.value_or(f.adapters.rank);
  adapter.targets =
      targets_meant(r.facts->reading, r.asked.lora_targets.value_or(f.adapters.targets));
  adapter.dropout = f.adapters.dropout;
  if (method == Method::qlora)
    adapter.base = quantization_of(r, f);
  else if (!r.asked.quantization)
    adapter.base = stored_base(r, f).value_or(Quantization::none);
  return adapter;
}

// A bf16 weight has 8 significant bits: its neighbours are 2^-8 to 2^-7 of it away, so that nearest
// rounding takes back every step of less than half of that, from 2^-9 on. AdamW's are of about the
// learning rate.
std::optional<std::string> small_updates_lost(const Workload& w) {
  const Framework& f = w.framework;
  if (!w.trains_base() || w.weights() != WeightRecipe::pure_half ||
      w.activation_dtype() != DType::bf16 || f.update.rounds_stochastically ||
      w.optimizer == optimizer_named("none"))
    return std::nullopt;
  return sentence(
      "Weights are bf16 with no fp32 copy: steps of less than 1/512 of a weight are rounded away "
      "(arXiv 2010.06192), at a learning rate of 1e-5 about those of all weights above 0.005; ",
      f.in_fp32.empty() ? "fp32 weights or stochastic rounding keep such steps."
                        : sentence("loading them as float32 keeps such steps, as --framework ",
                                   f.in_fp32, " forecasts."));
}

bool lacks_flash(const Gpu& gpu) {
  return gpu.compute_capability > 0 && gpu.compute_capability < 8.0;
}

// PyTorch has one for compute capability 9.x and 10.x (@00d4eaf932 aten/src/ATen/native/cuda/
// GroupedBlas.cpp, _grouped_mm_cuda: _scaled_mm_allowed_device of sm90_only and sm100_only; on ROCm
// only where ROCM_ALLOW_GROUP_GEMM_CK asks for it).
bool lacks_grouped_product(const Gpu& gpu) {
  const double c = gpu.compute_capability;
  return gpu.vendor == "amd" || (c > 0 && (c < 9.0 || c >= 11.0));
}

}  // namespace

std::optional<Quantization> stored_base(const ResolvedRequest& r, const Framework& framework) {
  if (!r.model.stored || !framework.runs(Method::qlora)) return std::nullopt;
  return r.model.stored->counted;
}

namespace {

// The attention kernel that runs on a GPU where `wanted` is not to be had: Transformer Engine's
// fused attention needs compute capability 8.0, or it stores the scores
// (dot_product_attention/utils.py). So does every fused kernel in bf16: PyTorch's memory-efficient
// one takes fp16 and fp32 below (PyTorch @001f694aef aten/src/ATen/native/transformers/cuda/
// sdp_utils.cpp, less_than_sm80_mem_efficient_dtypes), and flash-attn none at all.
AttentionKernel attention_on(const Gpu& gpu, DType compute, AttentionKernel wanted) {
  const bool lacks = lacks_flash(gpu);
  const bool eager = wanted == AttentionKernel::cudnn || compute == DType::bf16;
  return lacks && eager ? AttentionKernel::eager : wanted;
}

// PyTorch's attention is left with its operators there (@001f694aef sdp_utils.cpp,
// select_sdp_backend), which widen 16 bits to 32. Transformer Engine has code of its own.
bool lacks_sdpa_kernel(const Gpu& gpu, DType compute, const Framework& framework) {
  return lacks_flash(gpu) && compute == DType::bf16 &&
         framework.attention.kernel == AttentionKernel::flash &&
         !framework.attention.by_transformer_engine;
}

// Whether 8-bit products with one scale for a tensor take operands as they lie; others want a
// transposed copy (TransformerEngine @d0067d0da transformer_engine/common/transformer_engine.cpp,
// nvte_is_non_tn_fp8_gemm_supported). Assumed of AMD's.
bool multiplies_as_laid(const Gpu& gpu) {
  const double c = gpu.compute_capability;
  return gpu.vendor == "amd" || (c >= 10.0 && c < 12.0) || c >= 13.0;
}

// Transformer Engine's attention of 8-bit operands with scales of blocks (v2.16 transformer_engine/
// pytorch/attention/dot_product_attention/utils.py, get_attention_backend: from compute capability
// 10.0 on, and not on 12.0).
bool attends_in_8_bits(const Gpu& gpu) {
  return gpu.compute_capability >= 10.0 && gpu.compute_capability < 12.0;
}

}  // namespace

void settle_on(const Gpu& gpu, DType compute, Framework& framework) {
  const bool blackwell = gpu.compute_capability >= 10.0;
  if (blackwell && framework.attention.kernel_blackwell &&
      framework.attention.kernel == AttentionKernel::flash)
    framework.attention.kernel = *framework.attention.kernel_blackwell;
  framework.attention.by_operators =
      framework.attention.by_operators || lacks_sdpa_kernel(gpu, compute, framework);
  framework.attention.kernel = attention_on(gpu, compute, framework.attention.kernel);
  if (!lacks_flash(gpu)) framework.attention.writes_grouped_out = false;
  if (lacks_grouped_product(gpu)) framework.experts.loops_grouped_products = true;
  if (multiplies_as_laid(gpu)) framework.narrow.weights_twice = false;
  // c10/cuda/CUDAAllocatorConfig.h: not where the driver is ROCm's.
  if (gpu.vendor == "amd") framework.process.expandable_segments = false;
}

void settle_attention(const Gpu& gpu, Workload& w) {
  Framework& f = w.framework;
  const bool blackwell = gpu.compute_capability >= 10.0;
  if (f.attention.kernel == AttentionKernel::cudnn && f.layers.deterministic &&
      w.attention_dropout && blackwell)
    f.attention.kernel = AttentionKernel::flash2;
  if (!attends_in_8_bits(gpu)) f.narrow.attention = false;
}

namespace {

void ask_for_8_bits(ChosenWorkload& chosen) {
  Framework& f = chosen.workload.framework;
  f.narrow.attention =
      f.attention.by_transformer_engine && f.attention.kernel == AttentionKernel::cudnn;
  if (!f.narrow.attention)
    chosen.notes.push_back(sentence("--fp8-attention is Transformer Engine's: attention of ",
                                    f.name, " stays in 16 bits."));
}

// Two factors of rank r of a square weight of width h hold 2 h r values, the weight h x h.
void note_wide_adapters(ChosenWorkload& chosen) {
  const Workload& w = chosen.workload;
  if (row(w.method).adapter && 2 * w.adapter.rank > w.model.hidden)
    chosen.notes.push_back(sentence("Adapters of rank ", grouped(w.adapter.rank),
                                    " hold more values than a square weight of width ",
                                    grouped(w.model.hidden), " has."));
}

}  // namespace

std::optional<DType> left_unlowered(const Framework& row, DType compute, const ParallelPlan& p) {
  const bool sixteen_bits = compute == DType::bf16 || compute == DType::fp16;
  const bool parted = p.tensor > 1 || p.pipeline > 1, whole = p.data == 1 && p.context == 1;
  const bool split = parted && whole && !p.layer_split;
  return sixteen_bits && split ? row.defaults.compute_unsharded : std::nullopt;
}

std::string told_unlowered(const Framework& row, DType format) {
  return sentence(row.name, " lowers precision by FSDP, which this plan has none of: trained in ",
                  name(format), '.');
}

ChosenWorkload choose_workload(const ResolvedRequest& r, Method method, const Cluster& cluster,
                               int zero_stage) {
  ParallelPlan of_stage;
  of_stage.zero_stage = zero_stage;
  return choose_workload(r, method, cluster, of_stage);
}

ChosenWorkload choose_workload(const ResolvedRequest& r, Method method, const Cluster& cluster,
                               const ParallelPlan& plan) {
  ChosenWorkload chosen;
  Workload& w = chosen.workload;
  const Framework& row = framework_row(r, method, cluster.gpus(), plan.zero_stage);
  w.model = r.model;
  w.method = method;
  w.sequence = r.sequence;
  w.images = r.images;
  w.compute = r.asked.precision ? *r.asked.precision : usual_format(row, cluster, chosen.notes);
  if (r.asked.precision == DType::bf16 && !all_compute(cluster, DType::bf16) &&
      all_compute(cluster, DType::fp16))
    chosen.notes.emplace_back(
        "Not every card has bf16 matrix units: --precision fp16 uses those that all have.");
  if (const auto format = left_unlowered(row, w.compute, plan)) {
    chosen.notes.push_back(told_unlowered(row, *format));
    w.compute = *format;
  }
  w.framework = resolved_for(row, method, w.compute);
  if (r.asked.expandable_segments) w.framework.process.expandable_segments = true;
  if (r.asked.fused_loss) w.framework.loss.kind = w.framework.loss.fused;
  w.prefer(r.asked.preference);
  for (const NodeGroup& group : cluster.groups) settle_on(group.gpu, w.compute, w.framework);
  if (r.asked.fp8_attention) ask_for_8_bits(chosen);
  const OptimizerRow* optimizer = r.asked.optimizer != nullptr
                                      ? r.asked.optimizer
                                      : optimizer_named(w.framework.defaults.optimizer);
  require(optimizer != nullptr, "the optimizers of framework rows are rows");
  w.step_with(*optimizer);
  if (r.asked.loader_sequences_per_s)
    w.load_per_sequence = Seconds(1 / *r.asked.loader_sequences_per_s);
  w.expert_imbalance = r.asked.expert_imbalance.value_or(1);
  if (!r.asked.expert_imbalance && method != Method::pretrain)
    w.expert_spread = trained_expert_spread;
  w.adapter = adapter_for(r, method, w.framework);
  if (leaves_experts_whole(w))
    chosen.notes.push_back(
        sentence(w.framework.name, " does not quantise the experts: ", one_tensor, "; ",
                 quantizes_experts, " does, and axolotl by quantize_moe_experts."));
  else if (!r.asked.framework && w.framework.id == quantizes_experts)
    chosen.notes.push_back(sentence("Forecast in ", w.framework.name,
                                    ", which quantises the experts: ", one_tensor, '.'));
  note_wide_adapters(chosen);
  if (auto lost = small_updates_lost(w)) chosen.notes.push_back(*std::move(lost));
  // GPT-style models, which have a plain MLP, are trained with dropout where the framework does.
  w.hidden_dropout = w.attention_dropout = w.framework.defaults.dropout && !w.model.gated_mlp;
  for (const NodeGroup& group : cluster.groups) settle_attention(group.gpu, w);
  return chosen;
}

Problems precision_problems(const ResolvedRequest& r, const Cluster& cluster) {
  const auto& asked = r.asked.precision;
  const auto problem = [&](std::string_view flag, std::string what) {
    return placed(r, {{ProblemKind::request, std::string(flag), std::move(what)}});
  };
  if (r.asked.fp8_attention && asked != DType::mxfp8)
    return problem("--fp8-attention", "is forecast with --precision mxfp8 alone");
  if (!asked || bytes_per_element(*asked) >= 2) return {};
  for (const NodeGroup& g : cluster.groups) {
    if (!g.gpu.rate(*asked))
      return problem("--precision",
                     sentence(g.gpu.name, " has no ", name(*asked), " matrix units"));
    if (r.asked.fp8_attention && !attends_in_8_bits(g.gpu))
      return problem("--fp8-attention",
                     sentence("Transformer Engine has no such attention on ", g.gpu.name));
  }
  return {};
}

}  // namespace shardwise
