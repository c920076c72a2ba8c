// CUDA graphs of parts of a layer: what the CPU still issues, and what is copied beside them.
#include "simulator/graphs/captured_parts.hpp"

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

using Scope = GraphScope;

// 64 experts of which every token takes eight, 4,096 tokens of width 2,048: 16,777,216 B.
Workload graphed_experts(GraphScopes scopes, bool once) {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  w.framework.experts.dispatches_once = once;
  w.graph_scopes = scopes;
  return w;
}

LayerTime graphed_block(const Workload& w, const char* gpus = "8xH100-SXM") {
  const Cluster cluster = parse_gpus(known_facts().catalog, gpus)->front();
  ParallelPlan plan = plan_of(cluster.gpus());
  if (w.model.moe) plan.expert = cluster.gpus();
  const CostModel cost(w, plan, cluster, known_facts().profile);
  const KernelModel kernels(cluster.groups.front().gpu, known_facts().profile, {});
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  std::vector<CollectiveUse> uses;
  return cost.layer_time(*partition.stages[0][0].layers[1].definition, kernels, &uses);
}

struct Saved {
  double forward, backward, weights;  // CPU seconds
};

Saved saved_by(GraphScopes scopes, bool once) {
  const LayerTime plain = graphed_block(graphed_experts({}, once));
  const LayerTime graphed = graphed_block(graphed_experts(scopes, once));
  return {(plain.forward.host - graphed.forward.host).value,
          (plain.backward_input.host - graphed.backward_input.host).value,
          (plain.backward_weight.host - graphed.backward_weight.host).value};
}

// Operators of the block in one of its graphs, by name.
std::string held(const Workload& w, BlockKind kind) {
  const ParallelPlan plan = plan_of(1);
  const LayerGraph graph = block_graph(w, plan, kind);
  const CapturedParts parts(graph, w, plan);
  std::string names;
  for (std::size_t i = 0; i < graph.operators.size(); ++i)
    if (parts.holds(i, MemoryWork{})) names += std::string(graph.operators[i].name) + " ";
  return names;
}

}  // namespace

// Forward the graph of router and preprocessing holds a norm, the router's product and its map, one
// kernel each, 19 operators of PyTorch's own that choose, 12 that count and the permutation's two
// kernels; where a dispatcher sends every token once, neither the 12 nor the two. Backward two
// kernels of the norm, one of the router, 10 operators, the two, and two sums that autograd makes
// itself: of what router and dispatch read, and of the stream. One tensor is copied in forward,
// the block's middle; two gradients are in backward, of the scores and of what is sent.
// The gradient of the router's weight is a kernel of its own, that of the norm's none.
TEST_CASE("the CPU launches one graph for what it holds of a layer", "[experts]") {
  const HostCalibration& host = known_facts().profile.host;
  const double fused = host.per_kernel[1].value, plain = host.per_kernel[0].value;
  const double launch = host.per_looped_launch.value;
  const double forward = host.per_graph_forward.value + launch;
  const double backward = host.per_graph_backward.value + 2 * launch;
  const GraphScopes both{Scope::moe_router, Scope::moe_preprocess};
  const Saved all_to_all = saved_by(both, false);
  CHECK(all_to_all.forward == Approx(5 * fused + 31 * plain - forward));
  CHECK(all_to_all.backward == Approx(5 * fused + 10 * plain + 2 * launch - backward));
  CHECK(all_to_all.weights == Approx(fused));
  const Saved once = saved_by(both, true);
  CHECK(once.forward == Approx(3 * fused + 19 * plain - forward));
  CHECK(once.backward == Approx(3 * fused + 10 * plain + 2 * launch - backward));
  const Saved router = saved_by({Scope::moe_router}, false);
  CHECK(router.forward == Approx(once.forward));
  CHECK(router.backward == Approx(once.backward));
}

