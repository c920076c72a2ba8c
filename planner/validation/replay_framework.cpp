#include <algorithm>
#include <array>
#include <string>

#include "catalog/denial.hpp"
#include "catalog/find.hpp"
#include "catalog/names.hpp"
#include "catalog/require.hpp"
#include "catalog/text_match.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/validation/replay_parts.hpp"

namespace shardwise {
namespace {

// A row whose text is the whole of `text`, whatever the case.
template <class Rows>
auto exact_match(const Rows& rows, std::string_view text) -> const typename Rows::value_type* {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
    return row.text.size() == text.size() && holds_words(text, row.text);
  });
  return found == rows.end() ? nullptr : &*found;
}

// The row that is spelled so, else of those that the text holds and does not deny the narrowest,
// for products are made in it: "fp8 rowwise over bf16" is fp8, "bf16, no fp8" is bf16.
const PrecisionReading* precision_meant(const Reading& reading, std::string_view text) {
  const PrecisionReading* best = exact_match(reading.precisions, text);
  if (best == nullptr) best = exact_match(reading.precisions, hyphened(text));
  if (best != nullptr) return best;
  for (const PrecisionReading& row : reading.precisions) {
    if (said_of(text, row.text) != Said::affirmed) continue;
    const double bytes = bytes_per_element(row.compute);
    const double least = best != nullptr ? bytes_per_element(best->compute) : bytes + 1;
    if (bytes < least || (bytes == least && row.text.size() > best->text.size())) best = &row;
  }
  return best;
}

// fp32 weights computed in 16 bits are what torch.autocast makes of them; 16-bit weights need none.
void set_weights(WeightRecipe weights, Framework& f) {
  f.formats.pretrain_weights = f.formats.finetune_weights = weights;
  if (weights == WeightRecipe::pure_half) {
    f.formats.autocast = f.formats.autocast_caches_weights = false;
    f.gradients.dtype = DType::bf16;
    if (f.formats.frozen_dtype == DType::fp32) f.formats.frozen_dtype = DType::bf16;
  }
  if (weights != WeightRecipe::fp32_with_half_compute) return;
  f.formats.frozen_dtype = f.adapters.dtype = f.gradients.dtype = DType::fp32;
  f.formats.autocast = f.formats.autocast_caches_weights = true;
}

// Autograd's gradients, as wide as the weights, which DDP reduces in buckets of their own format
// (PyTorch torch/csrc/distributed/c10d/reducer.cpp, initialize_buckets). Adapters have one of their
// own, and so have 16-bit weights whose gradients a loop adds up in fp32.
bool reduces_as_made(const Framework& f, Method method, int zero_stage) {
  const bool halves = f.formats.pretrain_weights == WeightRecipe::pure_half;
  const bool as_made = f.formats.pretrain_weights == WeightRecipe::fp32_with_half_compute ||
                       (halves && bytes_per_element(f.gradients.dtype) == 2);
  return zero_stage == 0 && !shardwise::row(method).adapter && as_made &&
         f.gradients.reduce_dtype == f.gradients.dtype;
}

// Where 16-bit weights have fp32 masters, fp32 weights in a record are these: the whole model is
// cast (NVIDIA/Megatron-LM @d98e8a64dd megatron/training/training.py:2467-2470, Float16Module).
bool names_masters(WeightRecipe weights, const Framework& f) {
  return weights == WeightRecipe::fp32_with_half_compute &&
         f.formats.pretrain_weights == WeightRecipe::half_with_master;
}

// The Trainer checkpoints around FSDP's units; FSDP's plugin wraps what is in them, and its
// checkpoints are not reentrant (huggingface/accelerate 0.34.2 and 1.12.0 (PyPI)
// src/accelerate/accelerator.py, after FSDP(model): CheckpointImpl.NO_REENTRANT).
void checkpoint_in_units(Framework& f) {
  f.recompute.stops_early = true;
  f.recompute.reentrant = f.sharding.checkpoints_gather_again =
      f.sharding.frozen_units_keep_inputs = false;
}

