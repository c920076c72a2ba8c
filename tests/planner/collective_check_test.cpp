// Pipelines whose ranks meet on the CPU before every collective.
#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "simulator/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const Facts& facts() {
  static const Facts loaded = *load_facts(source_dir() + "/catalog", std::nullopt);
  return loaded;
}

// CPU time of one block's forward pass; four collectives among four tensor ranks.
Seconds forward_host(const char* gpus, const char* plan_text, bool checks) {
  Workload w = pretraining(llama(4, 1024, 16, 16, 2816, 32000), 512);
  w.checks_collectives = checks;
  Profile profile = facts().profile;
  profile.host.collective_check = Seconds(100e-6);
  profile.host.collective_check_between_nodes = Seconds(300e-6);
  const ParallelPlan plan = *parse_plan(plan_text);
  const Cluster cluster = parse_gpus(facts().catalog, gpus)->front();
  const CostModel cost(w, plan, cluster, profile);
  const KernelModel kernels(cluster.groups.front().gpu, profile, {});
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  return cost.layer_time(*partition.stages[0][0].layers[1].definition, kernels).forward.host;
}

}  // namespace

// 4 collectives x 4 ranks x 100 us = 1.6 ms more, over two nodes only and with a pipeline only.
TEST_CASE("a check before every collective costs the CPU time per rank", "[cost_model]") {
  const char* pipeline = "tp=4,pp=2,dp=2,sp=true,ga=2";
  const Seconds more =
      forward_host("16xH100-SXM", pipeline, true) - forward_host("16xH100-SXM", pipeline, false);
  CHECK(more.value == Approx(1.6e-3));
  // Of sixteen ranks on two nodes eight are elsewhere: 4 x (8 x 100 + 8 x 300 us) = 12.8 ms.
  const char* wide = "tp=16,pp=2,sp=true,ga=2";
  const Seconds far =
      forward_host("32xH100-SXM", wide, true) - forward_host("32xH100-SXM", wide, false);
  CHECK(far.value == Approx(12.8e-3));
  CHECK(forward_host("16xH100-SXM", "tp=4,dp=4,sp=true", true) ==
        forward_host("16xH100-SXM", "tp=4,dp=4,sp=true", false));
  CHECK(forward_host("8xH100-SXM", "tp=4,pp=2,sp=true,ga=2", true) ==
        forward_host("8xH100-SXM", "tp=4,pp=2,sp=true,ga=2", false));
}

}  // namespace shardwise
