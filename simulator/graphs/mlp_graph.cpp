// The MLP: gated (SwiGLU and kin) or plain (GELU).
//
// Saved per token without recomputation (16 bits): normed input 2h, gate and up outputs 4f, the
// activated product 2f; an eager SwiGLU also keeps silu(gate): 2f.
#include <cstdint>
#include <string_view>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

// Whether all three linears of a gated MLP and their adapters are one function.
bool is_one_function(const GraphBuilder& b) {
  const AdapterTargets& on = b.workload().adapter.targets;
  return b.fuses_adapters() && on.gate && on.up && on.down;
}

// Liger's kernel of backward stores both gradients where it has read gate and up (linkedin/
// Liger-Kernel v0.1.0 to v0.8.2 src/liger_kernel/ops/swiglu.py, geglu.py). A compiler's does not.
bool overwrites_gate_and_up(const GraphBuilder& b) {
  const Framework& f = b.workload().framework;
  return f.layers.overwrites_gate_and_up && f.layers.kernels == KernelStyle::fused;
}

// Whether a graph that is cut (cuts_graphs) ends between gate and up: certain of weights that fill
// a bucket alone.
bool is_cut(const GraphBuilder& b, std::int64_t width) {
  const Workload& w = b.workload();
  if (!cuts_graphs(w, b.plan()) || !b.trains_base()) return false;
  const double bytes =
      stored_base(w, true, true).weight * static_cast<double>(w.model.hidden * width / b.tensor());
  return bytes >= static_cast<double>(w.framework.gradients.bucket.value);
}

// The cast of gate's graph, of what up's has cast as well: autocast leaves it in fp32 behind a
// norm, but where a class of transformers gives what 16-bit weights read its own format back.
TensorIndex cast_again(GraphBuilder& b, TensorIndex x, std::int64_t elements) {
  const Workload& w = b.workload();
  const bool narrow = w.framework.layers.runs_transformers && stored_base(w, true, true).weight < 4;
  if (!w.framework.formats.autocast || narrow || b.element() != 2) return x;
  const double moved = 6 * as_double(elements);
  return b.pointwise("cast", {x}, {}, elements, moved, moved, 1);
}

// gate * sigmoid(gate) * up, each a kernel that keeps what its derivative reads: the sigmoid, gate,
// their product and up. Values: forward 2 + 3 + 3, backward 6 + 6 and the sigmoid's 3.
TensorIndex written_out_swiglu(GraphBuilder& b, TensorIndex gate, TensorIndex up,
                               std::int64_t elements) {
  const double n = bytes_of_elements(b, elements);
  const TensorIndex sigmoid = b.pointwise("sigmoid", {gate}, {}, elements, 2 * n, 3 * n, 1);
  b.last().saves = {sigmoid};
  const TensorIndex act =
      b.pointwise("silu", {gate, sigmoid}, {gate, sigmoid}, elements, 3 * n, 6 * n, 1);
  std::get<MemoryWork>(b.last().backward.front()).launches = 2;
  const TensorIndex out = b.pointwise("product", {act, up}, {act, up}, elements, 3 * n, 6 * n, 1);
  std::get<MemoryWork>(b.last().backward.front()).launches = 2;
  return out;
}

// act(gate) * up by a fused kernel, of which backward keeps an 8-bit copy of both: a kernel more in
// either direction (Megatron-LM @d98e8a64dd megatron/core/fusions/fused_bias_swiglu.py,
// fp8_input_store).
TensorIndex narrow_kept_swiglu(GraphBuilder& b, TensorIndex gate, TensorIndex up,
                               std::int64_t elements) {
  const double n = bytes_of_elements(b, elements);
  const double codes = as_double(2 * elements);
  const TensorIndex out =
      b.pointwise("swiglu", {gate, up}, {}, elements, 5 * n + codes, 7 * n + codes, 2);
  const TensorIndex kept =
      b.tensor_bytes("narrow_gate_and_up", 2 * elements, MemoryCategory::activations, 0);
  Operator& op = b.last();
  op.outputs.push_back(kept);
  op.saves = {kept};
  op.backward_temporary = Bytes(2 * elements * b.element());
  return out;
}

