// GraphBuilder::add_adapter: what a low-rank adapter adds to its linear.
#include <algorithm>
#include <utility>

#include "simulator/graphs/dora.hpp"
#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {
namespace {

// Under autocast A and B are copied to 16 bits, and their gradients to fp32.
void copy_adapter(Operator& op, std::int64_t elements) {
  op.forward.push_back(traffic(6 * as_double(elements), 1));
  op.backward_weight.push_back(traffic(6 * as_double(elements), 1));
}

// What the second product gives is scaled and added to y. Where it is wider, the sum is as wide as
// it, and copied to 16 bits; backward that copy's gradient is widened before it is scaled, and
// narrowed for y.
void scale_and_add(Operator& op, std::int64_t values, std::int64_t width, std::int64_t element) {
  const bool narrows = width > element;
  const std::int64_t summed = narrows ? 3 * width + 2 * element : 3 * element;
  const std::int64_t back = narrows ? 2 * element + 4 * width : 2 * width;
  op.forward.push_back(traffic(as_double(values * (2 * width + summed)), narrows ? 3 : 2));
  op.backward.push_back(traffic(as_double(values * back), narrows ? 3 : 1));
}

struct AdapterRead {
  std::int64_t rows = 0, in = 0, width = 2;
  bool casts = false, autocasts = false;  // to fp32; then to 16 bits
};

// What A reads of x: a copy in its format, with dropout.
TensorIndex prepared(GraphBuilder& b, TensorIndex x, const AdapterRead& read) {
  const std::int64_t elements = read.rows * read.in, all = elements * read.width;
  const TensorIndex seen = b.tensor_bytes("adapter_input", all, MemoryCategory::temporaries, all);
  Operator prepare;
  prepare.name = "adapter_input";
  prepare.inputs = {x};
  prepare.outputs = {seen};
  // What is copied to fp32 first, autocast copies back.
  const bool there_and_back = read.autocasts && b.bytes_of(x) == elements * b.element();
  if (there_and_back) prepare.forward_temporary = Bytes(4 * elements);
  const std::int64_t times = there_and_back ? 2 : 1;
  if (read.casts)
    prepare.forward = {
        traffic(as_double(times * (4 + b.element()) * elements), static_cast<int>(times))};
  if (b.workload().adapter.dropout > 0) {
    // Of what was copied: a byte of mask is written beside the result, and read with its gradient
    // (PyTorch derivatives.yaml, native_dropout).
    const std::int64_t dropped = read.casts ? 4 : b.element();
    prepare.forward.push_back(traffic(as_double((2 * dropped + 1) * elements), 1));
    prepare.saves = {
        b.tensor_bytes("adapter_dropout_mask", elements, MemoryCategory::temporaries, 0)};
    prepare.outputs.push_back(prepare.saves.front());
  }
  prepare.backward = prepare.forward;
  b.add(std::move(prepare));
  return seen;
}

}  // namespace

bool GraphBuilder::fuses_adapters() const {
  const Adapter& a = workload_.adapter;
  return workload_.framework.adapters.fused && row(workload_.method).adapter &&
         workload_.method != Method::dora && a.input == AdapterInput::copied && a.dropout == 0;
}

