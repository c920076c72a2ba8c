// What dropout in front of a low-rank adapter moves.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t dropped_tokens = 256, dropped_width = 1024;

// Bytes of an element and launches, of what an adapter on q does to its input.
std::pair<std::int64_t, int> input_work(DType adapter, bool autocast, double dropout,
                                        std::vector<Kernel> Operator::*pass) {
  Workload w = pretraining(llama(2, dropped_width, 16, 4, 2816, 32000), dropped_tokens);
  w.method = Method::lora;
  w.framework.adapters.dtype = adapter;
  w.framework.formats.autocast = autocast;
  w.adapter.dropout = dropout;
  w.adapter.targets = {true, false, false, false, false, false, false, false, false};
  std::int64_t bytes = 0;
  int launches = 0;
  for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
    if (op.name == "adapter_input")
      for (const Kernel& k : op.*pass) {
        bytes += std::get<MemoryWork>(k).moved.value;
        launches += std::get<MemoryWork>(k).launches;
      }
  return {bytes / (dropped_tokens * dropped_width), launches};
}

}  // namespace

// An fp32 adapter reads a copy, 2 bytes read and 4 written, which autocast copies back, 4 and 2.
// Dropout between the two reads 4, writes 4 and a byte of mask; without a copy it reads and writes
// 2 and the mask. Backward the same, the mask read.
TEST_CASE("dropout before an adapter moves what was copied, and a mask", "[adapter_dropout]") {
  using Work = std::pair<std::int64_t, int>;
  for (const auto pass : {&Operator::forward, &Operator::backward}) {
    CHECK(input_work(DType::fp32, true, 0, pass) == Work{6 + 6, 2});
    CHECK(input_work(DType::fp32, true, 0.05, pass) == Work{6 + 9 + 6, 3});
    CHECK(input_work(DType::fp32, false, 0, pass) == Work{6, 1});
    CHECK(input_work(DType::fp32, false, 0.05, pass) == Work{6 + 9, 2});
    CHECK(input_work(DType::bf16, false, 0, pass) == Work{0, 0});
    CHECK(input_work(DType::bf16, false, 0.05, pass) == Work{5, 1});
  }
}

// q, k and v are one linear with one adapter, or three: each adapter's input is dropped apart.
TEST_CASE("one adapter on joined projections drops its input once", "[adapter_dropout]") {
  Workload w = pretraining(llama(2, dropped_width, 16, 4, 2816, 32000), dropped_tokens);
  w.method = Method::lora;
  w.framework.adapters.dtype = DType::bf16;
  w.adapter.dropout = 0.1;
  w.adapter.targets = {true, true, true, false, false, false, false, false, false};
  const auto inputs = [&w] {
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    return std::ranges::count(graph.operators, "adapter_input", &Operator::name);
  };
  CHECK(inputs() == 3);
  w.framework.adapters.on_joined = true;
  CHECK(inputs() == 1);
}

}  // namespace shardwise