// act(gate) * up. One fused kernel reads both and writes one; eager runs two, and keeps act(gate),
// as two compiled graphs do (`cut`). Where the MLP is one function, the kernel of backward writes
// over what it reads: the product over its gradient, both gradients over gate and up.
TensorIndex gated_activation(GraphBuilder& b, TensorIndex gate, TensorIndex up,
                             std::int64_t elements, bool cut) {
  const double n = bytes_of_elements(b, elements);
  if (is_one_function(b)) {
    const TensorIndex out =
        b.pointwise("swiglu", {gate, up}, {gate, up}, elements, 3 * n, 6 * n, 1);
    b.last().in_place_gradient = true;
    return out;
  }
  if (!b.eager() && !b.workload().framework.layers.eager_activation && !cut) {
    if (b.workload().framework.layers.keeps_narrow_gate)
      return narrow_kept_swiglu(b, gate, up, elements);
    const TensorIndex out =
        b.pointwise("swiglu", {gate, up}, {gate, up}, elements, 3 * n, 5 * n, 1);
    b.last().in_place_gradient = overwrites_gate_and_up(b);
    return out;
  }
  if (b.eager() && b.workload().framework.layers.plain_activation)
    return written_out_swiglu(b, gate, up, elements);
  const TensorIndex act = b.pointwise("silu", {gate}, {gate}, elements, 2 * n, 3 * n, 1);
  b.last().crosses_graphs = cut;
  std::get<MemoryWork>(b.last().backward.front()).launches = 1;
  return b.pointwise("product", {act, up}, {act, up}, elements, 3 * n, 6 * n, 1);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) by eight kernels (transformers activations.py,
// NewGELUActivation). Backward needs x, which the power reads, the tangent, one and the tangent,
// and half of x. Autocast takes powers in fp32: x is copied, and all that follows is fp32.
// Values read and written: forward power 2, product 2, sum 3, product 2, tangent 2, sum 2, half 2,
// product 3; backward the last product's 3 + 3, half 2, the tangent's 3, the products' 2 + 2, the
// power's 2 + 2 + 3, and two sums of 3 where x is reached.
TensorIndex written_out_gelu(GraphBuilder& b, TensorIndex up, std::int64_t elements) {
  const bool autocast = b.workload().framework.formats.autocast && b.element() == 2;
  const std::int64_t wide = autocast ? 4 : b.element();
  const auto kept = [&](std::string_view name, std::int64_t each) {
    return b.tensor_bytes(name, each * elements, MemoryCategory::temporaries, 0);
  };
  const double n = static_cast<double>(wide * elements);
  Operator op;
  op.name = "gelu";
  op.inputs = {up};
  op.saves = {kept("gelu_tangent", wide), kept("gelu_one_and_tangent", wide),
              kept("gelu_half", b.element()), autocast ? kept("gelu_input", 4) : up};
  op.outputs = op.saves;
  if (!autocast) op.outputs.pop_back();
  const TensorIndex out =
      b.tensor_bytes("gelu", wide * elements, MemoryCategory::temporaries, wide * elements);
  op.outputs.push_back(out);
  op.forward = {MemoryWork{ceil_bytes(18 * n), 8, MemoryAccess::streaming}};
  op.backward = {MemoryWork{ceil_bytes(28 * n), 11, MemoryAccess::streaming}};
  b.add(std::move(op));
  return out;
}

// Mean and deviation of a token's gates, what exceeds their sum, and ReLU of it (Gemma 3n:
// transformers 5.23 modeling_gemma3n.py, _gaussian_topk): the deviation keeps the gates, ReLU its
// result.
TensorIndex cut_gate(GraphBuilder& b, TensorIndex gate, std::int64_t elements) {
  const double n = bytes_of_elements(b, elements);
  const TensorIndex out = b.pointwise("gate_cut", {gate}, {gate}, elements, 7 * n, 8 * n, 6);
  b.last().saves.push_back(out);
  b.last().forward_temporary = ceil_bytes(n);
  b.last().backward_temporary = ceil_bytes(n);
  return out;
}

// The same formula in a function of its own, x / 2 (1 + tanh(0.798 x (1 + 0.0447 x x))), whose
// gradient is written out as well and begins with x: nine and eighteen operators that read and
// write 21 and 44 values, counted where PyTorch 2.15 dispatches them (transformers 5.23
// modeling_bloom.py, bloom_gelu_forward, bloom_gelu_back). Python drops a value once it is read:
// four live at once forward, half of x, 0.798 x and two of the square's chain, where the result
// takes the place of one. Backward five do: the tangent, half of x, one less its square, 0.107 x
// and that times x. None of them is the gradient that it gives.
TensorIndex computed_again_gelu(GraphBuilder& b, TensorIndex up, std::int64_t elements) {
  const double n = bytes_of_elements(b, elements);
  const TensorIndex out = b.pointwise("gelu", {up}, {up}, elements, 21 * n, 44 * n, 9);
  std::get<MemoryWork>(b.last().backward.front()).launches = 18;
  b.last().forward_temporary = ceil_bytes(3 * n);
  b.last().forward_temporaries = 3;
  b.last().backward_temporary = ceil_bytes(5 * n);
  b.last().backward_temporaries = 5;
  return out;
}

TensorIndex plain_activation(GraphBuilder& b, TensorIndex up, std::int64_t elements) {
  const double n = bytes_of_elements(b, elements);
  const MlpFunction function = b.own_code().mlp;
  if (function == MlpFunction::written_out) return written_out_gelu(b, up, elements);
  if (function == MlpFunction::computes_again) return computed_again_gelu(b, up, elements);
  const TensorIndex out = b.pointwise("gelu", {up}, {up}, elements, 2 * n, 3 * n, 1);
  std::get<MemoryWork>(b.last().backward.front()).launches = 1;
  if (function == MlpFunction::keeps_result) b.last().saves = {out};
  return out;
}

}  // namespace

