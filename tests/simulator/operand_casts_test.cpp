#include <set>
#include <stdexcept>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/parameter_state.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kernel_points.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

struct Moved {
  double forward = 0, backward = 0, weight = 0;
};

double moved(const std::vector<Kernel>& kernels) {
  double bytes = 0;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k)) bytes += static_cast<double>(m->moved.value);
  return bytes;
}

// What the linears of a block move besides their products, less what they do in 16 bits.
Moved casts(Workload w, const ParallelPlan& plan) {
  Moved out;
  for (const double sign : {1.0, -1.0}) {
    if (sign < 0) w.compute = DType::bf16;
    for (const Operator& op : block_graph(w, plan, {}).operators) {
      if (op.kind != OperatorKind::matmul) continue;
      out.forward += sign * moved(op.forward);
      out.backward += sign * moved(op.backward);
      out.weight += sign * moved(op.backward_weight);
    }
  }
  return out;
}

Bytes gathered(const Workload& w, const ParallelPlan& plan) {
  for (const Operator& op : block_graph(w, plan, {}).operators)
    if (op.name == "gather_sequence") return std::get<CommWork>(op.forward.front()).size;
  return Bytes(0);
}

Workload in_fp8() {
  Workload w = pretraining(llama(1, 512, 8, 4, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.layers.fused_norms = true;
  w.compute = DType::fp8;
  return w;
}

// 128 tokens; q, k and v read one tensor, gate and up another: 512 + 512 + 512 + 1,408 inputs that
// are cast. Outputs: q 512, k and v 256, o 512, gate and up 1,408, down 512.
constexpr double cast_tokens = 128;
constexpr double inputs = cast_tokens * (512 + 512 + 512 + 1408);
constexpr double cast_outputs = cast_tokens * (512 + 2 * 256 + 512 + 2 * 1408 + 512);
constexpr double input_gradients = cast_tokens * (3 * 512 + 512 + 2 * 512 + 1408);
constexpr double weights = 512.0 * (512 + 2 * 256 + 512 + 3 * 1408);

}  // namespace

// Read in 16 bits, written twice in 8: 4 bytes.
TEST_CASE("one scale for a tensor: each operand is cast once", "[casts]") {
  const Moved m = casts(in_fp8(), plan_of(1));
  CHECK(m.forward == 4 * inputs);
  CHECK(m.backward == 4 * cast_outputs);
  CHECK(m.weight == 0);
}

// Where products read operands in either order Transformer Engine writes one: 2 + 1 bytes. Scales
// of blocks belong to an order, and other libraries' products want both: 4 as before.
TEST_CASE("one scale for a tensor: written once where products read either order", "[casts]") {
  Workload w = in_fp8();
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.narrow.weights_twice = false;
  const Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 3 * inputs);
  CHECK(m.backward == 3 * cast_outputs);
  w.compute = DType::mxfp8;
  CHECK(casts(w, plan_of(1)).forward == 4 * inputs);
  w.compute = DType::fp8;
  w.framework.layers.kernels = KernelStyle::eager;
  CHECK(casts(w, plan_of(1)).forward == 4 * inputs);
}

// NVFP4 in Transformer Engine: read for both largest values and to be written, 2 + 2 bytes, and
// written twice in 4 bits with a scale of a byte for sixteen, 2 x (1/2 + 1/16): 5.125. Where rows
// and columns are written by a kernel each they read it once more.
TEST_CASE("four bits: one kernel looks for largest values, one or two write", "[casts]") {
  Workload w = in_fp8();
  w.compute = DType::nvfp4;
  w.framework.layers.kernels = KernelStyle::fused;
  Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 5.125 * inputs);
  CHECK(m.backward == 5.125 * cast_outputs);
  w.framework.narrow.quantizes_apart = true;
  m = casts(w, plan_of(1));
  CHECK(m.forward == 7.125 * inputs);
  CHECK(m.backward == 7.125 * cast_outputs);
  w.framework.layers.kernels = KernelStyle::compiled;
  CHECK(casts(w, plan_of(1)).forward == 4 * inputs);
}

// torchao's operands of NVFP4 are read for their largest values, 2 bytes, and again to be written
// both ways, 2 + 2 x (1/2 + 1/16): 5.125, input and weight forward and the gradient backward. What
// takes their time is the writing, 73 cycles of a lane for an element of an input (21 to search),
// 159 of a weight, and 103 of a gradient, rounded stochastically.
TEST_CASE("four bits by torchao: kernels that compute longer than they move", "[casts]") {
  Workload w = in_fp8();
  w.compute = DType::nvfp4;
  w.framework.layers.kernels = KernelStyle::compiled;
  w.framework.narrow.weight_cast = WeightCast::each_pass;
  const Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 5.125 * (inputs + weights));
  CHECK(m.backward == 5.125 * cast_outputs);
  CHECK(m.weight == 0);
  double forward = 0, backward = 0;
  for (const Operator& op : block_graph(w, plan_of(1), {}).operators) {
    forward += lane_cycles(op.forward);
    backward += lane_cycles(op.backward);
  }
  CHECK(forward == (21 + 73) * inputs + 159 * weights);
  CHECK(backward == (21 + 103) * cast_outputs);
}

