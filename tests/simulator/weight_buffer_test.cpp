// Weights that move into one flat tensor when a sharded optimizer is made, and what it steps.
#include <vector>

#include "simulator/memory/memory_play.hpp"
#include "simulator/memory/stage_holdings.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t a_mib = 1 << 20;

// Megatron's distributed optimizer, its states on the host.
Workload remapping() {
  Workload w = pretraining(llama(4, 512, 8, 8, 2048, 64), 1);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.update.remaps_weights = true;
  return w;
}

double above_loaded(const Workload& w, const ParallelPlan& plan) {
  const StageMemory m = first_stage(w, plan);
  return static_cast<double>((m.first_step.allocated - m.loaded).value);
}

}  // namespace

// Four blocks of 4 h^2 + 3 h f = 4 Mi parameters, tables of 64 words: 16 Mi parameters. While they
// move, 2 B each as built and 2 B in the flat tensor stand beside 4 B of gradients; then 2 B go.
// One token's activations are next to nothing, and a step adds up its gradients one by one.
TEST_CASE("Weights are there twice while they move into one tensor", "[memory_play]") {
  Workload w = remapping();
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 1;
  plan.offload.optimizer = true;
  const double moved = 2.0 * 16 * a_mib;
  CHECK(above_loaded(w, plan) == Approx(moved).epsilon(0.03));
  CHECK(static_cast<double>(first_stage(w, plan).loaded.value) == Approx(3 * moved).epsilon(0.03));
  plan.zero_stage = 0;  // no sharded optimizer: no buffer of weights
  CHECK(above_loaded(w, plan) < 0.5 * moved);
  plan = plan_of(1);  // one rank has a sharded optimizer where that is the default
  plan.offload.optimizer = true;
  CHECK(above_loaded(w, plan) < 0.5 * moved);
  w.framework.defaults.zero_stage = 1;
  CHECK(above_loaded(w, plan) == Approx(moved).epsilon(0.03));
  w.method = Method::lora;  // frozen weights stay where they are
  CHECK(above_loaded(w, plan) < 0.5 * moved);
}

// Tables of 32,000 words of 512 values, embedding and head: 2 x 4 B x 16,384,000 in fp32 while they
// load. One token's activations and the states of adapters are next to nothing.
TEST_CASE("Tables are fp32 for a moment while they load", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 2048, 32000), 1);
  w.method = Method::lora;
  const ParallelPlan plan = plan_of(1);
  const double wide = 2.0 * 4 * 32000 * 512;
  CHECK(above_loaded(w, plan) < 0.2 * wide);
  w.framework.loading.widens_tables = true;
  CHECK(above_loaded(w, plan) == Approx(wide).epsilon(0.03));
}

// The reference of preference training is no part of the buffer: it is loaded before, 2 B each.
TEST_CASE("A frozen copy does not move", "[memory_play]") {
  Workload w = remapping();
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 1;
  plan.offload.optimizer = true;
  w.method = Method::full;
  const double alone = above_loaded(w, plan);
  w.prefer(preference_named("dpo"));
  REQUIRE(w.copies_reference());
  CHECK(above_loaded(w, plan) == Approx(alone).epsilon(0.03));
}

// Two layers of matrices of 3 and 1 Mi elements, 8 Mi over two ranks: 4 Mi are stepped, 4 B each.
// In buckets every matrix is shared: a quarter and three of 8 MiB a layer. As one run the first
// rank has the last layer whole, and nothing of the other.
TEST_CASE("A shard is a part of each matrix or a run of whole ones", "[stage_holdings]") {
  LayerGraph graph;
  graph.operators.resize(2);
  graph.operators[0].weight_gradient_elements = 3 * a_mib;
  graph.operators[1].weight_gradient_elements = a_mib;
  std::vector<std::vector<LayerHoldings>> layers(1);
  for (int i = 0; i < 2; ++i) {
    LayerHoldings h;
    h.graph = &graph;
    layers.front().push_back(std::move(h));
  }
  std::vector<std::int64_t> parts;
  const auto note = [&](std::int64_t bytes) {
    if (bytes > 0) parts.push_back(bytes);
  };
  by_matrix(layers.front().front(), 8 * a_mib, note);
  CHECK(parts == std::vector<std::int64_t>{6 * a_mib, 2 * a_mib});
  parts.clear();
  by_run(layers, 16 * a_mib, 4 * a_mib, note);
  CHECK(parts == std::vector<std::int64_t>{4 * a_mib, 12 * a_mib});
  parts.clear();
  by_run(layers, 20 * a_mib, 5 * a_mib, note);
  CHECK(parts == std::vector<std::int64_t>{4 * a_mib, 12 * a_mib, 4 * a_mib});
}

// It is a run where nothing is cut into buckets to be reduced behind the backward pass.
TEST_CASE("Only a buffer without buckets is stepped as one run", "[stage_holdings]") {
  Framework f = remapping().framework;
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 1;
  f.gradients.overlap_reduce = false;
  CHECK(StageHabits(f, plan).steps_run);
  f.gradients.overlap_reduce = true;
  CHECK(StageHabits(f, plan).remaps_weights);
  CHECK_FALSE(StageHabits(f, plan).steps_run);
}

}  // namespace shardwise
