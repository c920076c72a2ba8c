// The experts of a mixture.
//
// The router picks top_k of E per token; tokens are permuted, sent to the ranks that hold their
// experts, multiplied in groups, sent back and summed. Dropless and balanced: every expert sees the
// same share. Tokens per rank are the sequence-sharded ones; expert-TP gathers them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/graphs/expert_loop.hpp"
#include "simulator/graphs/expert_maps.hpp"
#include "simulator/graphs/expert_routing.hpp"
#include "simulator/graphs/expert_rows.hpp"
#include "simulator/graphs/expert_weighing.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/visited_places.hpp"

namespace shardwise {
namespace {

// An operand of every expert quantised as GraphBuilder::linear does, a kernel for each (Transformer
// Engine v2.11 pytorch/csrc/extensions/cast.cpp, split_quantize), or four that also look for its
// largest value (quantizer.cpp, Float8CurrentScalingQuantizer::quantize_impl).
MemoryWork expert_casts(const GraphBuilder& b, const ExpertShape& s, std::int64_t width,
                        bool gradient) {
  const bool scan = s.dtype == DType::fp8 && b.workload().framework.narrow.current_scaling;
  const auto elements = static_cast<double>(s.padded * width);
  const auto experts = static_cast<int>(s.local);
  const NarrowCast cast = cast_both_ways(b.workload(), gradient);
  MemoryWork casts{ceil_bytes((cast.bytes_each + (scan ? 2 : 0)) * elements),
                   (scan ? 4 : 1) * experts, MemoryAccess::streaming};
  casts.looped = true;
  return casts;
}

Operator grouped_matmul(const GraphBuilder& b, std::string_view name, const ExpertShape& s,
                        std::int64_t in, std::int64_t out) {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::matmul;
  op.unlisted = true;  // aten._grouped_mm
  const bool at_once = is_one_expert_kernel(b.workload());
  op.forward = {GemmWork{s.each, out, in, s.local, s.dtype, false, true, at_once}};
  op.backward = {GemmWork{s.each, in, out, s.local, s.dtype, false, true, at_once}};
  if (bytes_per_element(s.dtype) >= 2.0) return op;
  if (casts_by_torchao(b.workload())) {
    cast_four_bits(op.forward, FourBitOperand::input, true, as_double(s.padded * in));
    cast_four_bits(op.forward, FourBitOperand::weight, true, as_double(s.local * in * out));
    cast_four_bits(op.backward, FourBitOperand::gradient, true, as_double(s.padded * out));
    return op;
  }
  const bool made_narrow = is_one_expert_kernel(b.workload()) && s.dtype == DType::mxfp8;
  if (!made_narrow || name != "expert_down") op.forward.push_back(expert_casts(b, s, in, false));
  if (!made_narrow || name != "expert_up") op.backward.push_back(expert_casts(b, s, out, true));
  return op;
}

void group_by_torch(const GraphBuilder& b, const ExpertShape& s, Operator& op) {
  const Workload& w = b.workload();
  const bool wide = b.element() == 2 && widens_experts(w, b.plan());
  const bool loops = w.framework.experts.loops_grouped_products || wide || s.dtype != DType::bf16;
  for (std::vector<Kernel>* pass : {&op.forward, &op.backward, &op.backward_weight}) {
    for (Kernel& k : *pass)
      if (auto* product = std::get_if<GemmWork>(&k)) {
        product->grouped = false;
        product->looped = loops;
        product->by_torch = !loops;
      }
    if (loops && !pass->empty()) pass->insert(pass->begin(), ReadBack{});
  }
}

// Gate and up: transformers makes one product of them, whose gradient is put together of two by
// cat, unless a compiler writes both at their places (5.23.0 src/transformers/integrations/moe.py);
// elsewhere they are two products, and what each leaves of the input's gradient is added up
// (pytorch/torchtitan @b5bcd76c66 torchtitan/models/common/moe.py). gpt-oss has them mixed.
void join_gate_and_up(const GraphBuilder& b, std::int64_t in, std::int64_t out, Operator& op) {
  const Workload& w = b.workload();
  if (!w.model.gated_mlp || w.model.biases.experts) return;
  if (!w.framework.layers.runs_transformers)
    op.backward.push_back(traffic(3 * bytes_of_elements(b, in), 1));
  else if (b.eager())
    op.backward.push_back(traffic(2 * bytes_of_elements(b, out), 1));
}

TensorIndex expert_linear(GraphBuilder& b, std::string_view name, const ExpertShape& s,
                          TensorIndex x, std::int64_t in, std::int64_t out, bool bias,
                          bool adapted) {
  Operator op = grouped_matmul(b, name, s, in, out);
  const TensorIndex y = b.tensor(name, s.padded * out);
  op.inputs = {x};
  op.outputs = {y};
  const Framework& f = b.workload().framework;
  const bool adapts = adapted && row(b.workload().method).adapter && f.adapters.on_experts;
  const bool sums = adapts && f.adapters.sums_experts && !b.workload().freezes_quantized();
  if (sums) {
    const TensorIndex weight = b.sum_with_adapter(in, out, s.local);
    op.inputs.push_back(weight);
    op.saves = {x, weight};
    op.backward_weight = {weight_gradient(in, out, s.each, s.dtype, s.local)};
  }
  const std::int64_t elements = s.local * (in * out + (bias ? out : 0));
  b.count_experts(s.local, in, out, bias);
  if (!in_turn(b)) b.count_fetches(s.local * in * out, 1);  // one tensor
  if (b.trains_base()) {
    const bool narrow = bytes_per_element(s.dtype) < 2.0;
    if (narrow && b.workload().framework.layers.kernels == KernelStyle::fused) {
      // The weight gradient reads the 8-bit input (Transformer Engine, as in GraphBuilder::linear).
      const TensorIndex copy = b.narrow_input(s.padded * in, s.dtype);
      op.outputs.push_back(copy);
      op.saves = {copy};
    } else {
      op.saves = {x};
    }
    GemmWork gradient = weight_gradient(in, out, s.each, s.dtype, s.local);
    gradient.grouped = true;
    gradient.at_once = is_one_expert_kernel(b.workload());
    gradient.accumulate = b.workload().framework.gradients.fusion;
    op.backward_weight = {gradient};
    op.weight_gradient_elements = elements;
  }
  if (in_turn(b))
    call_in_turn(b, op, name == "expert_up" && b.workload().model.gated_mlp ? 2 : 1, in * out);
  else if (multiplies_by_torch(b)) {
    group_by_torch(b, s, op);
    if (name == "expert_up") join_gate_and_up(b, s.padded * in, s.padded * out, op);
  }
  b.dequantize_experts(op, s.local * in * out, s.local);
  b.add(std::move(op));
  if (!adapts || sums) return y;
  return b.add_adapter(name, x, y, s.padded, in, out, s.local);
}

// Of the rows that its experts read, those that a rank is sent by DeepEP and HybridEP: a token
// arrives once, whichever of the rank's experts it is for, and is copied for each of them there.
// What they make of it is added up before it goes back, and those of all ranks on the way, so that
// nothing is left to sum where the token came from (Megatron-LM @d98e8a64dd megatron/core/
// transformer/moe/token_dispatcher.py, _DeepepManager: get_permuted_hidden_states_by_experts,
// get_restored_hidden_states_by_experts).
bool sums_on_the_way(const GraphBuilder& b) {
  return b.workload().framework.experts.dispatches_once && b.plan().expert > 1;
}

double arriving_share(const GraphBuilder& b) {
  if (!sums_on_the_way(b)) return 1;
  const MixtureOfExperts& moe = *b.workload().model.moe;
  return visited_places(moe, b.plan().expert) / moe.top_k;
}

// To the ranks of the experts and back. Where tensor parallelism cuts an expert, what one of its
// ranks was sent the others gather, and their results are summed before they go back (Megatron-LM
// @d98e8a64dd megatron/core/transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher).
TensorIndex exchange(GraphBuilder& b, std::string_view name, TensorIndex x, const ExpertShape& s,
                     std::int64_t width) {
  const std::int64_t rows = s.routed;
  const bool back = name == "combine";
  const int copies = row_copies(b, s, back);
  const TensorIndex out = b.tensor(name, (back ? rows : s.padded) * width);
  const double n = bytes_of_elements(b, rows * width);
  Operator op;
  op.name = name;
  op.kind = OperatorKind::communication;
  op.inputs = {x};
  op.outputs = {out};
  const double permuted = (1 + arriving_share(b)) * n;  // by expert
  op.forward = {MemoryWork{ceil_bytes(permuted), 2, MemoryAccess::gather}};
  if (copies > 1)  // of rows that lie one behind the other
    op.forward.push_back(
        MemoryWork{ceil_bytes(2 * (copies - 1) * n), copies - 1, MemoryAccess::streaming});
  op.backward = op.forward;
  if (makes_row_maps(b)) {
    if (!back) op.forward.push_back(map_of_tokens(b));
    if (s.local > 1 && !b.workload().pads_experts) op.forward.push_back(map_of_chunks(b, s));
  }
  const std::int64_t cut = b.plan().expert_tensor;
  const Bytes whole(rows * width * b.element());
  CommWork send{Collective::all_to_all, Bytes(whole.value / cut), CommAxis::expert, false};
  if (b.workload().framework.experts.dispatches_by_map && !back) send.scored_rows = rows / cut;
  const CommWork gather{Collective::all_gather, whole, CommAxis::tensor, false, 1, true};
  const CommWork sum{Collective::reduce_scatter, whole, CommAxis::tensor, false, 1, true};
  const bool sends = b.plan().expert > 1, gathers = cut > 1;
  op.unlisted = !sends ||  // an index, no all_to_all_single
                b.workload().framework.recompute.selective_op_omits_all_to_all;
  if (gathers && back) op.forward.push_back(sum);
  if (gathers && !back) op.backward.push_back(sum);
  // Where experts weigh what they make, the fp32 scores of the rows travel apart, and their
  // gradients back before those of the rows (token_dispatch: global_probs); DeepEP takes them
  // along.
  const Framework& f = b.workload().framework;
  const bool scored = sends && !back && !f.experts.dispatches_once &&
                      !f.experts.weighs_rows_apart && f.layers.kernels == KernelStyle::fused;
  const CommWork scores{Collective::all_to_all, Bytes(4 * rows / cut), CommAxis::expert, false};
  if (scored) op.backward.push_back(scores);
  if (sends) op.forward.push_back(send);
  if (sends) op.backward.push_back(send);
  if (scored) op.forward.push_back(scores);
  if (gathers && !back) op.forward.push_back(gather);
  if (gathers && back) op.backward.push_back(gather);
  b.add(std::move(op));
  return out;
}

// transformers 5 weighs what each expert made of a token before the rows go back to the order of
// their tokens, each by an operator of PyTorch's own (5.23.0 src/transformers/integrations/moe.py,
// grouped_mm_experts_forward).
bool weighs_before_return(const GraphBuilder& b) {
  const Framework& f = b.workload().framework;
  return multiplies_by_torch(b) && b.plan().expert == 1 && !f.experts.weighs_rows_apart &&
         f.layers.kernels == KernelStyle::eager;
}

// As in gated_activation, with gate and up in one tensor. Where a compiled function weighs the
// result too, the gradient of a row's weight is a sum over the row, of half as many values as the
// gradient of its gate and up, so that it is another kernel: it reads both and the result's
// gradient again (Megatron-LM @d98e8a64dd megatron/core/fusions/fused_bias_swiglu.py,
// weighted_swiglu_back, fused_bias_geglu.py likewise; PyTorch @2295ac79ee torch/_inductor/
// codegen/simd.py, can_fuse, and lowering.py, cat: one kernel of all columns).
TensorIndex expert_activation(GraphBuilder& b, const ExpertShape& s, TensorIndex up) {
  constexpr std::string_view name = "expert_activation";
  const std::int64_t elements = s.padded * s.width;
  const double n = bytes_of_elements(b, elements);
  const int calls = in_turn(b) ? static_cast<int>(s.local) : 1;
  if (is_one_expert_kernel(b.workload())) {
    const TensorIndex out = b.pointwise(name, {up}, {up}, elements, 0, 0, 0);
    b.last().forward.clear();
    b.last().backward.clear();
    return out;
  }
  if (!b.workload().model.gated_mlp)
    return b.pointwise(name, {up}, {up}, elements, 2 * n, 3 * n, calls);
  if (!b.eager()) {
    const TensorIndex out = b.pointwise(name, {up}, {up}, elements, 3 * n, 5 * n, calls);
    if (!b.workload().framework.experts.weighs_in_activation) return out;
    MemoryWork sums = traffic(3 * n, calls, MemoryAccess::reduction);
    sums.looped = true;
    b.last().backward.push_back(sums);
    return out;
  }
  if (adds_bias_alone(b)) return clamped_swish(b, up, elements, calls);
  const TensorIndex act = b.pointwise(name, {up}, {up}, elements, 2 * n, 3 * n, calls);
  return b.pointwise(name, {act, up}, {act, up}, elements, 3 * n, 6 * n, calls);
}

// sigmoid(x w) times what the shared expert gives, which is kept for the gradient of its one factor
// (transformers 5.23 models/qwen2_moe/modeling_qwen2_moe.py:346; Megatron-LM @d98e8a64dd megatron/
// core/transformer/moe/shared_experts.py:203-206). Backward both products of the output's gradient
// are made, 2 + 3 values, and the second is read for the sum over a row; compiled, one kernel reads
// both tensors and writes one. The product with w is one of a matrix and a vector, which reads x
// forward and for the gradient of w, and writes that of x.
TensorIndex gate_shared(GraphBuilder& b, TensorIndex normed, TensorIndex shared,
                        std::int64_t rows) {
  const std::int64_t hidden = b.workload().model.hidden;
  const double n = bytes_of_elements(b, rows * hidden);
  const TensorIndex gate = b.tensor("shared_gate", rows);
  Operator product;
  product.name = "shared_gate";
  product.inputs = {normed};
  product.outputs = {gate};
  product.forward = {traffic(n, 1, MemoryAccess::reduction)};
  product.backward = {traffic(n, 1)};
  if (b.trains_base()) {
    product.saves = {normed};
    product.backward_weight = {MemoryWork{ceil_bytes(n), 1, MemoryAccess::reduction, true}};
    product.weight_gradient_elements = hidden;
  }
  issue_as_plain(product);
  b.add(std::move(product));
  b.count_other(hidden);
  const bool compiled = b.workload().framework.layers.kernels == KernelStyle::compiled;
  const TensorIndex out = b.pointwise("gated_shared", {gate, shared}, {gate, shared}, rows * hidden,
                                      2 * n, (compiled ? 3 : 6) * n, compiled ? 1 : 2);
  issue_as_plain(b.last());
  return out;
}

// What a token's experts made of it, weighed, in one row. Fused experts weigh inside the
// activation, so that the sum keeps nothing of theirs (Megatron-LM megatron/core/transformer/moe/
// experts.py: permuted_probs go into the activation).
TensorIndex sum_over_experts(GraphBuilder& b, const ExpertShape& s, TensorIndex back,
                             TensorIndex scores, std::int64_t hidden) {
  const MixtureOfExperts& moe = *b.workload().model.moe;
  const std::int64_t elements = b.sequence_tokens() * hidden;
  const int copies = b.own_code().feeds_all_experts ? moe.experts : moe.top_k;
  const bool apart = b.workload().framework.experts.weighs_rows_apart;
  const bool weighed = weighs_before_return(b);
  if (apart) back = weigh_rows(b, back, scores, s.routed * hidden);
  std::vector<TensorIndex> summed{back}, kept;
  if (!apart && !weighed) {
    summed.push_back(scores);
    kept.push_back(scores);
    if (b.workload().framework.layers.kernels != KernelStyle::fused) kept.push_back(back);
  }
  const int launches = in_turn(b) ? 2 * moe.experts : weighed ? 1 : 2;
  const double out = bytes_of_elements(b, elements);
  const TensorIndex sum =
      b.pointwise("weighted_sum", std::move(summed), std::move(kept), elements, out * (copies + 1),
                  out * ((weighed ? 1 : 2) * copies + 1), launches);
  if (sums_on_the_way(b)) b.last().forward = b.last().backward = {};
  return sum;
}

}  // namespace

TensorIndex add_experts(GraphBuilder& b, TensorIndex residual, TensorIndex normed) {
  const Transformer& m = b.workload().model;
  const MixtureOfExperts& moe = *m.moe;
  const ParallelPlan& plan = b.plan();
  const std::int64_t rows = b.sequence_tokens();
  const ExpertShape s = expert_shape(b);
  const auto branch = [&](std::string_view name, TensorIndex t, TensorIndex otherwise) {
    return moe.normed_branches ? b.norm(name, t, rows, m.hidden) : otherwise;
  };
  const TensorIndex scores = route_tokens(b, residual, normed);
  // Latent experts: tokens are projected down before they are sent, and up after the sum
  // (transformers models/nemotron_h/modeling_nemotron_h.py, NemotronHMoE).
  const std::int64_t hidden = moe.latent.value_or(m.hidden);
  const TensorIndex read = branch("expert_norm", residual, normed);
  const TensorIndex source =
      moe.latent ? b.linear({"latent_down", m.hidden, hidden}, read, rows) : read;
  const bool stored = b.element() == 2 && widens_experts(b.workload(), plan);
  const auto widened = [&](std::size_t op, std::size_t t, TensorIndex out) {
    if (stored) b.widen(op, t);
    return out;
  };
  std::size_t op = b.operators(), t = b.tensors();
  const TensorIndex sent = widened(op, t, exchange(b, "dispatch", source, s, hidden));
  b.last().inputs.push_back(scores);
  const bool loops = in_turn(b);
  if (loops)
    dispatch_in_turn(b, rows, s.routed);
  else
    add_routing(b);
  op = b.operators(), t = b.tensors();
  const AdapterTargets& on = b.workload().adapter.targets;
  const std::int64_t up_width = s.width * (m.gated_mlp ? 2 : 1);
  const TensorIndex up =
      expert_linear(b, "expert_up", s, sent, hidden, up_width, m.biases.experts, on.up || on.gate);
  const int calls = loops ? static_cast<int>(s.local) : 1;
  const TensorIndex bounded = adds_bias_alone(b) ? add_bias_alone(b, up, s.padded * up_width, calls)
                                                 : clamp_activation(b, up, s.padded * s.width);
  const TensorIndex activated = expert_activation(b, s, bounded);
  TensorIndex down =
      expert_linear(b, "expert_down", s, activated, s.width, hidden, m.biases.experts, on.down);
  down = adds_bias_alone(b)
             ? add_bias_alone(b, down, s.padded * hidden, calls)
             : add_weighted_bias(b, down, s.padded * hidden, static_cast<int>(s.local));
  const bool weighed = weighs_before_return(b);
  if (weighed) down = weigh_in_order_of_experts(b, down, scores, s.routed * hidden);
  TensorIndex back = exchange(b, "combine", down, s, hidden);
  // The function that calls the products still has a name for the rows that it began with.
  if (weighed && !b.trains_base()) b.last().forward_temporary = Bytes(b.bytes_of(sent));
  back = widened(op, t, back);
  if (loops) combine_in_turn(b);
  back = sum_over_experts(b, s, back, scores, hidden);
  if (loops) end_turns(b);
  if (moe.latent) back = b.linear({"latent_up", hidden, m.hidden}, back, rows);
  back = branch("expert_output_norm", back, back);
  if (moe.shared_expert_ffn == 0) return back;
  TensorIndex shared = add_mlp(b, normed, moe.shared_expert_ffn, true);
  shared = branch("shared_output_norm", shared, shared);
  if (moe.shared_gate) shared = gate_shared(b, normed, shared, rows);
  return b.residual_add(back, shared, rows * m.hidden);
}

}  // namespace shardwise