// DeepCompile takes the hooks of modules and of gradients off: gathers and reductions are operators
// of the compiled graph (deepspeedai/DeepSpeed v0.18.0 deepspeed/compile/init_z3.py:38-42 and
// init_z1.py:22-24, of stages 1 and 2).
void compile_sharding(Framework& f) {
  f.host.us_per_sharded_module = f.host.us_per_reduction = 0;
  f.host.us_per_gradient = f.host.us_per_gradient_stage_2 = 0;
}

bool gpu_computes(const Gpu& gpu, DType format) { return gpu.rate(format).has_value(); }

// A compiler traces the kernels of a plugin too, and fuses what is between them.
void apply(const PluginReading& plugin, bool compiled, Framework& f) {
  if (plugin.loss) f.loss.kind = *plugin.loss;
  if (plugin.fuses_loss) f.loss.kind = f.loss.fused;
  if (plugin.kernels && !compiled) f.layers.kernels = *plugin.kernels;
  if (plugin.upcasts_unquantized) f.quantized.upcasts_unquantized = *plugin.upcasts_unquantized;
  if (plugin.masks_padding) f.attention.masks_padding = *plugin.masks_padding;
  if (plugin.adds_head_slices_apart) f.loss.adds_head_slices_apart = *plugin.adds_head_slices_apart;
  if (plugin.overwrites_gate_and_up)
    f.layers.overwrites_gate_and_up = *plugin.overwrites_gate_and_up;
  if (plugin.eager_activation) f.layers.eager_activation = *plugin.eager_activation;
}

void apply_plugins(const ReplayContext& c, Framework& f) {
  const RunTraining& t = c.run.training;
  // Liger's kernels bring a loss of their own, unless a plugin says another.
  std::vector<std::string> named;
  const auto liger = stated(c, &PhraseReading::liger_kernel);
  if (liger.value_or(t.liger_kernel.value_or(false))) named.emplace_back("liger");
  named.insert(named.end(), t.plugins.begin(), t.plugins.end());
  for (const std::string& name : named)
    for (const PluginReading& row : c.reading.plugins) {
      const auto same = [](char a, char b) { return lower_ascii(a) == lower_ascii(b); };
      const auto at = std::search(name.begin(), name.end(), row.text.begin(), row.text.end(), same);
      if (at != name.end()) apply(row, f.layers.kernels == KernelStyle::compiled, f);
    }
}

}  // namespace

namespace {

// A rank or targets are those of adapters, unless they are spelled as nothing.
bool states_adapters(const RunTraining& t) {
  constexpr std::array<std::string_view, 7> nothing{"", "none", "null", "false", "no", "off", "0"};
  const std::string targets = lowered(trimmed(t.lora_targets.value_or("")));
  return t.lora_rank || std::find(nothing.begin(), nothing.end(), targets) == nothing.end();
}

// Adapters are LoRA's, and what pretrains and has none has pretrained.
std::string implied_method(const ReplayContext& c) {
  const RunTraining& t = c.run.training;
  if (states_adapters(t)) return "lora";
  if (!t.framework) return "";
  const Framework* row =
      framework_meant(c.catalog.frameworks, *t.framework, t.framework_note.value_or(""));
  if (row == nullptr || row->supports.methods.empty()) return "";
  const bool adapts = std::any_of(row->supports.methods.begin(), row->supports.methods.end(),
                                  [](Method m) { return shardwise::row(m).adapter; });
  return !adapts && row->runs(Method::pretrain) ? "pretrain" : "";
}

}  // namespace

Part<const MethodReading*> replay_method(const ReplayContext& c, Notes& notes) {
  std::string text = c.run.training.method;
  if (text.empty()) {
    text = implied_method(c);
    if (text.empty()) return Skipped{"method not stated", ""};
    notes.push_back("method not stated: " + text + ", by what else is");
  }
  // Fine-tuning says what is learned from, not what is trained.
  constexpr std::array<std::string_view, 3> any_tuning{"sft", "finetune", "finetuning"};
  const auto is_told = [&](std::string_view name) { return same_name(text, name); };
  if (std::any_of(any_tuning.begin(), any_tuning.end(), is_told) &&
      states_adapters(c.run.training)) {
    notes.push_back("method \"" + text + "\" with a rank or targets of LoRA: lora");
    text = "lora";
  }
  const auto& rows = c.reading.methods;
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const MethodReading& r) { return is_told(r.text); });
  if (row == rows.end()) return Skipped{"method is not one of ours", text};
  return &*row;
}

