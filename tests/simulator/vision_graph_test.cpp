// The vision tower as a layer: frozen weights that are always there, and a forward pass.
#include "simulator/graphs/vision_graph.hpp"

#include <algorithm>

#include "simulator/graphs/layer_script.hpp"
#include "simulator/model_partition.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/matmul_flops.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// Of Qwen2.5-VL-7B, with `layers` of its 32.
VisionTower tower(int layers, int text_hidden) {
  VisionTower v;
  v.layers = layers;
  v.hidden = 1280;
  v.heads = 16;
  v.ffn = 3420;
  v.gated_mlp = v.rms_norms = true;
  v.patch_values = 1176;
  v.window_patches = 64;
  v.global_layers = 1;
  v.text_hidden = text_hidden;
  return v;
}

Workload seeing(ImagesSeen images, Method method = Method::full) {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 1024);
  w.method = method;
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.layers.runs_transformers = true;
  w.model.vision = tower(8, w.model.hidden);
  w.images = images;
  return w;
}

LayerScript tower_script(const LayerGraph& graph) {
  return layer_script(graph, {.runs_again = std::vector<bool>(graph.operators.size(), false)});
}

// Bytes that the forward pass holds at most, its input aside.
std::int64_t peak_of(const LayerScript& script) {
  std::vector<std::int64_t> open(static_cast<std::size_t>(script.slots), 0);
  std::int64_t now = 0, most = 0;
  for (const MemoryEvent& e : script.forward) {
    const auto slot = static_cast<std::size_t>(e.slot);
    if (e.kind == EventKind::allocate) now += open[slot] = e.bytes;
    if (e.kind == EventKind::release) now -= std::exchange(open[slot], 0);
    most = std::max(most, now);
  }
  return most;
}

double forward_flops(const LayerGraph& graph) {
  double sum = 0;
  for (const Operator& op : graph.operators) sum += matmul_flops(op.forward);
  return sum;
}

}  // namespace

TEST_CASE("the layer has the tower's parameters, with and without images", "[vision]") {
  for (const int images : {0, 1, 3}) {
    const Workload w = seeing({images, 256});
    const LayerParameters p = vision_graph(w, plan_of(1)).parameters;
    CHECK(p.base() == w.model.vision->parameters());
    CHECK(p.adapter == 0);
  }
}

// AutoGPTQ packs the decoder's blocks; bitsandbytes every linear, the tower's too.
TEST_CASE("GPTQ leaves the tower in 16 bits", "[vision]") {
  Workload w = seeing({1, 256}, Method::qlora);
  w.adapter.base = Quantization::nf4;
  CHECK(vision_graph(w, plan_of(1)).parameters.linear > 0);
  w.adapter.base = Quantization::gptq;
  const LayerParameters p = vision_graph(w, plan_of(1)).parameters;
  CHECK(p.linear == 0);
  CHECK(p.other == w.model.vision->parameters());
}

// Every weight but biases and norms multiplies once per patch, those of the merger once per token
// of m = 4 patches. One image of 256 tokens is 1,024 patches:
//   patches and blocks 1176 h + L (3 h^2 + h^2 + 3 h f), merger ((m h)^2 + m h o) / m
TEST_CASE("the tower's products are those of its matrices", "[vision]") {
  const double h = 1280, f = 3420, o = 512;
  const double each = 1176 * h + 8 * (4 * h * h + 3 * h * f) + (16 * h * h + 4 * h * o) / 4;
  CHECK(forward_flops(vision_graph(seeing({1, 256}), plan_of(1))) == Approx(2 * 1024 * each));
  ParallelPlan two = plan_of(1);
  two.microbatch = 2;
  CHECK(forward_flops(vision_graph(seeing({3, 256}), two)) == Approx(6 * 2 * 1024 * each));
  CHECK(forward_flops(vision_graph(seeing({0, 256}), plan_of(1))) == 0);
}

TEST_CASE("attention sees windows, and the image in the global layers", "[vision]") {
  std::vector<AttentionWork> seen;
  for (const Operator& op : vision_graph(seeing({2, 256}), plan_of(1)).operators)
    for (const Kernel& k : op.forward)
      if (const auto* a = std::get_if<AttentionWork>(&k)) seen.push_back(*a);
  REQUIRE(seen.size() == 8);
  CHECK(seen.front().queries == 1024);  // 256 tokens of 4 patches
  CHECK(seen.front().batch == 2);
  CHECK(seen.back().queries == 64);
  CHECK(seen.back().batch == 32);  // 2 x 1024 / 64
  CHECK_FALSE(seen.back().causal);
}

// Frozen: no gradient comes this far, so autograd keeps nothing. What the pass holds at once was
// counted where PyTorch 2.15 runs transformers 5.23's class with eight of its layers: 44,178 bytes
// per patch, at 1,024 and at 4,096 patches.
TEST_CASE("a frozen tower keeps nothing for backward", "[vision]") {
  const Workload w = seeing({1, 1024});
  const LayerGraph graph = vision_graph(w, plan_of(1));
  const LayerScript script = tower_script(graph);
  const std::int64_t stream = 1024 * w.model.hidden * 2;
  CHECK(script.saved_bytes == 0);
  for (const Operator& op : graph.operators) CHECK(op.weight_gradient_elements == 0);
  CHECK(static_cast<double>(peak_of(script)) / 4096 == Approx(44'178.0).epsilon(0.1));
  // Backward: the gradient of the stream without the image tokens' part, and nothing else.
  std::int64_t made = 0;
  for (const MemoryEvent& e : script.backward)
    if (e.kind == EventKind::allocate) made += e.bytes;
  CHECK(made == stream);
}

TEST_CASE("the tower stands between the embedding and the first block, on one stage", "[vision]") {
  const Workload w = seeing({1, 256});
  ParallelPlan plan = plan_of(1, 1, 2);
  plan.microbatches = 4;
  const ModelPartition p = partition_model(w, plan, *find_pipeline_schedule(plan.schedule_row()),
                                           *recompute_policy("full"));
  const auto& first = p.stages[0][0].layers;
  REQUIRE(first.size() == 3);  // embedding, tower, one of two blocks
  CHECK(first[1].definition->role == LayerRole::vision);
  CHECK_FALSE(first[1].definition->trainable);
  CHECK_FALSE(first[1].definition->checkpointed);
  for (const ChunkLayer& layer : p.stages[1][0].layers)
    CHECK(layer.definition->role != LayerRole::vision);
}

// LoRA's targets are the language model's: the tower has no adapters.
TEST_CASE("adapters leave the tower alone", "[vision]") {
  Workload w = seeing({1, 256}, Method::lora);
  w.adapter.rank = 16;
  w.adapter.targets.q = w.adapter.targets.gate = true;
  CHECK(vision_graph(w, plan_of(1)).parameters.adapter == 0);
}
