// GraphBuilder::add_adapter: what a low-rank adapter adds to its linear.
#include <utility>

#include "simulator/graph_builder.hpp"

namespace shardwise {
namespace {

MemoryWork traffic(double bytes, int launches) {
  return {ceil_bytes(bytes), launches, MemoryAccess::streaming};
}

double as_double(std::int64_t n) { return static_cast<double>(n); }

}  // namespace

// y + (alpha/r) B A dropout(x) (arXiv 2106.09685). PEFT keeps the adapter in fp32 beside a 16-bit
// base and casts x to it: a copy of its own per adapted linear, which autocast casts back to
// 16 bits before the product (peft src/peft/tuners/lora/layer.py:1061-1063).
void GraphBuilder::add_adapter(const LinearSpec& spec, TensorIndex x, TensorIndex y,
                               std::int64_t rows, std::int64_t in, std::int64_t out) {
  const std::int64_t rank = workload_.adapter.rank;
  const Framework& framework = workload_.framework;
  const AdapterInput input = workload_.adapter.input;
  const bool casts =
      input == AdapterInput::copied && framework.adapter_dtype == DType::fp32 && element_ == 2;
  const bool wide =
      !framework.autocast && (casts || (returns_wide_ && framework.adapter_dtype == DType::fp32));
  const DType dtype = wide ? DType::fp32 : workload_.product_dtype();
  const std::int64_t width = wide ? 4 : element_;
  const double moved = as_double(rows * in);
  const bool dora = workload_.method == Method::dora;
  graph_.parameters.adapter += rank * (in + out) + (dora ? out : 0);
  graph_.parameters.modules += 2;  // A and B

  TensorIndex seen = x;
  const bool reads = input == AdapterInput::copied || input == AdapterInput::shared;
  if (casts || (reads && workload_.adapter.dropout > 0)) {
    seen = tensor_bytes("adapter_input", rows * in * width, MemoryCategory::temporaries,
                        rows * in * width);
    Operator prepare;
    prepare.name = "adapter_input";
    prepare.inputs = {x};
    prepare.outputs = {seen};
    if (casts && !wide && bytes_of(x) == rows * in * element_)
      prepare.forward_temporary = Bytes(4 * rows * in);
    prepare.forward = {traffic(moved * static_cast<double>(element_ + width), 1)};
    prepare.backward = {traffic(moved * static_cast<double>(element_ + width), 1)};
    if (workload_.adapter.dropout > 0) {
      const TensorIndex mask =
          tensor_bytes("adapter_dropout_mask", rows * in, MemoryCategory::temporaries, 0);
      prepare.outputs.push_back(mask);
      prepare.saves = {mask};
    }
    add(std::move(prepare));
  }
  const TensorIndex low = tensor_bytes("adapter_low_rank", rows * rank * width,
                                       MemoryCategory::temporaries, rows * rank * width);
  Operator down;
  down.name = "adapter_down";
  down.kind = OperatorKind::matmul;
  down.inputs = {seen};
  down.outputs = {low};
  if (reads) down.saves = {seen};
  down.forward = {GemmWork{rows, rank, in, 1, dtype}};
  down.backward = {GemmWork{rows, in, rank, 1, dtype}};
  down.backward_weight = {GemmWork{in, rank, rows, 1, dtype}};
  down.weight_gradient_elements = rank * in;
  if (dora) {  // the column norms of W + BA are taken over a materialised weight
    down.forward.push_back(traffic(6.0 * as_double(in * out), 4));
    down.forward_temporary = Bytes(in * out * element_);
  }
  add(std::move(down));

  const TensorIndex sum = tensor(spec.name, rows * out);
  Operator up;
  up.name = "adapter_up";
  up.kind = OperatorKind::matmul;
  up.inputs = {low, y};
  up.outputs = {sum};
  up.saves = {low};
  if (input == AdapterInput::scaled) up.saves.push_back(y);
  up.forward = {GemmWork{rows, out, rank, 1, dtype},
                traffic(as_double(rows * out) * static_cast<double>(2 * width + 3 * element_), 2)};
  up.backward = {GemmWork{rows, rank, out, 1, dtype},
                 traffic(as_double(rows * out) * static_cast<double>(width + element_), 1)};
  up.backward_weight = {GemmWork{rank, out, rows, 1, dtype}};
  up.weight_gradient_elements = rank * out + (dora ? out : 0);
  up.forward_temporary = Bytes(rows * out * width * (wide ? 2 : 1));
  up.backward_temporary = Bytes(rows * out * width);
  add(std::move(up));
}

}  // namespace shardwise