// y = x W + s (x A) B where the second product adds to the first in place. Backward makes x A
// again:
// dA = x^T (dy B^T), dB = (x A)^T dy, dx = dy W^T + s (dy B^T) A^T (unslothai/unsloth @015bdef0d9
// unsloth/kernels/utils.py, matmul_lora; fast_lora.py, LoRA_MLP, LoRA_QKV, LoRA_W).
void GraphBuilder::fuse_adapter(Operator& op, const LinearSpec& spec, TensorIndex x,
                                std::int64_t rows, std::int64_t in, std::int64_t out) {
  const std::int64_t rank = workload_.adapter.rank;
  const DType dtype = workload_.product_dtype();
  graph_.parameters.adapter += rank * (in + out);
  graph_.parameters.modules += 2;  // A and B
  const auto width = static_cast<double>(element_);
  op.forward.push_back(GemmWork{rows, rank, in, 1, dtype});
  op.forward.push_back(GemmWork{rows, out, rank, 1, dtype});
  op.forward.push_back(traffic(as_double(rows * out) * width, 0));  // what is added to is read
  op.backward.push_back(GemmWork{rows, rank, out, 1, dtype});
  op.backward.push_back(GemmWork{rows, in, rank, 1, dtype});
  op.backward.push_back(traffic(as_double(rows * in) * width, 0));
  op.backward_weight.push_back(weight_gradient(in, rank, rows, dtype));
  op.backward_weight.push_back(GemmWork{rows, rank, in, 1, dtype});
  op.backward_weight.push_back(weight_gradient(rank, out, rows, dtype));
  op.weight_gradient_elements += rank * (in + out);
  if (!spec.input_again && op.saves.empty()) op.saves = {x};
}

// Experts that are one parameter are adapted by W + s B A, as large as W, which their product reads
// in its place and keeps for backward, with 16-bit copies of A and B; its gradient is made whole
// before it goes on to theirs (peft 0.21.2 src/peft/tuners/lora/layer.py, ParamWrapper,
// _LoraFactorsProxy: torch.baddbmm).
TensorIndex GraphBuilder::sum_with_adapter(std::int64_t in, std::int64_t out,
                                           std::int64_t experts) {
  const std::int64_t rank = workload_.adapter.rank, weights = experts * in * out * element_;
  const std::int64_t factors = experts * rank * (in + out);
  const DType dtype = workload_.product_dtype();
  graph_.parameters.expert_adapter += factors;
  graph_.parameters.modules += 2;  // A and B
  Operator op;
  op.name = "adapted_weight";
  op.kind = OperatorKind::matmul;
  op.outputs = {tensor_bytes("adapted_weight", weights, MemoryCategory::activations, weights)};
  if (workload_.framework.adapters.dtype == DType::fp32 && element_ == 2) {
    op.saves = {tensor_bytes("adapter_copies", factors * element_, MemoryCategory::activations, 0)};
    op.outputs.push_back(op.saves.front());
    copy_adapter(op, factors);
  }
  op.forward.push_back(GemmWork{out, in, rank, experts, dtype});
  op.forward.push_back(traffic(as_double(weights), 0));  // W
  op.backward_weight.push_back(GemmWork{out, rank, in, experts, dtype});
  op.backward_weight.push_back(GemmWork{rank, in, out, experts, dtype});
  op.weight_gradient_elements = factors;
  const TensorIndex sum = op.outputs.front();
  add(std::move(op));
  return sum;
}

