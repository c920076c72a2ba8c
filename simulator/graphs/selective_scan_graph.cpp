// A Mamba-1 mixer (arXiv 2312.00752): one projection to x and its gate z, a short convolution of x,
// from which time steps, B and C come (Jamba norms each), the selective scan, one projection back.
//
// As transformers has it (5.23, models/jamba/modeling_jamba.py, JambaMambaMixer) on the kernels of
// causal_conv1d and mamba_ssm (2.3.2 ops/selective_scan_interface.py, SelectiveScanFn): tokens come
// first, and the scan wants them last, so x, z, B and C are copied. It keeps what it reads, its
// result before the gate and, for every 2048 tokens, two fp32 numbers for each state
// (csrc/selective_scan/selective_scan.cpp, selective_scan_fwd: x). The exponentials of the scan,
// one for each token and state, are not timed: only its bytes are.
#include <cstdint>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t scanned_at_once = 2048;  // csrc/selective_scan/selective_scan.cpp, n_chunks

// What the scan reads beside the projection's z.
struct ScanInputs {
  TensorIndex values, steps, b, c;
};

// One channel reads its own past alone; SiLU is part of the kernel.
TensorIndex convolve_values(GraphBuilder& b, TensorIndex projected, const StateSpace& s) {
  const std::int64_t elements = b.tokens() * s.inner();
  const double n = bytes_of_elements(b, elements);
  const TensorIndex out =
      b.pointwise("short_convolution", {projected}, {projected}, elements, 2 * n, 4 * n, 1);
  const std::int64_t weights = (std::int64_t{s.convolution} + 1) * s.inner();
  b.count_other(weights);
  b.last().weight_gradient_elements = b.trains_base() ? weights : 0;
  return out;
}

ScanInputs scan_inputs(GraphBuilder& b, TensorIndex values, const StateSpace& s) {
  const std::int64_t rows = b.tokens(), rank = *s.step_rank;
  const bool adapted = b.workload().adapter.targets.up;
  const TensorIndex read = b.linear(
      {"mamba_read", s.inner(), rank + 2 * s.state, Cut::none, false, adapted}, values, rows);
  const auto part = [&](std::string_view name, std::int64_t width) {
    return s.normed ? b.norm(name, read, rows, width) : read;
  };
  const TensorIndex rates = part("mamba_step_norm", rank);
  const TensorIndex to_state = part("mamba_b_norm", s.state);
  const TensorIndex from_state = part("mamba_c_norm", s.state);
  const TensorIndex steps = b.linear({"mamba_step", rank, s.inner()}, rates, rows);
  return {values, steps, to_state, from_state};
}

TensorIndex selective_scan(GraphBuilder& b, TensorIndex projected, const ScanInputs& in,
                           const StateSpace& s) {
  const std::int64_t rows = b.tokens(), elements = rows * s.inner();
  const std::int64_t length = rows / b.plan().microbatch;
  const std::int64_t chunks = (length + scanned_at_once - 1) / scanned_at_once;
  const auto copy = [&](std::string_view name, std::int64_t n) {
    return b.tensor_bytes(name, n * b.element(), MemoryCategory::activations, 0);
  };
  const TensorIndex values = copy("scan_values", elements), gate = copy("scan_gate", elements);
  const TensorIndex shared = copy("scan_b_and_c", 2 * rows * s.state);
  const TensorIndex states =
      b.tensor_bytes("scan_states", 4 * b.plan().microbatch * chunks * 2 * s.inner() * s.state,
                     MemoryCategory::activations, 0);
  const TensorIndex kept = copy("scan_before_gate", elements);
  // -exp(A) in fp32 for every value and state, and the exponential.
  const TensorIndex decays =
      b.tensor_bytes("scan_decays", 8 * s.inner() * s.state, MemoryCategory::activations, 0);
  const TensorIndex out = b.tensor("scan", elements);
  const double n = bytes_of_elements(b, elements);
  const double state_bytes = as_double(b.bytes_of(states));
  Operator op;
  op.name = "selective_scan";
  op.inputs = {projected, in.values, in.steps, in.b, in.c};
  if (!s.normed) op.inputs.resize(4);  // B and C are parts of one tensor
  op.outputs = {values, gate, shared, states, decays, kept, out};
  op.saves = {values, gate, shared, states, decays, kept, in.steps};
  // Copies of x and z read and write one value each; the scan reads x, z and steps and writes its
  // result before and after the gate. Backward copies that gradient, reads it and what was kept,
  // and writes gradients of x, z and steps.
  op.forward = {traffic(9 * n + state_bytes, 5)};
  op.backward = {traffic(10 * n + state_bytes, 4)};
  // Gradients of B and C are summed in fp32 (selective_scan_bwd: dB, dC).
  op.backward_temporary = Bytes(3 * elements * b.element() + 8 * rows * s.state);
  const std::int64_t weights = s.inner() * (std::int64_t{s.state} + 2);  // A, D, the steps' bias
  b.count_other(weights);
  op.weight_gradient_elements = b.trains_base() ? weights : 0;
  b.add(std::move(op));
  return out;
}

}  // namespace

TensorIndex add_selective_scan(GraphBuilder& b, TensorIndex normed) {
  const Transformer& m = b.workload().model;
  const StateSpace& s = *m.mamba;
  const AdapterTargets& on = b.workload().adapter.targets;
  const TensorIndex projected =
      b.linear({"mamba_in", m.hidden, 2 * s.inner(), Cut::none, false, on.up}, normed, b.tokens());
  const TensorIndex values = convolve_values(b, projected, s);
  const TensorIndex mixed = selective_scan(b, projected, scan_inputs(b, values, s), s);
  return b.linear({"mamba_out", s.inner(), m.hidden, Cut::none, false, on.down}, mixed, b.tokens());
}

}  // namespace shardwise
