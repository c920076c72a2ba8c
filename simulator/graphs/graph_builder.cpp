#include "simulator/graphs/graph_builder.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "catalog/require.hpp"
#include "simulator/graphs/laid_out_results.hpp"

namespace shardwise {

bool adds_gradient(const Workload& w, const ParallelPlan& plan) {
  const Framework& f = w.framework;
  if (f.gradients.fusion || reduces_every_microbatch(f, plan)) return false;
  return plan.microbatches > 1 || f.gradients.life == GradientLife::persistent;
}

namespace {

std::int64_t bytes_of_frozen(const Workload& w) {
  return static_cast<std::int64_t>(bytes_per_element(w.framework.formats.frozen_dtype));
}

}  // namespace

GraphBuilder::GraphBuilder(const Workload& workload, const ParallelPlan& plan, bool trainable_base)
    : workload_(workload),
      plan_(plan),
      trains_base_(trainable_base),
      returns_wide_(returns_wide(workload, plan)),
      tensor_(plan.tensor),
      tokens_(plan.microbatch * workload.tokens_per_sample() / plan.context),
      sequence_tokens_(plan.sequence_parallel ? tokens_ / plan.tensor : tokens_),
      element_(workload.activation_dtype() == DType::fp32 ||
                       (returns_wide_ && !workload.framework.formats.autocast)
                   ? 4
                   : 2),
      stream_element_(widens_stream(workload, plan) ? 4 : element_),
      casts_weights_(casts_weights(workload, plan)),
      cast_from_(workload.trains_base() ? 4 : bytes_of_frozen(workload)),
      follows_input_(returns_wide_ && element_ == 4 &&
                     workload.framework.quantized.linear_follows_input) {}

TensorIndex GraphBuilder::gathered_bytes(std::int64_t bytes, MemoryCategory category) {
  const TensorIndex t = tensor_bytes("gathered", bytes, category, 0);
  graph_.tensors[static_cast<std::size_t>(t)].gathered = true;
  return t;
}

TensorIndex GraphBuilder::tensor_bytes(std::string_view name, std::int64_t bytes,
                                       MemoryCategory category, std::int64_t gradient_bytes) {
  graph_.tensors.push_back({name, bytes, category, gradient_bytes, false});
  return static_cast<TensorIndex>(graph_.tensors.size()) - 1;
}

TensorIndex GraphBuilder::tensor(std::string_view name, std::int64_t elements) {
  return tensor_bytes(name, elements * element_, MemoryCategory::temporaries, elements * element_);
}

TensorIndex GraphBuilder::stream_tensor(std::string_view name, std::int64_t elements) {
  const std::int64_t bytes = elements * stream_element_;
  return tensor_bytes(name, bytes, MemoryCategory::temporaries, bytes);
}

TensorIndex GraphBuilder::in_stream(TensorIndex t) {
  Tensor& made = graph_.tensors[static_cast<std::size_t>(t)];
  made.bytes = made.bytes / element_ * stream_element_;
  made.gradient_bytes = made.gradient_bytes / element_ * stream_element_;
  return t;
}

TensorIndex GraphBuilder::input(std::int64_t elements) {
  graph_.input = stream_tensor("input", elements);
  graph_.tensors.back().category = MemoryCategory::activations;
  return graph_.input;
}

Operator& GraphBuilder::add(Operator op) {
  graph_.operators.push_back(std::move(op));
  return graph_.operators.back();
}

LayerGraph GraphBuilder::finish(TensorIndex output) {
  graph_.output = output;
  sum_gradients();
  if (workload_.framework.layers.lays_out_results) lay_out_results(graph_);
  for (const Operator& op : graph_.operators)
    for (TensorIndex t : op.saves) {
      Tensor& saved = graph_.tensors[static_cast<std::size_t>(t)];
      if (saved.category == MemoryCategory::temporaries)
        saved.category = MemoryCategory::activations;
    }
  return std::move(graph_);
}

// Parameters in the order of their modules, as many in a message as make a bucket (DeepSpeed
// @edaa722126 runtime/zero/partitioned_param_coordinator.py, fetch_sub_module).
void GraphBuilder::count_fetches(std::int64_t elements, std::int64_t times) {
  const std::int64_t bucket = workload_.framework.sharding.fetch_elements;
  for (std::int64_t i = 0; bucket > 0 && i < times; ++i) {
    fetched_ += elements;
    if (fetched_ < bucket) continue;
    ++graph_.parameters.fetches;
    fetched_ = 0;
  }
}

void GraphBuilder::count_matrix(std::int64_t in, std::int64_t out, bool other) {
  ++graph_.parameters.modules;
  count_fetches(in * out, 1);
  (other ? graph_.parameters.other : graph_.parameters.linear) += in * out;
  if (other) return;
  graph_.parameters.largest_matrix = std::max(graph_.parameters.largest_matrix, in * out);
  graph_.parameters.linear_sides.count(in, out, 1);
}

void GraphBuilder::count_expert_modules(int modules) { graph_.parameters.modules += modules; }

void GraphBuilder::count_experts(std::int64_t experts, std::int64_t in, std::int64_t out,
                                 bool bias) {
  graph_.parameters.expert += experts * (in * out + (bias ? out : 0));
  graph_.parameters.largest_matrix = std::max(graph_.parameters.largest_matrix, in * out);
  graph_.parameters.expert_sides.count(in, out, experts);
}

TensorIndex GraphBuilder::pointwise(std::string_view name, std::vector<TensorIndex> inputs,
                                    std::vector<TensorIndex> saves, std::int64_t out_elements,
                                    double forward_bytes, double backward_bytes, int launches) {
  const TensorIndex out = tensor(name, out_elements);
  Operator op;
  op.name = name;
  op.inputs = std::move(inputs);
  op.outputs = {out};
  op.saves = std::move(saves);
  op.forward = {traffic(forward_bytes, launches)};
  op.backward = {traffic(backward_bytes, launches + 1)};
  add(std::move(op));
  return out;
}

TensorIndex GraphBuilder::cast_input(TensorIndex x, std::int64_t elements) {
  if (element_ == 4 || bytes_of(x) != 4 * elements) return x;
  const double moved = as_double(elements) * static_cast<double>(4 + element_);
  const TensorIndex cast = pointwise("cast", {x}, {}, elements, moved, moved, 1);
  MemoryWork& widened = std::get<MemoryWork>(last().backward.front());
  widened.launches = 1;
  widened.singly = elements;
  return cast;
}

// A compiler that splits a matmul hides a gather behind the products that read it and a
// reduce-scatter behind the product that it reads, not where a cast or a rescaling stands between
// them (pytorch torch/_inductor/fx_passes/micro_pipeline_tp.py @00122fb1c8): with a scale for each
// row, the sum of forward is all that is hidden.
TensorIndex GraphBuilder::gather_sequence(TensorIndex x, std::int64_t width, bool quantizable) {
  if (tensor_ == 1) return x;
  const Bytes gathered(tokens_ * width * element_);
  const Bytes sent(quantizable && gathers_narrow() ? tokens_ * width : gathered.value);
  const bool async = plan_.async_tensor && !scales_rows();
  const bool behind_weight_gradient =
      async || (trains_base_ && workload_.framework.parallel.overlap_tensor_backward);
  if (!plan_.sequence_parallel) {
    // Every TP rank holds the whole tensor; its gradient is summed before the producer's backward.
    if (!graph_.operators.empty())
      last().backward.insert(
          last().backward.begin(),
          CommWork{Collective::all_reduce, gathered, CommAxis::tensor, behind_weight_gradient});
    return x;
  }
  const bool kept = workload_.framework.parallel.keeps_gather_buffers;  // see run_buffers.cpp
  const TensorIndex out = tensor_bytes("gathered_sequence", kept ? 0 : sent.value,
                                       MemoryCategory::communication, gathered.value);
  Operator op;
  op.name = "gather_sequence";
  op.kind = OperatorKind::communication;
  op.inputs = {x};
  op.outputs = {out};
  op.forward = {CommWork{Collective::all_gather, sent, CommAxis::tensor, async}};
  op.backward = {
      CommWork{Collective::reduce_scatter, gathered, CommAxis::tensor, behind_weight_gradient}};
  copy_along_sequence(op, sent, gathered);
  add(std::move(op));
  gathered_from_.emplace_back(out, x);
  return out;
}

// Collectives join and split the first dimension. A DTensor that is cut along the sequence, the
// second, is put together by a copy after a gather and taken apart by one before a scatter, beside
// which the other one lives (PyTorch 2.4 torch/distributed/_functional_collectives.py,
// all_gather_tensor and reduce_scatter_tensor: torch.cat of torch.chunk).
void GraphBuilder::copy_along_sequence(Operator& op, Bytes forward, Bytes backward) const {
  if (!workload_.framework.parallel.dtensor || plan_.async_tensor) return;
  op.forward.push_back(traffic(2.0 * as_double(forward.value), 1));
  op.backward.push_back(traffic(2.0 * as_double(backward.value), 1));
  op.forward_temporary += forward;
  op.backward_temporary += backward;
}

// A compiler merges gathers of one tensor (pytorch @017d2eb2 torch/_functorch/compile_utils.py,
// fx_graph_cse), but the gradients that are scattered differ.
TensorIndex GraphBuilder::gathered_again(TensorIndex gathered, TensorIndex source,
                                         std::int64_t width) {
  if (tensor_ == 1 || !workload_.framework.parallel.exchanges_per_linear) return gathered;
  if (eager() || !plan_.sequence_parallel) return gather_sequence(source, width);
  const CommWork scatter{Collective::reduce_scatter, Bytes(tokens_ * width * element_),
                         CommAxis::tensor, false};
  last().backward.insert(last().backward.begin(), scatter);
  return gathered;
}

TensorIndex GraphBuilder::reduce_partial(TensorIndex x, std::int64_t width) {
  if (tensor_ == 1) return x;
  const Bytes whole(tokens_ * width * element_);
  const Bytes sent_back(gathers_narrow() ? tokens_ * width : whole.value);
  if (!plan_.sequence_parallel) {
    last().forward.push_back(
        CommWork{Collective::all_reduce, whole, CommAxis::tensor, plan_.async_tensor});
    return x;
  }
  const TensorIndex out = tensor("reduced_sequence", sequence_tokens_ * width);
  if (workload_.framework.parallel
          .keeps_gather_buffers)  // its gradient is gathered into one of them
    graph_.tensors[static_cast<std::size_t>(x)].gradient_bytes = 0;
  Operator op;
  op.name = "reduce_sequence";
  op.kind = OperatorKind::communication;
  op.inputs = {x};
  op.outputs = {out};
  op.forward = {CommWork{Collective::reduce_scatter, whole, CommAxis::tensor, plan_.async_tensor}};
  op.backward = {CommWork{Collective::all_gather, sent_back, CommAxis::tensor,
                          plan_.async_tensor && !scales_rows()}};
  copy_along_sequence(op, whole, sent_back);
  add(std::move(op));
  return out;
}

bool GraphBuilder::was_gathered(TensorIndex x) const {
  return std::any_of(gathered_from_.begin(), gathered_from_.end(),
                     [x](const auto& pair) { return pair.first == x; });
}

// Per weight: read both gradients, write one. DeepSpeed's BF16 optimizer first copies the 16-bit
// gradient into the wider format, whole, and adds that copy (v0.12.6 runtime/bf16_optimizer.py,
// update_hp_grads: hp_grad.add_(lp.grad.to(fp32)); the same from v0.7.0 to v0.17.5). A 16-bit
// gradient that stays is zeroed (clear_lp_grads) and then added to by autograd, which a new one is
// not (PyTorch torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad: in place).
GraphBuilder::Accumulation GraphBuilder::accumulation() const {
  if (!adds_gradient(workload_, plan_)) return {};
  const Framework& f = workload_.framework;
  const double made = as_double(gradient_element()), kept = bytes_per_element(f.gradients.dtype);
  Accumulation a{made + 2 * kept, 1};
  const bool stays = f.gradients.copy_life == GradientCopyLife::run;
  if (f.gradients.life != GradientLife::persistent || !f.gradients.copy_while_accumulating ||
      !(stays || f.gradients.copy_life == GradientCopyLife::next_backward))
    return a;
  a.bytes += 2 * kept;
  a.kernels += 1;
  if (stays) {
    a.bytes += 4 * made;
    a.kernels += 2;
  }
  return a;
}

// Under autocast weights and biases are copied to 16 bits in every forward pass, once each, and
// again where a checkpoint runs it again, in a region of its own; their 16-bit gradients are copied
// to fp32 (PyTorch aten/src/ATen/autocast_mode.cpp, cached_cast: the cache goes with the region;
// counted by calibrate/count_layer_operators.py). Frozen ones may be of the other 16 bits.
void GraphBuilder::cast_weights(Operator& op, std::int64_t elements, int tensors) const {
  if (!casts_weights_) return;
  op.forward.push_back(traffic(as_double((cast_from_ + 2) * elements), tensors));
  if (trains_base_)
    op.backward_weight.push_back(one_by_one(6 * as_double(elements), tensors, as_double(elements)));
}

// Paddle's operator before a column-parallel product hands on a copy, whose gradient is summed over
// the tensor ranks (PaddlePaddle/Paddle 2.6 paddle/fluid/operators/collective/c_identity_op.h).
TensorIndex GraphBuilder::own_copy(const LinearSpec& spec, TensorIndex x, std::int64_t elements) {
  if (!workload_.framework.parallel.copies_linear_inputs || tensor_ == 1 ||
      spec.cut != Cut::columns || plan_.sequence_parallel)
    return x;
  const double moved = 2 * as_double(elements * element_);
  const TensorIndex copy = pointwise("input_copy", {x}, {}, elements, moved, 0, 1);
  last().backward.clear();
  return copy;
}

namespace {

// What several linears read is gathered again once, for the one that goes back first, which is the
// last of them: all their gradients read the same copy. So do the parts of what a framework keeps
// as one linear (q, k and v; gate and up).
void gather_again(Operator& last, std::vector<Operator>& before, TensorIndex gathered, Bytes size) {
  for (Operator& op : before)
    if (op.kind == OperatorKind::matmul && !op.inputs.empty() && op.inputs.front() == gathered)
      std::erase_if(op.backward_weight,
                    [](const Kernel& k) { return std::holds_alternative<CommWork>(k); });
  last.backward_weight.push_back(CommWork{Collective::all_gather, size, CommAxis::tensor, true});
  last.backward_temporary += size;
}

}  // namespace

namespace {

bool left_in_16_bits(const Workload& w, std::string_view linear) {
  if (w.compute != DType::nvfp4) return false;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), linear) != names.end();
  };
  return (w.model.beside_nvfp4.attention && is_one_of({"q", "k", "v", "o"})) ||
         (w.model.beside_nvfp4.latents && is_one_of({"latent_down", "latent_up"}));
}

}  // namespace

