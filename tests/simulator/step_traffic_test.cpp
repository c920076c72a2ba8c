#include "simulator/step/step_traffic.hpp"

#include <algorithm>
#include <optional>

#include "tests/catch.hpp"
#include "tests/simulator/link_machines.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;
using namespace shardwise::link_machines;

namespace {

// The traffic of a plan on a cluster, with costs that a test fills in.
struct Setup {
  ParallelPlan plan;
  Cluster machines;
  LinkCalibration links = calibration();
  CollectiveModel collectives{machines, links};
  RankLayout layout{plan, machines};
  StepCosts costs;

  Setup(ParallelPlan p, Cluster c) : plan(std::move(p)), machines(std::move(c)) {
    costs.stages.resize(static_cast<std::size_t>(plan.pipeline));
  }

  void add(int stage, WorkKind work, GroupKind group, Collective collective, Bytes size) {
    const GroupShape shape =
        group == GroupKind::pipeline ? layout.pipeline_link(stage) : layout.shape(group);
    costs.stages[static_cast<std::size_t>(stage)].collectives.push_back(
        {work, group, shape, collective, size, collectives.time(collective, size, shape)});
  }
  StepTraffic traffic() const { return step_traffic(plan, machines, layout, collectives, costs); }
};

// Speeds of kinds on stages while all of them are active with all their members.
struct Active {
  FlowNetwork network;
  explicit Active(const StepTraffic& t) : network(t.network) {}
  void start(std::optional<FlowClassId> c, int members) {
    REQUIRE(c);
    network.start(*c, members);
  }
  double speed(std::optional<FlowClassId> c) {
    network.share();
    return network.speed(*c);
  }
};

// Four 4090s below one root complex, with 50 GB/s of host memory.
Cluster box() {
  Node n = node(4, IntraLink::pcie_host, 1);
  n.host_memory_bandwidth = BytesPerSecond(50e9);
  return cluster(rtx_4090(), n, 1, 4);
}

}  // namespace

