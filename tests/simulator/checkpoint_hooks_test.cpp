#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/block_time.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// What a block's re-run takes the CPU.
Seconds host_of_rerun(const Workload& w, const Profile& profile, const char* recompute) {
  ParallelPlan plan = plan_of(1);
  plan.recompute = recompute;
  const Cluster cluster = parse_gpus(known_facts().catalog, "1xA100-SXM-80GB")->front();
  return block_time(w, plan, cluster, profile).recompute.host;
}

// In the time of eager operators, which the CPU issues in 19.7 us each.
double checkpoint_operators(const Workload& w, const char* recompute) {
  Profile bare = known_facts().profile;
  bare.host.reentrant_checkpoint = bare.host.checkpoint = bare.host.per_checkpointed_tensor = 0;
  const Seconds more =
      host_of_rerun(w, known_facts().profile, recompute) - host_of_rerun(w, bare, recompute);
  return more.value / 19.7e-6;
}

}  // namespace

// A reentrant checkpoint takes 25 operators' time whatever the block holds; without one, none.
TEST_CASE("a reentrant checkpoint takes the CPU the same for every block", "[cost]") {
  Workload w = pretraining(gpt(1, 1024, 16), 1024);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.recompute.reentrant = true;
  CHECK(checkpoint_operators(w, "full") == Approx(25));
  CHECK(checkpoint_operators(w, "none") == Approx(0));
}

// 14 operators' time, and 2 for each tensor that autograd saves. Of a GPT block: 2 of each norm
// (input, statistics), the inputs of six matmuls, 5 of attention (q, k, v, output, statistics), the
// input of GELU, 16 in all, and the weights of six matmuls and two norms: 14 + 2 x 24.
TEST_CASE("a checkpoint that is not reentrant calls Python for every saved tensor", "[cost]") {
  Workload w = pretraining(gpt(1, 1024, 16), 1024);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.recompute.reentrant = false;
  CHECK(checkpoint_operators(w, "full") == Approx(62));
}

// A compiler takes the checkpoint into its graph.
TEST_CASE("a compiled checkpoint calls no Python", "[cost]") {
  Workload w = pretraining(gpt(1, 1024, 16), 1024);
  w.framework.layers.kernels = KernelStyle::compiled;
  CHECK(checkpoint_operators(w, "full") == Approx(0));
}