// bitsandbytes keeps what a product multiplied as an attribute of its context, in 4 bits until
// July 2024, in 8 in every release: autograd does not clear it after backward, and hooks on what is
// saved do not see it.
void GraphBuilder::keep_quantized_input(Operator& op, TensorIndex input) {
  const Framework& f = workload_.framework;
  const bool eight_bits = workload_.adapter.base == Quantization::int8;
  if (trains_base_ || (!f.quantized.linear_keeps_input && !eight_bits)) return;
  op.saves = {input};
  outlive(input, f.recompute.checkpoints_miss_context || (eight_bits && !f.recompute.reentrant));
}

// Inductor may pad what it compiles. Of the operands that it would copy, weights are read in the
// other order forward, and so is the output's gradient in the weights' product, whose rows it is
// to be; weights that autocast has just made are no input of a graph, and so is every input of a
// linear (PyTorch 2.15 torch/_inductor/fx_passes/pad_mm.py, should_exclude_padding_time;
// torch/csrc/autograd/FunctionsManual.cpp, mm_mat2_backward). On since PyTorch 2.1 (pull request
// 101915). Casts and gathers may stand before a product.
void GraphBuilder::let_pad(Operator& op, const LinearSpec& spec,
                           const ProductShape& product) const {
  const Framework& f = workload_.framework;
  if (f.layers.kernels != KernelStyle::compiled || f.layers.leaves_odd_lengths) return;
  if (spec.outside_layers && !f.layers.compiles_whole_model) return;
  const auto let = [](std::vector<Kernel>& pass, std::int64_t transposes, std::int64_t copies) {
    for (Kernel& k : pass)
      if (auto* gemm = std::get_if<GemmWork>(&k);
          gemm != nullptr && bytes_per_element(gemm->dtype) >= 2) {
        gemm->padding = true;
        gemm->padding_transposes = transposes;
        gemm->padding_copies = copies;
      }
  };
  const auto [rows, in, out] = product;
  const bool in_line = out * element_ % 16 == 0 && rows * element_ % 16 == 0;
  let(op.forward, in * out, 0);
  let(op.backward, 0, f.formats.autocast ? 0 : in * out);
  let(op.backward_weight, in_line ? 0 : rows * out, 0);
}

