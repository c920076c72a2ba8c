// Experts that Python calls one after the other.
#include <string>
#include <vector>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/block_time.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

// Every token takes two of `experts`, each gated, of 1,024 by 2,048.
Workload called_in_turn(int experts) {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  w.model.moe = MixtureOfExperts{experts, 2, 1024, 0, false, 0, 1};
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.experts.loops = true;
  return w;
}

LayerTime time_of(const Workload& w, int gpus = 1, int zero = 0) {
  ParallelPlan plan = plan_of(gpus);
  plan.zero_stage = zero;
  return block_time(
      w, plan, parse_gpus(known_facts().catalog, std::to_string(gpus) + "xA100-80GB")->front());
}

double per_operator() { return known_facts().profile.host.per_kernel[0].value; }

}  // namespace

// Forward each expert is nonzero, an index of its rows, three products, silu and its product with
// up, an index of its weights, a product with them and index_add_: 10. Backward 6 products and 14
// others: 20 (calibrate/count_looped_experts.py).
TEST_CASE("each expert of a loop takes the CPU 10 operators forward and 20 backward", "[experts]") {
  const LayerTime few = time_of(called_in_turn(8)), many = time_of(called_in_turn(24));
  CHECK((many.forward.host - few.forward.host).value == Approx(16 * 10 * per_operator()));
  const Seconds back = many.backward_input.host - few.backward_input.host +
                       (many.backward_weight.host - few.backward_weight.host);
  CHECK(back.value == Approx(16 * 20 * per_operator()));
}

// The CPU waits for the router, then with each expert: of eight turns seven end with a wait, the
// last goes on with the rest of the layer. Seven have 70 of the loop's 80 operators, and as each
// begins with an idle GPU they take the longer of what the CPU takes, and of the GPU behind it.
TEST_CASE("the CPU waits for the GPU in every turn of a loop of experts", "[experts]") {
  const LayerTime t = time_of(called_in_turn(8));
  REQUIRE(t.forward.waited.size() == 2);
  const IssuedWork& turns = t.forward.waited.back();
  CHECK(turns.host.value == Approx(70 * per_operator()));
  CHECK(turns.lead > Seconds(0));
  CHECK(turns.lead + turns.device() >= turns.host);
  CHECK(t.backward_input.waited.empty());
  Workload whole = called_in_turn(8);
  whole.framework.experts.loops = false;
  CHECK(time_of(whole).forward.waited.size() == 1);
}

// DPO's pair goes through the model and through its reference, each pass with a loop of its own.
TEST_CASE("Every forward pass waits in a loop of experts", "[experts]") {
  Workload w = called_in_turn(8);
  w.method = Method::full;
  w.prefer(preference_named("simpo"));
  const std::vector<IssuedWork> one = time_of(w).forward.waited;
  w.prefer(preference_named("dpo"));
  const std::vector<IssuedWork> two = time_of(w).forward.waited;
  REQUIRE(one.size() == 2);
  REQUIRE(two.size() == 4);
  for (const std::size_t loop : {1U, 3U}) {
    CHECK(two[loop].host.value == Approx(one[1].host.value));
    CHECK(two[loop].lead.value == Approx(one[1].lead.value));
  }
}

// 4,096 tokens to two experts each are 8,192 rows of 2,048 values, read and written.
TEST_CASE("the rows that a loop takes are of the format of the experts", "[experts]") {
  Workload w = called_in_turn(8);
  w.framework.formats.autocast = true;
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  for (const bool stored : {false, true}) {
    w.framework.experts.torch_grouped_products = stored;
    std::int64_t moved = 0;
    for (const Operator& op : block_graph(w, plan_of(1), {.experts = true}).operators)
      for (const Kernel& k : op.forward)
        if (const auto* memory = std::get_if<MemoryWork>(&k); memory && op.name == "dispatch")
          if (memory->access == MemoryAccess::gather) moved += memory->moved.value;
    CHECK(moved == 2 * 8192 * 2048 * (stored ? 4 : 2));
  }
}

