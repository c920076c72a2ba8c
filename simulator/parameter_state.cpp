#include "simulator/parameter_state.hpp"

#include <algorithm>

#include "simulator/tied_tables.hpp"

namespace shardwise {
namespace {

// Rounded up; without std::ceil, which is a call where the processor may be an old one.
std::int64_t bytes(double elements, double each, int ranks) {
  if (each == 0) return 0;
  const double share = ranks == 1 ? elements * each : elements * each / ranks;
  const auto whole = static_cast<std::int64_t>(share);
  return whole + static_cast<std::int64_t>(static_cast<double>(whole) < share);
}

struct Shards {
  int weights = 1, gradients = 1, optimizer = 1;
};

// How whole layers are put together from shards.
struct Gathering {
  double widest = 2;           // bytes of a gathered weight at most
  bool from_one_rank = false;  // into tensors of its own where there is one rank only
  bool constants = false;  // with those of quantised weights (FrameworkSharding::moves_constants)
};

Shards shards(const Workload& w, const ParallelPlan& plan, int ranks) {
  Shards s;
  if (plan.zero_stage >= 1) s.optimizer = ranks;
  if (plan.zero_stage >= 2) s.gradients = ranks;
  if (shards_weights(w.framework, plan)) s.weights = ranks;
  return s;
}

// What weights are to a step: sharded as the plan says or whole on every rank, or an adapter's.
enum class Part { weights, whole_weights, adapter };

void add(LayerState& state, std::int64_t elements, const StoredParameter& p, const Shards& s,
         Part part, const Gathering& gathering) {
  if (elements == 0) return;
  const double n = static_cast<double>(elements);
  const bool whole_stays = part == Part::whole_weights;
  const int over = whole_stays ? 1 : s.weights;
  (part == Part::adapter ? state.adapters : state.weights) += bytes(n, p.weight, over);
  state.quantization += bytes(n, p.quantization_constants, gathering.constants ? over : 1);
  state.gradients += bytes(n, p.gradient, s.gradients);
  state.master += bytes(n, p.master, s.optimizer);
  (p.paged ? state.paged : state.optimizer) += bytes(n, p.optimizer, s.optimizer);
  state.unsharded_gradients += bytes(n, p.raw_gradient, 1);
  if (p.gradient > 0) state.stepped_elements += bytes(n, 1, s.optimizer);
  if ((s.weights > 1 || gathering.from_one_rank) && !whole_stays) {
    // Gathered in 16 bits or as stored, or as the packed codes that a quantised weight is.
    const double each = p.quantization_constants == 0 ? std::min(p.weight, gathering.widest)
                        : gathering.constants         ? p.weight + p.quantization_constants
                                                      : p.weight;
    state.gathered += bytes(n, each, 1);
  }
}

double optimizer_bytes(const Workload& w, double stepped_weight) {
  return state_bytes_per_parameter(*w.optimizer, stepped_weight);
}

}  // namespace

LayerState& LayerState::operator+=(const LayerState& o) {
  weights += o.weights;
  quantization += o.quantization;
  narrow_copies += o.narrow_copies;
  adapters += o.adapters;
  gradients += o.gradients;
  master += o.master;
  optimizer += o.optimizer;
  paged += o.paged;
  gathered += o.gathered;
  gathered_experts += o.gathered_experts;
  unsharded_gradients += o.unsharded_gradients;
  stepped_elements += o.stepped_elements;
  return *this;
}

LayerState& LayerState::operator*=(std::int64_t layers) {
  for (std::int64_t* part :
       {&weights, &quantization, &narrow_copies, &adapters, &gradients, &master, &optimizer, &paged,
        &gathered, &gathered_experts, &unsharded_gradients, &stepped_elements})
    *part *= layers;
  return *this;
}

int expert_shard_ranks(const ParallelPlan& plan) {
  const int ranks = plan.shard_ranks() * plan.tensor;
  return std::max(1, ranks / (plan.expert * plan.expert_tensor));
}

StoredParameter stored_base(const Workload& w, bool trainable, bool quantizable) {
  StoredParameter p;
  const bool wide_arithmetic = w.activation_dtype() == DType::fp32;
  if (!trainable) {
    const bool quantized = w.freezes_quantized();
    p.weight = wide_arithmetic ? 4 : bytes_per_element(w.framework.formats.frozen_dtype);
    if (quantized && quantizable) {
      const QuantizationRow& stored = row(w.adapter.base);
      const FrameworkNarrow& narrow = w.framework.narrow;
      const bool twice = w.adapter.base == Quantization::fp8 && w.compute == DType::fp8 &&
                         narrow.keeps_frozen_twice && narrow.weights_twice;
      p.weight = (twice ? 2 : 1) * stored.bytes_per_code;
      p.quantization_constants = stored.bytes_per_weight - stored.bytes_per_code;
    } else if (quantized && w.framework.quantized.upcasts_unquantized &&
               !w.framework.quantized.recasts_tables) {
      p.weight = 4;
    }
    return p;
  }
  switch (wide_arithmetic ? WeightRecipe::fp32 : w.weights()) {
    case WeightRecipe::fp32:
      p = {4, 4, 0, 0, 0, 4};
      break;
    case WeightRecipe::fp32_with_half_compute:
      p = {4, 4, 0, 0, 0, w.framework.sharding.gathers_as_stored ? 4.0 : 2.0};
      break;
    case WeightRecipe::half_with_master:
      p = {2, bytes_per_element(w.framework.gradients.dtype), 4, 0, 0, 2};
      break;
    case WeightRecipe::pure_half:
      p = {2, bytes_per_element(w.framework.gradients.dtype), 0, 0, 0, 2};
      break;
  }
  p.whole_gradient = p.raw_gradient;
  if (w.framework.gradients.accumulates_in_reduce_dtype && !wide_arithmetic)
    p.whole_gradient =
        std::max(p.raw_gradient, bytes_per_element(w.framework.gradients.reduce_dtype));
  // Of tables, norms and routers, which are no matrices of a block (`quantizable` says so too).
  const bool stepped_by_adamw = w.optimizer->orthogonalizes && !quantizable;
  const OptimizerRow& o = stepped_by_adamw ? *optimizer_named("adamw") : *w.optimizer;
  p.optimizer = state_bytes_per_parameter(o, std::max(p.weight, p.master));
  const bool narrow = o.format == StateFormat::bf16 && w.compute == DType::bf16;
  if (w.framework.update.keeps_remainders && narrow && p.master > 0) p.master -= p.weight;
  p.paged = w.optimizer->paged;
  return p;
}

StoredParameter stored_table(const Workload& w, bool trainable) {
  StoredParameter p = stored_base(w, trainable, false);
  const double narrow = bytes_per_element(w.activation_dtype());
  if (p.weight <= narrow) return p;
  p.weight = narrow;
  if (!trainable) return p;
  p.gradient = p.raw_gradient = p.whole_gradient = narrow;
  p.master = 0;
  const OptimizerRow& o = w.optimizer->orthogonalizes ? *optimizer_named("adamw") : *w.optimizer;
  p.optimizer = state_bytes_per_parameter(o, narrow);
  return p;
}

// FSDP2 gathers a unit again when its output's gradient is there, and the one before the last
// whether its output has one or not (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py,
// _backward_prefetch). DeepSpeed lets all weights go that are not wanted again within so many
// elements, and gathers them for modules whose output has a gradient (@edaa722126 runtime/zero/
// partitioned_param_coordinator.py, __params_to_release; parameter_offload.py), which a frozen
// embedding's has for reentrant checkpoints (transformers, enable_input_require_grads); the whole
// model but the table lies between its two uses twice. A table that is a head too is used at both
// ends.
EmbeddingGathers embedding_gathers(const Workload& w, const ParallelPlan& plan) {
  if (!reshards_weights(w.framework, plan) || shares_table(w)) return {};
  if (w.framework.sharding.parameters.embedding_is_unit) return {true, true};
  if (w.framework.sharding.fetch_reuse_elements == 0) return {};
  const ParameterCount count = parameter_count(w.model);
  const bool far = 2 * (count.total - count.embedding) >= w.framework.sharding.fetch_reuse_elements;
  const bool wanted =
      w.trains_embedding() || (w.framework.recompute.reentrant && plan.recompute != "none");
  return {far || !wanted, far && wanted};
}

bool leaves_experts_whole(const Workload& w) {
  return w.freezes_quantized() && is_bitsandbytes(w.adapter.base) && w.model.moe &&
         !w.framework.quantized.experts;
}

double narrow_weight_bytes(const Workload& w) {
  const DType narrow = w.compute;
  if (narrow != DType::fp8 && narrow != DType::mxfp8 && narrow != DType::nvfp4) return 0;
  const bool twice = narrow != DType::fp8 || w.framework.narrow.weights_twice;
  return (twice ? 2 : 1) * bytes_per_element(narrow);
}

namespace {

bool stores_narrow(const Workload& w) {
  return w.framework.narrow.weights == NarrowWeights::stored && w.compute != DType::nvfp4;
}

// 8 bits in place of 16, where products read 8.
double stored_weight(const Workload& w, double wide) {
  const double narrow = narrow_weight_bytes(w);
  return stores_narrow(w) && wide == 2 && narrow > 0 ? narrow : wide;
}

}  // namespace

double stored_expert_weight(const Workload& w, const ParallelPlan& plan, bool trainable) {
  const bool passed_over = !trainable && leaves_experts_whole(w);
  if (passed_over && w.framework.quantized.widens_whole_experts && plan.zero_stage < 2) return 4;
  return stored_weight(w, stored_base(w, trainable, !passed_over).weight);
}

// Moments of r x max(m, n), each as wide as others are, and the projection of r x min(m, n) in the
// gradient's own format (galore_projector.py, random_projector.py); factors are fp32 vectors.
StoredParameter stored_matrices(const Workload& w, bool trainable, std::int64_t elements,
                                const MatrixSides& sides, bool experts) {
  const bool passed_over = experts && !trainable && leaves_experts_whole(w);
  StoredParameter p = stored_base(w, trainable, !passed_over);
  const OptimizerRow& o = *w.optimizer;
  const double wide = p.weight;
  p.weight = stored_weight(w, wide);
  if (!trainable || elements == 0) return p;
  const double n = static_cast<double>(elements), longer = static_cast<double>(sides.longer),
               shorter = static_cast<double>(sides.shorter);
  if (o.factored_second) p.optimizer += 4 * (longer + shorter) / n;
  if (o.rank > 0)
    p.optimizer = std::min(
        p.optimizer, o.rank * (p.optimizer * longer + std::max(wide, p.master) * shorter) / n);
  return p;
}

StoredParameter stored_adapter(const Workload& w) {
  StoredParameter p;
  p.weight = bytes_per_element(w.framework.adapters.dtype);
  p.gradient = p.raw_gradient = p.whole_gradient = p.weight;
  if (p.weight < 4 && w.framework.formats.finetune_weights == WeightRecipe::half_with_master) {
    p.gradient = bytes_per_element(w.framework.gradients.dtype);
    p.master = 4;
  }
  p.optimizer = optimizer_bytes(w, std::max(p.weight, p.master));
  p.paged = w.optimizer->paged;
  return p;
}

StoredParameter stored_stepped(const Workload& w) {
  return w.trains_base() ? stored_base(w, true, true) : stored_adapter(w);
}

// Megatron-LM @d98e8a64dd megatron/core/distributed/param_and_grad_buffer.py: 8-bit parameters have
// a buffer of uint8 that is gathered (:923); MXFP8 borrows the gradients' as bf16 (:1159-1178) and
// casts what arrived (:301-325, _post_param_sync).
double gathered_matrix_weight(const Workload& w) {
  const double wide = stored_stepped(w).weight;
  const bool narrow = w.trains_base() && stores_narrow(w) && w.compute == DType::fp8;
  return narrow && wide == 2 ? bytes_per_element(w.compute) : wide;
}

// Under autocast in fp16 the loss is scaled, and fp32 gradients are divided by that in a pass of
// their own, which looks for infinity; before a fused optimizer, which divides on the way, the same
// kernel divides by one (PyTorch 2.15 torch/amp/grad_scaler.py: _unscale_grads_,
// _check_inf_per_device).
bool unscales_gradients(const Workload& w, double gradient) {
  return w.framework.formats.autocast && w.compute == DType::fp16 && gradient == 4;
}

namespace {

// transformers' Adafactor steps one matrix after another by operators, and is not fused where a
// Trainer's AdamW is (5.23.0 optimization.py, Adafactor.step, without a learning rate of its own;
// counted by Count of calibrate/count_layer_operators.py, torch 2.15). In fp32 24 kernels: norms of
// weight and update 4 bytes each, the square, what eps is added to and two means 8 each, rows times
// columns 4, times the gradient 12, two scalings and the negative 8 each, added 12. Of 16 bits
// gradient and weight are copied first and the weight back, 6 bytes each. Factors are next to
// nothing.
OptimizerPass adafactor_pass(const StoredParameter& p, double stepped) {
  constexpr double wide = 84, copied = 6;
  const int copies = (p.gradient == 2 ? 1 : 0) + (stepped == 2 ? 2 : 0);
  return {wide + copied * copies, p.gradient + stepped, 0, 24 + copies};
}

bool steps_by_adafactor_of_transformers(const Workload& w) {
  return w.optimizer->factored_second && !w.optimizer->in_backward &&
         w.framework.layers.runs_transformers;
}

}  // namespace

// Gradients read (and, where clipped, read and rewritten), states and weights read and written, the
// 16-bit copy written.
OptimizerPass optimizer_pass(const Workload& w) {
  const StoredParameter p = stored_stepped(w);
  const double stepped = std::max(p.weight, p.master);
  // Of a projected gradient the states are few; the gradient is read again to project it, and an
  // update of its size written and read.
  const double states = w.optimizer->rank > 0 ? 3 * p.gradient : 2 * p.optimizer;
  // 16-bit gradients of a partition are joined and widened before the step, and what was stepped is
  // read again to be rounded into the weights (DeepSpeed runtime/zero/stage_1_and_2.py, step;
  // stage3.py, _prepare_fp32_grad_for_sub_group).
  const bool widened = w.framework.update.fp32_gradient_at_step && p.gradient > 0 && p.gradient < 4;
  const double read = widened ? 4 : p.gradient;
  double each = read + 2 * stepped + states + (p.master > 0 ? p.weight : 0);
  const WrittenOptimizer* written = w.written_optimizer();
  if (written != nullptr) each = stepped * written->values;
  if (written == nullptr && !w.framework.update.fused) each *= w.optimizer->passes;
  const bool factored = steps_by_adafactor_of_transformers(w);
  const OptimizerPass adafactor = adafactor_pass(p, stepped);
  if (factored) each = adafactor.bytes_each + (p.master > 0 ? p.weight : 0);
  if (widened) each += 3 * p.gradient + 4 + p.master;
  if (w.framework.update.clips_gradients) each += p.gradient + 2 * read;
  if (unscales_gradients(w, p.gradient)) each += 2 * p.gradient;
  // Tensor by tensor each kernel reads what the one before wrote; over lists it comes too late.
  if (written != nullptr) return {each, p.gradient + stepped + p.optimizer, 0, written->kernels};
  if (factored) return {each, adafactor.cold_each, 0, adafactor.kernels_of_each};
  return {each, each, w.framework.update.fused ? 20 : 200, 0};
}

// get_grad_norm_direct copies each to fp64, 8 bytes written and read; its norm is a kernel more.
// _has_inf_or_nan copies to fp32 (6), looks for NaN (4 and 1) and infinity (abs 8, eq 5), joins
// both (3), copies that to fp32 (5) and takes the maximum (4), which is added up: eight kernels
// (deepspeedai/DeepSpeed 0.15.4 and 0.19.4 on PyPI, runtime/zero/stage_1_and_2.py, stage3.py).
PartitionReads partition_reads(const Workload& w, const ParallelPlan& plan) {
  const double gradient = stored_stepped(w).gradient;
  if (!w.framework.update.norm_in_double || plan.zero_stage < 1 || gradient == 0) return {};
  const bool checked = w.framework.update.checks_partition && plan.zero_stage < 3;
  return {16 + (checked ? gradient + 34 : 0), checked ? 10 : 2, checked, gradient < 4};
}

Bytes zeroed_gradients(const Workload& w, const LayerState& state) {
  const bool stays = w.framework.gradients.life == GradientLife::persistent;
  return Bytes(stays ? state.gradients : 0);
}

Bytes checked_gradients(const Workload& w, const ParallelPlan& plan, const LayerState& state) {
  return Bytes(w.framework.update.checks_gradients && plan.zero_stage < 2 ? state.gradients : 0);
}

// PyTorch has no foreach kernels for CPU tensors (torch/utils/_foreach_utils.py,
// _get_foreach_kernels_supported_devices): its loop over them reads and writes 20 values for each
// parameter (torch/optim/adam.py, _single_tensor_adam: mul_ 2, lerp_ 3, mul_ 2, addcmul_ 3, sqrt 2,
// div 2, add_ 2, addcdiv_ 4) where one pass has 7. DeepSpeed divides every gradient by scale and
// clip before its pass (runtime/zero/stage3.py, unscale_and_clip_grads: mul_).
double host_optimizer_bytes(const Workload& w) {
  const StoredParameter p = stored_stepped(w);
  const double stepped = std::max(p.weight, p.master);
  const double one_pass = stepped + 2 * stepped + 2 * p.optimizer;
  const double copy = p.master > 0 ? p.weight : 0;
  if (w.framework.update.cpu_adam) return one_pass + copy + 2 * stepped;
  const double passes = w.framework.update.fused ? 1 : 20.0 / 7;
  return passes * one_pass + copy + (w.framework.update.clips_gradients ? 3 * stepped : 0);
}

// DeepSpeed casts the rank's partition on the GPU, at stage 1 as at stage 2, and copies that into
// an fp32 gradient on the host (@edaa722126 runtime/zero/stage_1_and_2.py:1590-1604, 1750-1754;
// stage3.py:1405-1407). PyTorch's gradients have the format of what they step.
std::int64_t gradients_on_host(const Workload& w, const LayerState& layer) {
  const StoredParameter p = w.trains_base() ? stored_base(w, true, true) : stored_adapter(w);
  return bytes(static_cast<double>(layer.stepped_elements), std::max(p.weight, p.master), 1);
}

namespace {

// The frozen copy that preference training compares with, sharded as the trained weights are.
void add_reference(LayerState& state, const Workload& w, const LayerParameters& p,
                   const Shards& dense, const Shards& expert) {
  const double each = bytes_per_element(w.framework.formats.frozen_dtype);
  const double buffer = w.framework.gradients.reference_has_gradients
                            ? bytes_per_element(w.framework.gradients.dtype)
                            : 0;
  const auto whole = static_cast<double>(p.linear + p.other + p.table),
             routed = static_cast<double>(p.expert);
  state.weights += bytes(whole, each, dense.weights) + bytes(routed, each, expert.weights);
  state.weights += bytes(whole, buffer, dense.gradients) + bytes(routed, buffer, expert.gradients);
}

// A copy of every weight for as long as the run lasts; not known where weights are sharded.
bool keeps_narrow(const Workload& w) {
  const NarrowWeights where = w.framework.narrow.weights;
  if (w.freezes_quantized() && is_operand(w.adapter.base)) return false;
  return where == NarrowWeights::beside || (where == NarrowWeights::stored && !stores_narrow(w));
}

}  // namespace

LayerState layer_state(const Workload& w, const ParallelPlan& plan,
                       const LayerParameters& parameters, bool trainable) {
  LayerState state;
  const Shards dense = shards(w, plan, plan.shard_ranks());
  const Shards expert = shards(w, plan, std::min(expert_shard_ranks(plan), plan.shard_ranks()));
  const bool quantized = !trainable && w.freezes_quantized();
  const bool whole_stays = quantized && !w.framework.sharding.quantized;
  const bool wrapped = w.framework.sharding.wraps_one_rank && plan.shard_ranks() == 1;
  const Gathering gathering{
      w.framework.sharding.gathers_as_stored ? 4.0 : 2.0,
      wrapped || (plan.zero_stage >= 3 && w.framework.update.clones_partition),
      w.framework.sharding.moves_constants};
  // Shards of linears that are cast before they travel; experts and tables are not.
  Gathering linears = gathering;
  if (w.compute == DType::fp8 && !w.framework.narrow.scales_rows &&
      w.framework.narrow.weight_cast == WeightCast::gathered)
    linears.widest = 1;
  const auto add_matrices = [&](std::int64_t elements, const MatrixSides& sides,
                                const Shards& share, bool experts) {
    if (elements == 0) return;
    StoredParameter p = stored_matrices(w, trainable, elements, sides, experts);
    if (experts) p.weight = stored_expert_weight(w, plan, trainable);
    const double narrow = quantized ? 0 : narrow_weight_bytes(w);
    if (narrow > 0 && keeps_narrow(w) && share.weights == 1)
      state.narrow_copies += bytes(static_cast<double>(elements), narrow, 1);
    const bool whole = whole_stays && !(experts && leaves_experts_whole(w));
    add(state, elements, p, share, whole ? Part::whole_weights : Part::weights,
        experts ? gathering : linears);
  };
  add_matrices(parameters.linear, parameters.linear_sides, dense, false);
  if (parameters.other > 0)
    add(state, parameters.other, stored_base(w, trainable, false), dense, Part::weights, gathering);
  if (parameters.table > 0)
    add(state, parameters.table, stored_table(w, trainable), dense, Part::weights, gathering);
  if (trainable && row(w.method).adapter && w.framework.adapters.keeps_replaced_modules) {
    // One table stays beside both copies of a tied one; beside a single copy the other end has it.
    // Stages have one each.
    const double shared = w.trains_embedding() && w.trains_head() ? 0.5 : 0;
    const bool one_table = replaces_tied_table(w) && plan.pipeline == 1;
    const double tables = static_cast<double>(parameters.table) * (one_table ? shared : 1);
    state.weights += bytes(static_cast<double>(parameters.other) + tables,
                           bytes_per_element(w.framework.formats.frozen_dtype), dense.weights);
  }
  add(state, parameters.adapter, stored_adapter(w), dense, Part::adapter, gathering);
  const std::int64_t dense_gathered = state.gathered;
  add_matrices(parameters.expert, parameters.expert_sides, expert, true);
  add(state, parameters.expert_adapter, stored_adapter(w), expert, Part::adapter, gathering);
  state.gathered_experts = state.gathered - dense_gathered;
  if (w.copies_reference()) add_reference(state, w, parameters, dense, expert);
  return state;
}

}  // namespace shardwise