// Rows 3 bytes, columns 5; a weight's rows 3 and columns 7; 4 for what is rescaled.
TEST_CASE("a scale for each row: rows and columns are cast apart, weights too", "[casts]") {
  Workload w = in_fp8();
  w.framework.narrow.scales_rows = true;
  const Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 3 * (inputs + weights));
  CHECK(m.backward == 3 * cast_outputs + 7 * weights + 4 * input_gradients);
  CHECK(m.weight == 5 * (inputs + cast_outputs) + 4 * weights);
}

// 128 tokens of width 512: a byte each where they are cast before, and each of four ranks casts a
// quarter of what is gathered.
TEST_CASE("sequence parallelism gathers 8 bits where the framework does, with one scale",
          "[casts]") {
  Workload w = in_fp8();
  ParallelPlan plan = plan_of(1, 4);
  plan.sequence_parallel = true;
  CHECK(gathered(w, plan) == Bytes(2 * 128 * 512));
  const double before = casts(w, plan).forward;
  w.framework.narrow.gathers_sequence = true;
  CHECK(gathered(w, plan) == Bytes(128 * 512));
  // Two gathered tensors of 128 x 512 (of q, k, v; of gate and up): 3/4 of 4 bytes less for each.
  CHECK(before - casts(w, plan).forward == 2 * 0.75 * 4 * 128 * 512);
  w.framework.narrow.scales_rows = true;
  CHECK(gathered(w, plan) == Bytes(2 * 128 * 512));
}

TEST_CASE("asynchronous tensor parallelism hides what a rescaling does not part", "[casts]") {
  Workload w = in_fp8();
  ParallelPlan plan = plan_of(1, 4);
  plan.sequence_parallel = plan.async_tensor = true;
  const auto hidden = [&] {
    int count = 0;
    for (const Operator& op : block_graph(w, plan, {}).operators)
      if (op.kind == OperatorKind::communication)
        for (const auto* list : {&op.forward, &op.backward})
          for (const Kernel& k : *list) count += std::get<CommWork>(k).beside_compute;
    return count;
  };
  CHECK(hidden() == 8);  // two gathers and two sums, forward and backward
  w.framework.narrow.scales_rows = true;
  w.framework.parallel.overlap_tensor_backward = false;
  CHECK(hidden() == 2);  // the sums of forward
}

// Two bytes more to look for the largest value: of every output gradient, and of what attention and
// the activation made, 512 and 1,408 wide. What a norm made it has looked at itself.
TEST_CASE("a scale of the largest value: an operand is read once more", "[casts]") {
  Workload w = in_fp8();
  w.framework.narrow.current_scaling = true;
  const Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 4 * inputs + 2 * cast_tokens * (512 + 1408));
  CHECK(m.backward == 6 * cast_outputs);
  CHECK(m.weight == 0);
}

// torchao keeps no weight in 8 bits: each forward pass scans it (2 bytes) and casts it (3), each
// backward pass casts it again (3).
TEST_CASE("weights that every pass casts anew", "[casts]") {
  Workload w = in_fp8();
  w.framework.narrow.weight_cast = WeightCast::each_pass;
  const Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 4 * inputs + 5 * weights);
  CHECK(m.backward == 4 * cast_outputs + 3 * weights);
  CHECK(m.weight == 0);
}

// Cast before they travel, in a share of each rank that no product sees: backward transposes a byte
// of each. Four ranks gather 512 x 512 x 2 + 512 x 256 x 2 + 3 x 512 x 1,408 = 2,949,120 weights of
// linears with a byte less.
TEST_CASE("weights that are gathered in 8 bits", "[casts]") {
  Workload w = in_fp8();
  w.framework.narrow.weight_cast = WeightCast::gathered;
  const Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 4 * inputs);
  CHECK(m.backward == 4 * cast_outputs + 2 * weights);
  ParallelPlan plan = plan_of(4);
  plan.zero_stage = 3;
  LayerParameters p;
  p.linear = static_cast<std::int64_t>(weights);
  const std::int64_t narrow = layer_state(w, plan, p, true).gathered;
  w.framework.narrow.weight_cast = WeightCast::each_pass;
  CHECK(layer_state(w, plan, p, true).gathered - narrow == 2949120);
}

// Scales of blocks need no scan: weight and input are cast by rows forward and by columns backward,
// 3 bytes each time, the output gradient both ways at once.
TEST_CASE("weights and inputs with scales of blocks that every pass casts anew", "[casts]") {
  Workload w = in_fp8();
  w.compute = DType::mxfp8;
  w.framework.narrow.weight_cast = WeightCast::each_pass;
  const Moved m = casts(w, plan_of(1));
  CHECK(m.forward == 3 * (inputs + weights));
  CHECK(m.backward == 6 * cast_outputs + 3 * weights);
  CHECK(m.weight == 3 * inputs);
}

