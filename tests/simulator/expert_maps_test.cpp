// The maps by which rows of tokens are moved, and the gradient of the weights of rows.
#include <algorithm>
#include <string_view>
#include <variant>
#include <vector>

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kernel_points.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

// 64 experts of which each of 4,096 tokens takes eight: 32,768 rows of 2,048 on every rank, and a
// gated MLP of 1,024.
Workload mapped_model() {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.experts.moves_rows_by_maps = true;
  w.compute = DType::bf16;
  return w;
}

Operator operator_of(const Workload& w, std::string_view name, int expert_ranks = 8) {
  ParallelPlan plan = plan_of(8);
  plan.expert = expert_ranks;
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  const auto& operators = partition.stages[0][0].layers[1].definition->graph.operators;
  const auto found = std::find_if(operators.begin(), operators.end(),
                                  [&](const Operator& op) { return op.name == name; });
  INFO(name);
  REQUIRE(found != operators.end());
  return *found;
}

std::int64_t traffic_bytes(const std::vector<Kernel>& kernels) {
  std::int64_t sum = 0;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k)) sum += m->moved.value;
  return sum;
}

}  // namespace

// 64 numbers are sorted in 6 x 7 / 2 = 21 stages by 128 threads: 128 x 21 x 92 = 247,296 cycles of
// each of 4,096 tokens. A row adds up 64 chunks: 30,000 + 64 x 99 = 36,336 cycles of each of
// 32,768, there and back. Backward takes the same maps.
TEST_CASE("where rows of experts go is found by kernels that compute", "[experts]") {
  Workload w = mapped_model();
  const std::int64_t tokens = 4096LL * 247'296, chunks = 32'768LL * 36'336;
  CHECK(lane_cycles(operator_of(w, "dispatch").forward) == tokens + chunks);
  CHECK(lane_cycles(operator_of(w, "combine").forward) == chunks);
  CHECK(lane_cycles(operator_of(w, "dispatch").backward) == 0);
  // One expert on each of 64 ranks has nothing to sort.
  CHECK(lane_cycles(operator_of(w, "dispatch", 64).forward) == tokens);
  CHECK(lane_cycles(operator_of(w, "combine", 64).forward) == 0);
  // 512 experts: 512 x 45 x 92 = 2,119,680 and 30,000 + 512 x 99 = 80,688.
  w.model.moe->experts = 512;
  CHECK(lane_cycles(operator_of(w, "dispatch").forward) == 4096LL * 2'119'680 + 32'768LL * 80'688);
  w.pads_experts = true;  // chunks of one capacity are transposed
  CHECK(lane_cycles(operator_of(w, "dispatch").forward) == 4096LL * 2'119'680);
  CHECK(lane_cycles(operator_of(w, "combine").forward) == 0);
  w.pads_experts = false;
  w.framework.experts.dispatches_once = true;
  CHECK(lane_cycles(operator_of(w, "dispatch").forward) == 0);
}

// A rank that has all 64 experts sorts as well: one more copy, which is read and written.
TEST_CASE("rows are sorted by expert on a single rank of experts", "[experts]") {
  Workload w = mapped_model();
  const std::int64_t copy = 2LL * 32'768 * 2048 * 2;
  const auto dispatched = [&] { return traffic_bytes(operator_of(w, "dispatch", 1).backward); };
  const std::int64_t sorted = dispatched();
  w.framework.experts.moves_rows_by_maps = false;
  CHECK(sorted - dispatched() == copy);
}

// Gate and up, the result's gradient and both gradients: 5 values of each of 32,768 x 1,024. The
// gradient of a row's weight reads gate, up and the result's gradient once more.
TEST_CASE("the gradient of the weights of rows is a kernel of its own", "[experts]") {
  Workload w = mapped_model();
  const std::int64_t values = 32'768LL * 1024 * 2;
  CHECK(traffic_bytes(operator_of(w, "expert_activation").backward) == 5 * values);
  w.framework.experts.weighs_in_activation = true;
  CHECK(traffic_bytes(operator_of(w, "expert_activation").forward) == 3 * values);
  CHECK(traffic_bytes(operator_of(w, "expert_activation").backward) == 8 * values);
}

}  // namespace shardwise