TensorIndex GraphBuilder::linear(const LinearSpec& spec, TensorIndex source, std::int64_t rows) {
  const std::int64_t in = spec.cut == Cut::rows ? spec.in / tensor_ : spec.in;
  const std::int64_t out = spec.cut == Cut::columns ? spec.out / tensor_ : spec.out;
  const std::int64_t bias = spec.bias ? (spec.cut == Cut::columns ? out : spec.out) : 0;
  const bool narrow = spec.low_precision && bytes_per_element(workload_.compute) < 2.0 &&
                      !left_in_16_bits(workload_, spec.name);
  // Upcast weights, or quantised ones of a bitsandbytes that follows its input: products of fp32.
  const bool returned = returns_wide_ && element_ == 4 && (!spec.quantizable || follows_input_);
  const bool fp32 = spec.wide || returned;
  const DType dtype = narrow ? workload_.compute : fp32 ? DType::fp32 : workload_.product_dtype();
  count_matrix(in, out, !spec.quantizable);
  count_other(bias);
  graph_.parameters.cast += in * out + bias;
  const TensorIndex x =
      spec.wide ? source : own_copy(spec, cast_input(source, rows * in), rows * in);

  const TensorIndex y = tensor(spec.name, rows * out);
  Operator op;
  op.name = spec.name;
  op.kind = OperatorKind::matmul;
  op.inputs = {x};
  op.outputs = {y};
  op.unlisted = dtype == DType::nvfp4;  // aten._scaled_mm_v2, see recompute_policy.cpp
  op.forward = {GemmWork{rows, out, in, 1, dtype}};
  op.backward = {GemmWork{rows, in, out, 1, dtype}};
  if (narrow) cast_operands(op, x, {rows, in, out});
  TensorIndex kept = x;
  for (const auto& [gathered, shard] : gathered_from_)
    if (gathered == x && workload_.framework.parallel.regathers_sequence) kept = shard;
  if (trains_base_) {
    if (kept != x) {
      const Bytes again(rows * in * (narrow && gathers_narrow() ? 1 : element_));
      gather_again(op, graph_.operators, x, again);
    }
    if (narrow && workload_.framework.layers.kernels == KernelStyle::fused) {
      // Transformer Engine keeps the narrow copy that the weight gradient reads.
      save_narrow(op, kept, in * out);
    } else {
      op.saves = {kept};
    }
    op.backward_weight.push_back(weight_gradient(in, out, rows, dtype));
    std::get<GemmWork>(op.backward_weight.back()).accumulate = workload_.framework.gradients.fusion;
    op.weight_gradient_elements = in * out + bias;
    // The bias's gradient sums that of the output over the tokens, in a kernel of its own where the
    // weight gradient's product does not do it on the way.
    if (bias > 0 && !workload_.framework.gradients.fusion)
      op.backward_weight.push_back(
          traffic(as_double(rows * out * element_), 1, MemoryAccess::reduction));
    if (const Accumulation each = accumulation(); each.kernels > 0)
      op.backward_weight.push_back(traffic(each.bytes * as_double(in * out), each.kernels));
  }
  let_pad(op, spec, {rows, in, out});
  if (!narrow) cast_weights(op, in * out + bias, bias > 0 ? 2 : 1);
  // A narrow product reads weights of its format as they are stored.
  const bool read_as_stored = narrow && is_operand(workload_.adapter.base);
  const bool quantized = workload_.freezes_quantized() && spec.quantizable && !read_as_stored;
  if (quantized && workload_.adapter.base == Quantization::gptq) {
    add_unpacking(op, in * out);
  } else if (quantized) {
    add_dequantization(op, in * out);
    // What its product reads and what it gives are 16-bit copies of fp32.
    if (returns_wide_ && !follows_input_) {
      const MemoryWork copies = traffic(6 * as_double(rows * (in + out)), 2);
      op.forward.push_back(copies);
      op.backward.push_back(copies);
    }
    if (returns_wide_ && element_ == 4 && !follows_input_) {
      op.forward_temporary += Bytes(2 * rows * (in + out));
      op.backward_temporary += Bytes(2 * rows * (in + out));
    }
    keep_quantized_input(op, kept);
  }
  if (spec.adapted && fuses_adapters()) fuse_adapter(op, spec, x, rows, in, out);
  add(std::move(op));
  if (!spec.adapted || !row(workload_.method).adapter || fuses_adapters()) return y;
  return add_adapter(spec.name, source, y, rows, in, out);
}

