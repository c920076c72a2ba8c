// Which products a compiler may pad, and what it would copy for that.
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t padded_tokens = 256, padded_hidden = 512;

Workload compiled_workload() {
  Workload w = pretraining(gpt(2, padded_hidden, 8), padded_tokens);
  w.framework.layers.kernels = KernelStyle::compiled;
  return w;
}

GemmWork product_of(const LayerGraph& graph, std::string_view name,
                    std::vector<Kernel> Operator::*pass) {
  for (const Operator& op : graph.operators)
    if (op.name == name)
      for (const Kernel& k : op.*pass)
        if (const auto* gemm = std::get_if<GemmWork>(&k)) return *gemm;
  FAIL("no such product");
  return {};
}

}  // namespace

// The MLP's first weight is 512 x 2,048: forward it is read in the other order, backward as it is
// stored, or as autocast has just made it. Its own gradient wants that of the output, 256 x 2,048,
// in the other order, but only where one of its lengths is out of line.
TEST_CASE("products of a compiled layer may be padded", "[padded_lengths]") {
  Workload w = compiled_workload();
  const auto up = [&](std::vector<Kernel> Operator::*pass) {
    return product_of(block_graph(w, plan_of(1), {}), "up", pass);
  };
  CHECK(up(&Operator::forward).padding);
  CHECK(up(&Operator::forward).padding_transposes == 512 * 2048);
  CHECK(up(&Operator::backward).padding_copies == 512 * 2048);
  CHECK(up(&Operator::backward_weight).padding);
  CHECK(up(&Operator::backward_weight).padding_transposes == 0);
  w.model.ffn = 2047;
  CHECK(up(&Operator::backward_weight).padding_transposes == 256 * 2047);
  w.framework.formats.autocast = true;
  CHECK(up(&Operator::backward).padding_copies == 0);
  w.framework.layers.leaves_odd_lengths = true;
  CHECK_FALSE(up(&Operator::forward).padding);
  w = compiled_workload();
  w.framework.layers.kernels = KernelStyle::eager;
  CHECK_FALSE(up(&Operator::forward).padding);
}

// What is gathered again stands before the product, and casts to 8 bits do.
TEST_CASE("other kernels may stand before a product that is padded", "[padded_lengths]") {
  Workload w = compiled_workload();
  ParallelPlan p = plan_of(1, 2);
  p.sequence_parallel = true;
  w.framework.parallel.regathers_sequence = true;
  const LayerGraph graph = block_graph(w, p, {});
  CHECK(product_of(graph, "up", &Operator::backward_weight).padding);
  w.compute = DType::fp8;
  CHECK_FALSE(product_of(block_graph(w, p, {}), "up", &Operator::forward).padding);
}

// A head is among what is compiled where the whole model is.
TEST_CASE("a head is padded where the whole model is compiled", "[padded_lengths]") {
  Workload w = compiled_workload();
  const auto pads = [&] {
    return product_of(head_graph(w, plan_of(1), false), "lm_head", &Operator::forward).padding;
  };
  CHECK_FALSE(pads());
  w.framework.layers.compiles_whole_model = true;
  CHECK(pads());
}

}  // namespace shardwise