TensorIndex add_mlp(GraphBuilder& b, TensorIndex normed, std::int64_t width, bool sequence,
                    bool cuts_gate) {
  const Transformer& m = b.workload().model;
  const AdapterTargets& on = b.workload().adapter.targets;
  TensorIndex x = sequence ? b.gather_sequence(normed, m.hidden) : normed;
  const std::int64_t rows = b.tokens();
  // What projects q, k and v at once does so with gate and up (modeling_phi3.py, Phi3MLP).
  if (b.own_code().fused_gate_up) x = b.cast_input(x, rows * m.hidden);
  const std::int64_t local = width / b.tensor();
  TensorIndex up = b.linear({"up", m.hidden, width, Cut::columns, m.biases.mlp, on.up}, x, rows);
  up = b.with_bias(up, rows * local, m.biases.mlp);
  TensorIndex activated = 0;
  if (m.gated_mlp) {
    const bool apart =
        b.workload().framework.parallel.sums_gate_and_up_apart && !b.plan().sequence_parallel;
    const TensorIndex again = !sequence ? x
                              : apart   ? b.gather_sequence(normed, m.hidden)
                                        : b.gathered_again(x, normed, m.hidden);
    const bool cut = is_cut(b, width);
    const TensorIndex read = cut ? cast_again(b, again, rows * m.hidden) : again;
    const std::size_t other = b.operators();
    TensorIndex gate =
        b.linear({"gate", m.hidden, width, Cut::columns, m.biases.mlp, on.gate}, read, rows);
    if (b.own_code().fused_gate_up) b.join_launches(other);
    gate = b.with_bias(gate, rows * local, m.biases.mlp);
    if (cuts_gate) gate = cut_gate(b, gate, rows * local);
    activated = gated_activation(b, gate, up, rows * local, cut);
  } else {
    activated = plain_activation(b, up, rows * local);
  }
  LinearSpec down{"down", width, m.hidden, Cut::rows, m.biases.mlp, on.down};
  down.input_again = m.gated_mlp && is_one_function(b);
  return b.reduce_partial(b.linear(down, activated, rows), m.hidden);
}

}  // namespace shardwise
