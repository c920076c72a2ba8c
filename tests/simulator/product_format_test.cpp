#include <algorithm>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/parameter_state.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kernel_points.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

Workload small() { return pretraining(llama(1, 512, 8, 4, 1408, 1000), 128); }

bool all_products_are(const Workload& w, DType format) {
  const LayerGraph graph = block_graph(w, plan_of(1), {});
  return std::all_of(graph.operators.begin(), graph.operators.end(), [&](const Operator& op) {
    return std::all_of(op.forward.begin(), op.forward.end(), [&](const Kernel& k) {
      const auto* product = std::get_if<GemmWork>(&k);
      return product == nullptr || product->dtype == format;
    });
  });
}

std::int64_t tensor_bytes(const Workload& w) {
  std::int64_t sum = 0;
  for (const Tensor& t : block_graph(w, plan_of(1), {}).tensors) sum += t.bytes;
  return sum;
}

// Bytes that the linears move besides their products.
std::int64_t moved_by_linears(const Workload& w) {
  std::int64_t bytes = 0;
  for (const Operator& op : block_graph(w, plan_of(1), {}).operators) {
    if (op.kind != OperatorKind::matmul) continue;
    for (const std::vector<Kernel>& pass : {op.forward, op.backward})
      for (const Kernel& k : pass)
        if (const auto* m = std::get_if<MemoryWork>(&k)) bytes += m->moved.value;
  }
  return bytes;
}

}  // namespace

// Tensors stay fp32; only the tensor cores round what they read.
TEST_CASE("tf32 is the format of products, not of tensors", "[product_format]") {
  Workload single = small(), rounded = small();
  single.compute = DType::fp32;
  rounded.compute = DType::tf32;
  CHECK(all_products_are(single, DType::fp32));
  CHECK(all_products_are(rounded, DType::tf32));
  CHECK(tensor_bytes(rounded) == tensor_bytes(single));
}

// One byte per weight, and no constants: a scale for a whole matrix is nothing beside it.
TEST_CASE("frozen weights in 8 bits take a byte each", "[product_format]") {
  Workload w = small();
  w.method = Method::qlora;
  w.adapter.base = Quantization::fp8;
  LayerParameters parameters;
  parameters.linear = 1 << 20;
  const LayerState state = layer_state(w, plan_of(1), parameters, false);
  CHECK(state.weights == 1 << 20);
  CHECK(state.quantization == 0);
}

// Products of 8 bits read them as they are: the linears move what they do beside 16-bit weights.
// Products of 16 bits unpack them first, in both passes.
TEST_CASE("8-bit products read 8-bit weights as stored", "[product_format]") {
  Workload whole = small(), narrow = small();
  whole.method = Method::lora;
  narrow.method = Method::qlora;
  narrow.adapter.base = Quantization::fp8;
  whole.compute = narrow.compute = DType::fp8;
  CHECK(moved_by_linears(narrow) == moved_by_linears(whole));
  whole.compute = narrow.compute = DType::bf16;
  CHECK(moved_by_linears(narrow) > moved_by_linears(whole));
}

// 36 cycles of a lane for a weight that is looked up, 65 for one that is branched for, and 50,
// (36 + 65) / 2, in FP4, in both passes; 8 bits are a product.
TEST_CASE("unpacking 4 bits computes", "[product_format]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::qlora;
  const auto cycles = [&](Quantization base, LaneLoop how) {
    w.adapter.base = base;
    w.framework.quantized.four_bit_unpacking = how;
    double sum = 0;
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
      for (const auto* pass : {&op.forward, &op.backward}) sum += lane_cycles(*pass);
    return sum;
  };
  const std::int64_t weights = 512 * (2 * 512 + 2 * 256 + 3 * 1408);
  CHECK(cycles(Quantization::nf4, LaneLoop::four_bit_lookup) == 2 * 36 * weights);
  CHECK(cycles(Quantization::nf4_double, LaneLoop::four_bit_branches) == 2 * 65 * weights);
  CHECK(cycles(Quantization::nf4, LaneLoop::four_bit_fp4_branches) == 2 * 50 * weights);
  CHECK(cycles(Quantization::nf4, LaneLoop::none) == 0);
  CHECK(cycles(Quantization::int8, LaneLoop::four_bit_branches) == 0);
}

// Seven linears in both passes. A kernel each reads half a byte of a weight and 4 for every 64, and
// writes 2 of each. Constants in 8 bits are made fp32 by a kernel that reads 1 byte, and 4 for
// every 256 of them, and writes 4; another reads and writes those.
TEST_CASE("constants of 4 bits that are quantised take two kernels more", "[product_format]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::qlora;
  w.framework.quantized.four_bit_unpacking = LaneLoop::four_bit_lookup;
  struct Sum {
    std::int64_t bytes = 0, unpacked = 0;
    int launches = 0, unpacking = 0;
  };
  const auto of = [&](Quantization base) {
    w.adapter.base = base;
    Sum sum;
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
      for (const auto* pass : {&op.forward, &op.backward})
        for (const Kernel& k : *pass)
          if (const auto* memory = std::get_if<MemoryWork>(&k)) {
            sum.bytes += memory->moved.value;
            sum.launches += memory->launches;
            if (memory->lanes.steps == 0) continue;
            sum.unpacked += memory->moved.value;
            sum.unpacking += memory->launches;
          }
    return sum;
  };
  const std::int64_t weights = 512 * (2 * 512 + 2 * 256 + 3 * 1408), constants = weights / 64;
  const Sum once = of(Quantization::nf4), twice = of(Quantization::nf4_double);
  CHECK(once.unpacked == 2 * (weights / 2 + 4 * constants + 2 * weights));
  CHECK(once.unpacking == 2 * 7);
  CHECK(twice.unpacked == once.unpacked);
  CHECK(twice.bytes - once.bytes == 2 * (constants * (1 + 4 + 8) + constants / 256 * 4));
  CHECK(twice.launches - once.launches == 2 * 7 * 2);
}