TensorIndex GraphBuilder::residual_add(TensorIndex x, TensorIndex branch, std::int64_t elements) {
  // Fused into the norm that follows, which reads the sum there: one kernel and a read less.
  const Framework& f = workload_.framework;
  const bool by_norm = f.layers.kernels == KernelStyle::compiled || f.layers.norms_add_residual;
  const bool fused = !eager() && by_norm && !f.layers.adds_bias_apart;
  const TensorIndex out = stream_tensor("residual", elements);
  Operator op;
  op.name = "residual_add";
  op.inputs = {x, branch};
  op.outputs = {out};
  const double read = as_double(bytes_of(x) + bytes_of(branch));
  MemoryWork sum = fused ? traffic(read, 0) : traffic(read + as_double(bytes_of(out)), 1);
  sum.plain = f.layers.kernels == KernelStyle::fused;
  op.forward = {sum};
  // A branch of 16 bits gets a copy of the wider stream's gradient.
  if (bytes_of(branch) < bytes_of(out))
    op.backward = {fused ? traffic(as_double(bytes_of(branch)), 0)
                         : traffic(as_double(bytes_of(out) + bytes_of(branch)), 1)};
  op.passes_gradient = true;
  add(std::move(op));
  return out;
}

TensorIndex GraphBuilder::with_bias(TensorIndex x, std::int64_t elements, bool biased) {
  if (!biased || !workload_.framework.layers.adds_bias_apart) return x;
  const TensorIndex out =
      pointwise("bias", {x}, {}, elements, 2 * as_double(element_ * elements), 0, 1);
  last().backward.clear();
  last().passes_gradient = true;
  return out;
}

TensorIndex GraphBuilder::dropout(TensorIndex x, std::int64_t elements) {
  if (!workload_.hidden_dropout && !workload_.framework.layers.keeps_dropout_masks) return x;
  const double e = as_double(element_);
  const TensorIndex mask = tensor_bytes("dropout_mask", elements, MemoryCategory::temporaries, 0);
  const TensorIndex out = tensor("dropout", elements);
  Operator op;
  op.name = "dropout";
  op.inputs = {x};
  op.outputs = {mask, out};
  op.saves = {mask};
  op.forward = {traffic((2 * e + 1) * as_double(elements), 1)};
  op.backward = {traffic((2 * e + 1) * as_double(elements), 1)};
  add(std::move(op));
  return out;
}

}  // namespace shardwise
