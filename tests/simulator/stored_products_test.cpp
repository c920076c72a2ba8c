// Products that autocast leaves in the format of their weights.
#include <string>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/layer_script.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

LayerGraph experts(bool as_stored, WeightRecipe weights, bool casts = false) {
  Workload w = pretraining(llama(1, 512, 8, 4, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 256, 0, false, 0, 1};
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.formats.autocast = true;
  w.framework.formats.pretrain_weights = weights;
  w.framework.experts.torch_grouped_products = as_stored;
  w.framework.experts.casts_grouped_products = casts;
  return block_graph(w, plan_of(1), {.experts = true});
}

std::int64_t bytes_of(const LayerGraph& graph, const std::string& name) {
  for (const Tensor& t : graph.tensors)
    if (t.name == name) return t.bytes;
  return 0;
}

}  // namespace

// 128 tokens go to two experts each: 256 rows of 512 values, and of 2 x 256 between. In 16 bits
// where autocast casts them, and where weights are of 16 bits themselves; in 32 where neither is.
TEST_CASE("experts' products are of the format of their weights", "[layer_graph]") {
  const LayerGraph cast = experts(false, WeightRecipe::fp32_with_half_compute),
                   stored = experts(true, WeightRecipe::fp32_with_half_compute),
                   half = experts(true, WeightRecipe::pure_half);
  for (const char* name : {"dispatch", "expert_up", "expert_down"}) {
    CHECK(bytes_of(cast, name) == 256 * 512 * 2);
    CHECK(bytes_of(half, name) == 256 * 512 * 2);
    CHECK(bytes_of(stored, name) == 256 * 512 * 4);
  }
  // Code of one's own that casts them first is as autocast is.
  const LayerGraph own = experts(true, WeightRecipe::fp32_with_half_compute, true);
  CHECK(bytes_of(own, "expert_up") == 256 * 512 * 2);
  // Of fp32 the grouped product is a loop over the experts.
  int products = 0;
  for (const Operator& op : stored.operators)
    for (const Kernel& k : op.forward)
      if (const auto* gemm = std::get_if<GemmWork>(&k)) {
        CHECK((gemm->dtype == DType::fp32) == gemm->looped);
        products += gemm->looped;
      }
  CHECK(products == 2);
  // Their gradients are fp32 from the start: no 16-bit ones stand beside them.
  const auto made_as_stored = [](const LayerGraph& graph) {
    ScriptOptions options;
    options.runs_again.assign(graph.operators.size(), false);
    int events = 0;
    for (const MemoryEvent& e : layer_script(graph, options).backward)
      events += e.kind == EventKind::stored_gradient;
    return events;
  };
  CHECK(made_as_stored(stored) == 2);
  CHECK(made_as_stored(cast) == 0);
}

// Frozen experts that bitsandbytes passes over are 16-bit, unless PEFT makes fp32 of them, which it
// is not called for from ZeRO-2 on: 128 tokens in two experts each, 256 rows of 512 values.
TEST_CASE("experts that PEFT has widened are multiplied in fp32", "[layer_graph]") {
  Workload w = pretraining(llama(1, 512, 8, 4, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 256, 0, false, 0, 1};
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.formats.autocast = w.framework.experts.torch_grouped_products = true;
  w.framework.formats.frozen_dtype = DType::bf16;
  w.framework.quantized.experts = w.framework.quantized.upcasts_unquantized = false;
  ParallelPlan plan = plan_of(2);
  const auto dispatched = [&] {
    return bytes_of(block_graph(w, plan, {.experts = true}), "dispatch");
  };
  CHECK(dispatched() == 256 * 512 * 2);
  w.framework.quantized.widens_whole_experts = true;
  CHECK(dispatched() == 256 * 512 * 4);
  const SeenSharding whole = seen_sharding(w, plan);
  plan.zero_stage = 2;
  CHECK(dispatched() == 256 * 512 * 2);
  CHECK(seen_sharding(w, plan) != whole);
  w.framework.quantized.upcasts_unquantized = true;
  CHECK(dispatched() == 256 * 512 * 4);
}

// MatMul8bitLt holds what it multiplied as an attribute of its context, where the hooks of a
// checkpoint that is not reentrant do not look: the inputs of query, key and value, of the output
// projection, of gate and up, and of down.
TEST_CASE("what an 8-bit product multiplied outlives a checkpoint", "[layer_graph]") {
  Workload w = pretraining(llama(1, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::qlora;
  const auto outliving = [&](Quantization base, bool reentrant) {
    w.adapter.base = base;
    w.framework.recompute.reentrant = reentrant;
    int n = 0;
    for (const Tensor& t : block_graph(w, plan_of(1), {}).tensors) n += t.outlives ? 1 : 0;
    return n;
  };
  CHECK(outliving(Quantization::int8, false) == 4);
  CHECK(outliving(Quantization::int8, true) == 0);
  CHECK(outliving(Quantization::nf4, false) == 0);
}

}  // namespace shardwise