const Framework& replay_row(const ReplayContext& c, Method method, Notes& notes) {
  const RunTraining& t = c.run.training;
  const auto& rows = c.catalog.frameworks;
  const Framework* named =
      t.framework ? framework_meant(rows, *t.framework, t.framework_note.value_or("")) : nullptr;
  for (const PhraseReading* phrase : c.phrases) {
    if (!phrase->framework) continue;
    const auto row = find_framework(c.catalog, *phrase->framework);
    // Documents of one name lie in many repositories: theirs is a release of what is named.
    const bool release = row && named != nullptr && (*row)->refines == named->id;
    if (row && (release || phrase->where != PhraseReading::Where::script)) return **row;
  }
  if (named != nullptr) return *named;
  const std::string& usual =
      method == Method::pretrain ? c.reading.pretrain_framework : c.reading.finetune_framework;
  const UnsupportedFramework* known =
      t.framework ? unsupported_row(c.reading.unsupported, *t.framework) : nullptr;
  auto row = find_framework(c.catalog, known != nullptr ? known->nearest : usual);
  if (!row || !(*row)->runs(method)) row = find_framework(c.catalog, usual);
  require(static_cast<bool>(row), "the framework for runs that name none is catalogued");
  notes.push_back("framework \"" + t.framework.value_or("not stated") + "\": behaves like " +
                  (*row)->id);
  return **row;
}

DType replay_compute(const ReplayContext& c, const Framework& row, const Gpu& gpu, Notes& notes) {
  const RunTraining& t = c.run.training;
  DType compute = row.defaults.compute;
  const auto key = t.precision ? t.precision : t.compute_dtype;
  const auto text = key ? key : stated(c, &PhraseReading::precision);
  if (!text)
    notes.push_back("number format not stated: " + std::string(name(compute)));
  else if (const PrecisionReading* reading = precision_meant(c.reading, *text)) {
    compute = reading->compute;
    if (reading->text.size() != text->size())
      notes.push_back("number format \"" + *text + "\" is read as " + reading->text);
  } else
    notes.push_back("number format \"" + *text +
                    "\" is not understood: " + std::string(name(compute)));
  for (const FormatFallback& fallback : c.reading.fallbacks) {
    if (fallback.format != compute || gpu_computes(gpu, compute)) continue;
    if (fallback.unstated && text) continue;
    notes.push_back(gpu.name + " has no " + std::string(name(compute)) + ": computed in " +
                    std::string(name(fallback.instead)));
    compute = fallback.instead;
  }
  return compute;
}

DType unsharded_compute(const ReplayContext& c, const Framework& row, const ParallelPlan& plan,
                        DType compute, Notes& notes) {
  const auto format = left_unlowered(row, compute, plan);
  if (!format || c.run.training.compute_dtype) return compute;
  const auto& text = c.run.training.precision;
  const PrecisionReading* reading = text ? precision_meant(c.reading, *text) : nullptr;
  if (reading != nullptr && reading->weights == WeightRecipe::pure_half) return compute;
  notes.push_back(told_unlowered(row, *format));
  return *format;
}

namespace {

// FSDP where the plan says so, and how many units it makes of a block.
void take_sharding(const ReplayContext& c, Framework& f) {
  if (c.run.plan.fsdp_version) {  // limits of DeepSpeed's
    f.sharding.parameters.live_parameters.reset();
    f.sharding.fetch_reuse_elements = 0;
    f.sharding.frozen_units_keep_inputs =
        *c.run.plan.fsdp_version == 1 &&
        (f.sharding.frozen_units_keep_inputs || f.sharding.fsdp1_keeps_inputs);
  }
  if (const auto units = c.run.plan.fsdp_units_per_block)
    f.sharding.parameters.units_per_block = *units;
  if (c.run.plan.fsdp_version == 2) f.sharding.parameters.steps_whole_units = false;
}

// When gradients are reduced, and so many at once.
void take_reductions(const ReplayContext& c, Framework& f) {
  if (const auto overlaps = stated(c, &PhraseReading::overlaps_reduction))
    f.gradients.overlap_reduce = f.gradients.overlap_reduce_at_stage_3 = *overlaps;
  if (const auto overlaps = stated(c, &PhraseReading::overlaps_below_stage_3)) {
    f.gradients.overlap_reduce = *overlaps;
    f.gradients.overlap_reduce_at_stage_2.reset();
  }
  if (const auto elements = stated(c, &PhraseReading::bucket_elements)) {
    f.gradients.bucket =
        Bytes(static_cast<std::int64_t>(*elements * bytes_per_element(f.gradients.reduce_dtype)));
    f.gradients.bucket_stage_2.reset();
  }
}

}  // namespace