// Eight experts of three linears each, where a grouped product has two tensors of all experts.
TEST_CASE("experts of a loop have gradients of their own", "[experts]") {
  Workload w = called_in_turn(8);
  const int looped = trained_tensors(block_graph(w, plan_of(1), {.experts = true}));
  w.framework.experts.loops = false;
  CHECK(looped - trained_tensors(block_graph(w, plan_of(1), {.experts = true})) == 8 * 3 - 2);
}

// ZeRO-3's hooks are around 8 x 3 modules more.
TEST_CASE("experts of a loop are modules of their own", "[experts]") {
  const auto hooks = [](bool loops) {
    Workload w = called_in_turn(8);
    w.framework.experts.loops = loops;
    w.framework.sharding.parameters.reshard_after_forward = true;
    w.framework.host.us_per_sharded_module = 0;
    const Seconds without = time_of(w, 8, 3).forward.host;
    w.framework.host.us_per_sharded_module = 100;
    return (time_of(w, 8, 3).forward.host - without).value;
  };
  CHECK(hooks(true) - hooks(false) == Approx(24 * 100e-6));
}

// A block of Llama 7B: q, k and v are 3 x 4,096^2 = 50.3 million elements, o and gate 61.9, up and
// down 90.2. Of Mixtral each expert's matrices are 58.7 million, and attention (q, k, v, o and the
// router, 42.0) goes with the first of 24. Three messages, which start three times, take longer
// than one.
TEST_CASE("ZeRO-3 fetches modules, in messages of 5e7 elements or more", "[experts]") {
  const auto parameters = [](const Workload& w) {
    const ModelPartition partition =
        partition_model(w, plan_of(16), *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
    return partition.stages[0][0].layers[1].definition->graph.parameters;
  };
  Workload w = pretraining(llama(1, 4096, 32, 32, 11008, 32000), 4096);
  const LayerParameters by_layer = parameters(w);
  w.framework.sharding.fetch_elements = 50'000'000;
  const LayerParameters by_module = parameters(w);
  CHECK(by_layer.fetches == 0);
  CHECK(by_module.fetches == 3);
  ParallelPlan plan = plan_of(16);
  plan.zero_stage = 3;
  const Cluster two = parse_gpus(known_facts().catalog, "16xA100-80GB")->front();
  const CostModel cost(w, plan, two, known_facts().profile);
  CHECK(cost.block_gathers(by_module, true).forward > cost.block_gathers(by_layer, true).forward);

  Workload mixture = pretraining(llama(1, 4096, 32, 8, 14336, 32000), 4096);
  mixture.model.moe = MixtureOfExperts{8, 2, 14336, 0, false, 0, 1};
  mixture.framework.experts.loops = true;
  mixture.framework.sharding.fetch_elements = 50'000'000;
  CHECK(parameters(mixture).fetches == 24);
}

// Of 202,383,360 elements of a block of Llama 7B (four of 4,096^2, three of 4,096 x 11,008 and two
// norms), run again: FSDP1 gathers them for that and for backward. Of ZeRO-3's those that are
// needed again within 1e8 elements are kept: half of 1e8 at the end of the layer.
TEST_CASE("A recomputation gathers weights that backward gathers again", "[experts]") {
  Workload w = pretraining(llama(1, 4096, 32, 32, 11008, 32000), 4096);
  w.framework.sharding.parameters.reshard_after_forward = true;
  ParallelPlan plan = plan_of(8);
  plan.zero_stage = 3;
  const auto backward_over_forward = [&](const char* recompute) {
    const ModelPartition partition =
        partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy(recompute));
    const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-80GB")->front();
    const CostModel model(w, plan, cluster, known_facts().profile);
    const LayerSchedule block = model.costs(partition).stages.front().chunks[0][1];
    return (*block.gather_backward + block.gather_again.value_or(Seconds(0))) /
           *block.gather_forward;
  };
  CHECK(backward_over_forward("full") == Approx(1));
  w.framework.sharding.fetch_reuse_elements = 100'000'000;
  CHECK(backward_over_forward("none") == Approx(1));
  CHECK(backward_over_forward("full") == Approx(2 - 0.5e8 / 202383360));
  w.framework.sharding.checkpoints_gather_again = true;
  CHECK(backward_over_forward("none") == Approx(1));
  CHECK(backward_over_forward("full") == Approx(2));
}

}  // namespace shardwise