// A compiler looks for the largest value of what it writes element by element; 512 columns of the
// attention's output are read once more.
TEST_CASE("a compiled model scans only what no kernel of its own made", "[casts]") {
  Workload w = in_fp8();
  w.framework.layers.kernels = KernelStyle::compiled;
  const double before = casts(w, plan_of(1)).forward;
  const double gradients = casts(w, plan_of(1)).backward;
  w.framework.narrow.current_scaling = true;
  CHECK(casts(w, plan_of(1)).forward - before == 2 * cast_tokens * 512);
  CHECK(casts(w, plan_of(1)).backward == gradients);
}

// Of the same seven linears with fused kernels: a copy of each tensor that is read, 1 byte, MXFP8
// 33/32, NVFP4 9/16 with its scales. Where a forward pass makes the weight for the backward pass
// too, both copies of it, 2 bytes, stay with them.
TEST_CASE("what narrow products keep for backward", "[casts]") {
  Workload w = in_fp8();
  w.framework.layers.kernels = KernelStyle::fused;
  const auto kept = [&](std::string_view name) {
    const LayerGraph g = block_graph(w, plan_of(1), {});
    std::set<TensorIndex> saved;
    for (const Operator& op : g.operators) saved.insert(op.saves.begin(), op.saves.end());
    double bytes = 0;
    for (const TensorIndex t : saved) {
      const Tensor& tensor = g.tensors[static_cast<std::size_t>(t)];
      if (tensor.name == name) bytes += static_cast<double>(tensor.bytes);
    }
    return bytes;
  };
  CHECK(kept("narrow_input") == inputs);
  CHECK(kept("narrow_weight") == 0);
  w.framework.narrow.weights = NarrowWeights::saved;
  CHECK(kept("narrow_weight") == 2 * weights);
  w.compute = DType::mxfp8;
  CHECK(kept("narrow_input") == inputs * 33 / 32);
  w.compute = DType::nvfp4;
  CHECK(kept("narrow_input") == inputs * 9 / 16);
  CHECK(kept("narrow_weight") == weights * 9 / 8);
}

namespace {

const Operator& attention_in(const LayerGraph& g) {
  for (const Operator& op : g.operators)
    if (op.name == "attention") return op;
  throw std::runtime_error("a block without attention");
}

double bytes_kept_by(const LayerGraph& g, const Operator& op) {
  double bytes = 0;
  for (const TensorIndex t : op.saves)
    bytes += static_cast<double>(g.tensors[static_cast<std::size_t>(t)].bytes);
  return bytes;
}

bool reads_narrow(const Operator& op) {
  return std::get<AttentionWork>(op.forward.back()).narrow_operands;
}

}  // namespace

// 128 tokens; queries and result of 8 heads of 64, keys and values of 4. Of an element 2 bytes are
// read, 2 written and 2/32 of scales, which two kernels read and write: 2 + 2 + 5 x 2/32 = 4.3125.
// Kept are 2 + 2/32 bytes of q, k and v each, where it were 2; result and statistics as before.
TEST_CASE("attention in 8 bits: q, k, v and the result's gradient are cast both ways", "[casts]") {
  Workload w = in_fp8();
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.attention.kernel = AttentionKernel::cudnn;
  w.compute = DType::mxfp8;
  const LayerGraph half = block_graph(w, plan_of(1), {});
  w.framework.narrow.attention = true;
  const LayerGraph narrow = block_graph(w, plan_of(1), {});
  const Operator &before = attention_in(half), &op = attention_in(narrow);
  CHECK(reads_narrow(op));
  CHECK_FALSE(reads_narrow(before));
  const double operands = cast_tokens * (512 + 2 * 256);
  CHECK(moved(op.forward) == 4.3125 * operands);
  CHECK(moved(op.backward) == 4.3125 * cast_tokens * 512);
  CHECK(moved(before.forward) + moved(before.backward) == 0);
  CHECK(bytes_kept_by(narrow, op) - bytes_kept_by(half, before) == operands * 2 / 32);
  w.compute = DType::fp8;  // with one scale for a tensor it is another kernel, not modelled
  CHECK_FALSE(reads_narrow(attention_in(block_graph(w, plan_of(1), {}))));
  w.compute = DType::mxfp8;
  w.framework.attention.kernel = AttentionKernel::flash;
  CHECK_FALSE(reads_narrow(attention_in(block_graph(w, plan_of(1), {}))));
}

// Its product alone runs in another format: of 16 bits, and of 8 where it is asked for.
TEST_CASE("the head's product in 8 bits, where it is asked for", "[casts]") {
  Workload w = in_fp8();
  w.compute = DType::mxfp8;
  const auto format = [&] {
    for (const Operator& op : head_graph(w, plan_of(1), false).operators)
      if (op.name == "lm_head") return std::get<GemmWork>(op.forward.front()).dtype;
    throw std::runtime_error("no head");
  };
  CHECK(format() == DType::bf16);
  w.framework.narrow.head = true;
  CHECK(format() == DType::mxfp8);
  w.compute = DType::bf16;
  CHECK(format() == DType::bf16);
}