// With attention in the same graph there is one launch less than of two, and no copy of the middle
// in forward: the block's input instead, and the mask, which is made and then copied. 3 x 4,096^2 B
// and 2 x 16,777,216 B, three kernels. In backward the middle's gradient comes from the last sum.
TEST_CASE("one graph holds all parts of a layer, and is handed tensors", "[experts]") {
  const HostCalibration& host = known_facts().profile.host;
  const GraphScopes both{Scope::moe_router, Scope::moe_preprocess};
  const Saved apart = saved_by(both, true), attention = saved_by({Scope::attn}, true);
  const Saved one = saved_by({Scope::attn, Scope::moe_router, Scope::moe_preprocess}, true);
  const double launch = host.per_looped_launch.value;
  CHECK(one.forward - apart.forward - attention.forward ==
        Approx(host.per_graph_forward.value + launch));
  CHECK(one.backward - apart.backward - attention.backward ==
        Approx(host.per_graph_backward.value));
  const LayerTime without = graphed_block(graphed_experts({}, true));
  const LayerTime with = graphed_block(graphed_experts({Scope::attn}, true));
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xH100-SXM")->front();
  const KernelModel kernels(cluster.groups.front().gpu, known_facts().profile, {});
  CHECK((with.forward.compute - without.forward.compute).value ==
        Approx(kernels.memory_bound(Bytes(3 * 4096 * 4096 + 2 * 16'777'216), 3).value));
  CHECK((with.backward_input.compute - without.backward_input.compute).value ==
        Approx(kernels.memory_bound(Bytes(2 * 16'777'216), 1).value));
}

// What the CPU waits for is counted inside, and read outside.
TEST_CASE("counts of tokens are waited for behind the graph that makes them", "[experts]") {
  const GraphScopes most{Scope::attn, Scope::moe_router, Scope::moe_preprocess};
  const LayerTime graphed = graphed_block(graphed_experts(most, true));
  const HostCalibration& host = known_facts().profile.host;
  REQUIRE(graphed.forward.waited.size() == 1);
  CHECK(graphed.forward.waited.front().host.value ==
        Approx(host.per_graph_forward.value + 3 * host.per_looped_launch.value));
  CHECK(graphed.forward.host > graphed.forward.waited.front().host);
}

TEST_CASE("scopes of CUDA graphs hold the layers of their kind") {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  w.graph_scopes = {Scope::mamba, Scope::moe_router};
  CHECK(held(w, {}) == "");
  w.graph_scopes = {Scope::mlp};
  CHECK(held(w, {}) == "mlp_norm up gate swiglu down residual_add ");
  const std::string first = [&] {
    w.graph_scopes = {Scope::attn};
    return held(w, {});
  }();
  CHECK(first.find("attention_norm ") == 0);
  CHECK(first.rfind("residual_add ") == first.size() - 13);
  CHECK(first.find("mlp_norm") == std::string::npos);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  w.model.moe->shared_expert_ffn = 1024;
  w.graph_scopes = {Scope::moe_router};
  const BlockKind experts{true, true, false, LayerMixer::attention_and_mlp};
  CHECK(held(w, experts) == "mlp_norm router routing up gate swiglu down ");
  w.graph_scopes = {Scope::moe_preprocess};
  CHECK(held(w, experts) == "");
  w.graph_scopes = {Scope::mlp};
  CHECK(held(w, experts) == "");
}

// A layer of one mixer is a graph of its own, wholly held, and reads and hands on one tensor.
TEST_CASE("a graph holds a mixer's layer from its norm to its sum") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.model.norms.per_layer = 1;
  w.model.mixers = "M*";
  w.model.mamba = StateSpace{16, 64, 4, 128, 4, 128};
  BlockKind mamba, attention;
  mamba.mixer = LayerMixer::mamba;
  attention.mixer = LayerMixer::attention;
  w.graph_scopes = {Scope::mamba};
  CHECK(held(w, attention) == "");
  const ParallelPlan plan = plan_of(1);
  const LayerGraph graph = block_graph(w, plan, mamba);
  const CapturedParts parts(graph, w, plan);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) CHECK(parts.holds(i, MemoryWork{}));
  REQUIRE(parts.begins(0) != nullptr);
  CHECK(parts.begins(0)->forward.launches == 1);
  CHECK(parts.begins(0)->forward.moved == Bytes(2 * 256 * 512 * 2));
  CHECK(parts.begins(0)->backward.launches == 1);
  CHECK(parts.begins(1) == nullptr);
}

}  // namespace shardwise