// y + (alpha/r) B A dropout(x) (arXiv 2106.09685). PEFT keeps the adapter in fp32 beside a 16-bit
// base and casts x to it: a copy of its own per adapted linear, which autocast casts back to
// 16 bits before the product (peft src/peft/tuners/lora/layer.py:1061-1063). Adapters that FSDP
// gathers in 16 bits cast nothing: PyTorch 2.15 and peft 0.21.2, FSDP1 and FSDP2 with a 16-bit
// param_dtype, hand A the very tensor that the linear reads.
TensorIndex GraphBuilder::add_adapter(std::string_view name, TensorIndex x, TensorIndex y,
                                      std::int64_t rows, std::int64_t in, std::int64_t out,
                                      std::int64_t experts) {
  const std::int64_t rank = workload_.adapter.rank;
  const Framework& framework = workload_.framework;
  const AdapterInput input = workload_.adapter.input;
  const bool gathered = adapters_gathered_in_16_bits(workload_, plan_);
  const bool fp32 = framework.adapters.dtype == DType::fp32 && !gathered;
  const bool casts = input == AdapterInput::copied && fp32 && element_ == 2;
  const bool wide = !framework.formats.autocast && (casts || (returns_wide_ && fp32));
  const DType dtype = wide ? DType::fp32 : workload_.product_dtype();
  const std::int64_t width = wide ? 4 : element_;
  const bool autocasts =
      fp32 && framework.formats.autocast && element_ == 2;  // A and B, each its gradient
  const bool dora = workload_.method == Method::dora;
  const std::int64_t copies = std::max<std::int64_t>(1, experts);
  const std::int64_t each = std::max<std::int64_t>(1, rows / copies);
  (experts > 0 ? graph_.parameters.expert_adapter : graph_.parameters.adapter) +=
      copies * (rank * (in + out) + (dora ? out : 0));
  graph_.parameters.modules += 2;  // A and B
  // One projection has one adapter.
  const bool joined = own_code().fused_qkv || framework.adapters.on_joined;
  TensorIndex seen = joined && adapted_ == x ? adapted_seen_ : x;
  const bool reads = input == AdapterInput::copied || input == AdapterInput::shared;
  if (seen == x && (casts || (reads && workload_.adapter.dropout > 0)))
    seen = prepared(*this, x, {rows, in, width, casts, casts && !wide});
  adapted_ = x;
  adapted_seen_ = seen;
  const std::int64_t lows = rows * rank * width;
  const TensorIndex low = tensor_bytes("adapter_low_rank", lows, MemoryCategory::temporaries, lows);
  Operator down;
  down.name = "adapter_down";
  down.kind = OperatorKind::matmul;
  down.inputs = {seen};
  down.outputs = {low};
  if (reads) down.saves = {seen};
  down.forward = {GemmWork{each, rank, in, copies, dtype}};
  down.backward = {GemmWork{each, in, rank, copies, dtype}};
  down.backward_weight = {weight_gradient(in, rank, each, dtype, copies)};
  down.weight_gradient_elements = copies * rank * in;
  if (autocasts) copy_adapter(down, copies * rank * in);
  const bool quantized = workload_.freezes_quantized();
  DoraShape weighed{rows, in, out, rank, copies, element_, width};
  weighed.read = input == AdapterInput::copied && fp32 ? 4 : element_;
  weighed.base = quantized ? 2 : casts_weights_ ? cast_from_ : element_;
  weighed.magnitude = fp32 ? 4 : element_;
  weighed.quantized = quantized;
  weighed.dropout = workload_.adapter.dropout > 0;
  weighed.dtype = dtype;
  if (dora) {
    if (quantized) {
      Operator unpacked;
      add_dequantization(unpacked, in * out);
      down.forward.insert(down.forward.end(), unpacked.forward.begin(), unpacked.forward.end());
    }
    add_column_norms(down, weighed);
  }
  add(std::move(down));
  const TensorIndex sum = dora ? tensor_bytes("adapter_result", rows * out * width,
                                              MemoryCategory::temporaries, rows * out * width)
                               : tensor(name, rows * out);
  Operator up;
  up.name = "adapter_up";
  up.kind = OperatorKind::matmul;
  up.inputs = {low};
  up.outputs = {sum};
  up.saves = {low};
  if (input == AdapterInput::scaled) up.saves.push_back(y);
  up.forward = {GemmWork{each, out, rank, copies, dtype}};
  up.backward = {GemmWork{each, rank, out, copies, dtype}};
  if (!dora) {
    up.inputs.push_back(y);
    scale_and_add(up, rows * out, width, element_);
    up.forward_temporary = Bytes(rows * out * width * (wide ? 2 : 1));
    up.backward_temporary = Bytes(rows * out * width);
  }
  up.backward_weight = {weight_gradient(rank, out, each, dtype, copies)};
  if (autocasts) copy_adapter(up, copies * rank * out);
  up.weight_gradient_elements = copies * rank * out;
  add(std::move(up));
  return dora ? scale_columns(*this, name, weighed, seen, y, sum) : sum;
}

}  // namespace shardwise