Framework replay_framework(const ReplayContext& c, const Framework& row, Method method,
                           DType compute, int zero_stage) {
  const RunTraining& t = c.run.training;
  Framework f = row;
  if (zero_stage > 0 && !row.with_zero.empty())
    if (const auto other = find_framework(c.catalog, row.with_zero)) f = **other;
  take_stated(c, &PhraseReading::attention, f.attention.kernel);
  take_stated(c, &PhraseReading::expandable_segments, f.process.expandable_segments);
  take_stated(c, &PhraseReading::reduces_every_microbatch, f.gradients.reduces_every_microbatch);
  take_stated(c, &PhraseReading::whole_tables, f.parallel.whole_tables);
  if (stated(c, &PhraseReading::steps_in_backward).value_or(false))
    f.gradients.life = GradientLife::in_backward;
  take_sharding(c, f);
  const PrecisionReading* reading =
      t.precision ? precision_meant(c.reading, *t.precision) : nullptr;
  const bool said = reading != nullptr && reading->weights && !names_masters(*reading->weights, f);
  if (said)
    f.formats.finetune_weights = f.formats.pretrain_weights;  // not how the framework loads them
  f = resolved_for(f, method, compute);
  if (reading != nullptr && reading->frozen) {
    f.formats.frozen_dtype = *reading->frozen;
    f.formats.autocast = f.formats.autocast_caches_weights = true;
  }
  if (said) {
    const bool as_made = reduces_as_made(f, method, zero_stage);
    set_weights(*reading->weights, f);
    if (as_made) f.gradients.reduce_dtype = f.gradients.dtype;
  }
  if (t.grad_dtype)
    if (const auto* told = precision_meant(c.reading, *t.grad_dtype))
      f.gradients.dtype = told->compute;
  if (t.reduce_dtype)
    if (const auto* told = precision_meant(c.reading, *t.reduce_dtype))
      f.gradients.reduce_dtype = told->compute;
  if (t.fused_optimizer) f.update.fused = *t.fused_optimizer;
  if (stated(c, &PhraseReading::steps_one_by_one).value_or(false))
    f.update.fused = f.update.foreach = false;
  if (t.flash_attention && !*t.flash_attention) f.attention.kernel = AttentionKernel::eager;
  if (t.flash_attention.value_or(false) && f.attention.kernel == AttentionKernel::eager)
    f.attention.kernel = AttentionKernel::flash;  // else the framework's own fused kernel
  if (t.packing.value_or(false)) f.defaults.lengths_vary = false;
  if (t.compile.value_or(false) && (f.adapters.compiled || !shardwise::row(method).adapter))
    f.layers.kernels = KernelStyle::compiled;
  else if (t.compile && f.layers.kernels == KernelStyle::compiled)
    f.layers.kernels = KernelStyle::eager;  // the row compiles, this run did not
  f.loss.compiled_alone = t.compile_loss.value_or(f.loss.compiled_alone);
  f.loss.compiled = f.loss.compiled && t.compile_loss.value_or(true);
  if (stated(c, &PhraseReading::checkpoints_in_units).value_or(false)) checkpoint_in_units(f);
  if (stated(c, &PhraseReading::compiles_sharding).value_or(false)) compile_sharding(f);
  take_stated(c, &PhraseReading::clips, f.update.clips_gradients);
  take_stated(c, &PhraseReading::checks_gradients, f.update.checks_gradients);
  take_stated(c, &PhraseReading::checks_partition, f.update.checks_partition);
  take_reductions(c, f);
  apply_plugins(c, f);
  // The record states a slice of the loss that it ran.
  if (t.loss_slice_tokens)
    (f.loss.kind == LossKind::fused_linear ? f.loss.fused_slice_tokens : f.loss.slice_tokens) =
        t.loss_slice_tokens;
  return f;
}

}  // namespace shardwise
