// What DTensors take the CPU beside the operators that are called on them.
#include <array>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/block_time.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// Of a checkpointed block on two GPUs: forward, run again, backward.
std::array<double, 3> host_times(const Workload& w, ParallelPlan plan, const Profile& profile) {
  plan.recompute = "full";
  const Cluster cluster = parse_gpus(known_facts().catalog, "2xA100-SXM-80GB")->front();
  const LayerTime t = block_time(w, plan, cluster, profile);
  return {t.forward.host.value, t.recompute.host.value, t.backward_input.host.value};
}

// In the time of eager operators, which the CPU issues in 19.7 us each.
std::array<double, 3> dispatch_operators(const Workload& w, const ParallelPlan& plan) {
  Profile bare = known_facts().profile;
  bare.host.dtensor_forward = bare.host.dtensor_backward = 0;
  std::array<double, 3> more = host_times(w, plan, known_facts().profile);
  const std::array<double, 3> without = host_times(w, plan, bare);
  for (std::size_t i = 0; i < more.size(); ++i) more[i] = (more[i] - without[i]) / 19.7e-6;
  return more;
}

}  // namespace

// Seven linears and two norms, each 24 operators' time in a forward pass, run again or not, and 43
// backward; the linears alone where norms read the whole stream.
TEST_CASE("DTensors take the CPU the same for every linear and norm", "[cost]") {
  Workload w = pretraining(llama(1, 1024, 16, 8, 2816, 1000), 1024);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.parallel.dtensor = true;
  const auto all_are = [](const std::array<double, 3>& found, double forward, double backward) {
    CHECK(found[0] == Approx(forward).margin(1e-6));
    CHECK(found[1] == Approx(forward).margin(1e-6));
    CHECK(found[2] == Approx(backward).margin(1e-6));
  };
  ParallelPlan plan = plan_of(1, 2);
  all_are(dispatch_operators(w, plan), 7 * 24, 7 * 43);
  plan.sequence_parallel = true;
  all_are(dispatch_operators(w, plan), 9 * 24, 9 * 43);
  // Nothing is cut, another framework cuts it, or a compiler has dispatched once and for all.
  all_are(dispatch_operators(w, plan_of(2)), 0, 0);
  w.framework.layers.kernels = KernelStyle::compiled;
  all_are(dispatch_operators(w, plan_of(1, 2)), 0, 0);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.parallel.dtensor = false;
  all_are(dispatch_operators(w, plan_of(1, 2)), 0, 0);
}