// Memory serves 0.8 x 50 = 40 GB/s, a copied byte once: copies one way run at 40 / 4 = 10 GB/s per
// GPU. In and out together would be 80: each gets half. The optimizer alone reads and writes
// 40 / 4 = 10 GB/s per rank; beside copies to the GPUs, 4 (x + y) = 40 leaves both at 5, a half.
TEST_CASE("copies and the optimizer on the CPU share host memory", "[step_traffic]") {
  Setup s(plan_of(4), box());
  HostTraffic& host = s.costs.stages.front().host_traffic;
  host.copied_in = host.copied_out = Bytes(1'000'000'000);
  host.copy_rate = s.collectives.topology().host_copy(4);
  CHECK(host.copy_rate.value == Approx(10e9));
  const StepTraffic without = s.traffic();
  Active both(without);
  both.start(without.at(0, TrafficKind::copy_in), 4);
  CHECK(both.speed(without.at(0, TrafficKind::copy_in)) == Approx(1));
  both.start(without.at(0, TrafficKind::copy_out), 4);
  CHECK(both.speed(without.at(0, TrafficKind::copy_in)) == Approx(0.5));
  CHECK(both.speed(without.at(0, TrafficKind::copy_out)) == Approx(0.5));

  host.optimizer = Bytes(10'000'000'000);
  host.optimizer_rate = BytesPerSecond(10e9);
  const StepTraffic with = s.traffic();
  Active now(with);
  now.start(with.at(0, TrafficKind::copy_in), 4);
  now.start(with.at(0, TrafficKind::host_optimizer), 4);
  CHECK(now.speed(with.at(0, TrafficKind::copy_in)) == Approx(0.5));
  CHECK(now.speed(with.at(0, TrafficKind::host_optimizer)) == Approx(0.5));
  // One rank's optimizer still beside four copies: five share 40, 8 each.
  now.network.stop(*with.at(0, TrafficKind::host_optimizer), 3);
  CHECK(now.speed(with.at(0, TrafficKind::host_optimizer)) == Approx(0.8));
}

// 4090s cannot reach each other: a ring passes host memory twice per byte, so that an all-reduce of
// the box fills it alone, and offload copies beside it slow both down.
TEST_CASE("rings through host memory share it with copies", "[step_traffic]") {
  Setup s(plan_of(4), box());
  s.add(0, WorkKind::reduce_gradients, GroupKind::gradient, Collective::all_reduce,
        Bytes(1'000'000'000));
  CHECK(s.layout.shape(GroupKind::gradient).ranks == 4);
  HostTraffic& host = s.costs.stages.front().host_traffic;
  host.copied_in = Bytes(1'000'000'000);
  host.copy_rate = s.collectives.topology().host_copy(4);
  const StepTraffic t = s.traffic();
  Active now(t);
  now.start(t.at(0, TrafficKind::reduce), 1);
  CHECK(now.speed(t.at(0, TrafficKind::reduce)) == 1);
  now.start(t.at(0, TrafficKind::copy_in), 4);
  CHECK(now.speed(t.at(0, TrafficKind::reduce)) < 0.99);
  CHECK(now.speed(t.at(0, TrafficKind::copy_in)) < 0.99);
}

// Four nodes of eight H100s, TP8 PP2 DP2: a stage's gradients and its activations leave by the same
// eight NICs. A large all-reduce and large sends fill them alone, so each gets about half. The two
// stages play on nodes of their own: their reductions do not meet.
TEST_CASE("pipeline sends and gradient rings share the NICs", "[step_traffic]") {
  ParallelPlan plan = plan_of(2, 8, 2);
  Setup s(plan, hgx(h100(), 4));
  const Bytes large(4'000'000'000);
  for (int stage = 0; stage < 2; ++stage) {
    s.add(stage, WorkKind::reduce_gradients, GroupKind::gradient, Collective::all_reduce, large);
    s.add(stage, WorkKind::pipeline_send, GroupKind::pipeline, Collective::send_recv, large);
  }
  const StepTraffic t = s.traffic();
  Active now(t);
  now.start(t.at(0, TrafficKind::reduce), 8);
  now.start(t.at(1, TrafficKind::reduce), 8);
  CHECK(now.speed(t.at(0, TrafficKind::reduce)) == 1);
  now.start(t.at(1, TrafficKind::receive_forward), 16);
  CHECK(now.speed(t.at(0, TrafficKind::reduce)) == Approx(0.5).margin(0.03));
  CHECK(now.speed(t.at(1, TrafficKind::receive_forward)) == Approx(0.5).margin(0.03));
  // Gradients of activations go the other way: out of stage 1, into stage 0.
  now.network.stop(*t.at(1, TrafficKind::receive_forward), 16);
  now.start(t.at(0, TrafficKind::receive_backward), 16);
  CHECK(now.speed(t.at(1, TrafficKind::reduce)) == Approx(0.5).margin(0.03));
}

TEST_CASE("what shares no link is no flow", "[step_traffic]") {
  // One kind of collective on one stage, or two on nodes of their own.
  Setup one(plan_of(8), hgx(h100()));
  one.add(0, WorkKind::reduce_gradients, GroupKind::gradient, Collective::all_reduce,
          Bytes(1'000'000'000));
  CHECK(one.traffic().network.class_count() == 0);
  Setup two(plan_of(8, 1, 2), hgx(h100(), 2));
  for (int stage = 0; stage < 2; ++stage)
    two.add(stage, WorkKind::reduce_gradients, GroupKind::gradient, Collective::all_reduce,
            Bytes(1'000'000'000));
  CHECK(two.traffic().network.class_count() == 0);
}

// Nodes of one GPU. A tree over two of them sends all bytes once each way, 1 GB here in such a time
// that they take 0.6 of the way out; over three a node in the middle sends them up and down. A ring
// of gathers takes 0.3 of it: together 0.9, so that neither waits, or 1.5.
TEST_CASE("a tree leaves a node once where there are two, else twice", "[step_traffic]") {
  const auto slower = [](int nodes) {
    Setup s(plan_of(nodes), hgx(h100(), nodes, 1));
    const GroupShape shape = s.layout.shape(GroupKind::gradient);
    const double way_out = s.collectives.topology().network(shape, false).value;
    const Bytes size(1'000'000'000);
    CollectiveTime tree, ring;
    tree.algorithm = Algorithm::tree;
    tree.time = Seconds(1e9 / (0.6 * way_out));
    ring.algorithm = Algorithm::ring;
    ring.time = Seconds(1e9 * (nodes - 1) / nodes / (0.3 * way_out));
    tree.protocol = ring.protocol = Protocol::simple;
    s.costs.stages.front().collectives = {{WorkKind::reduce_gradients, GroupKind::gradient, shape,
                                           Collective::all_reduce, size, tree},
                                          {WorkKind::gather_parameters, GroupKind::gradient, shape,
                                           Collective::all_gather, size, ring}};
    const StepTraffic t = s.traffic();
    const auto reduce = t.at(0, TrafficKind::reduce), gather = t.at(0, TrafficKind::gather);
    if (!reduce && !gather) return 1.0;  // what fills no link is no flow
    Active now(t);
    now.start(reduce, 1);
    now.start(gather, 1);
    return std::min(now.speed(reduce), now.speed(gather));
  };
  CHECK(slower(2) == 1);
  CHECK(slower(3) < 0.95);
}
