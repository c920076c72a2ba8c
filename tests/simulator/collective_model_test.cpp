#include "simulator/network/collective_model.hpp"

#include <set>
#include <string>
#include <vector>

#include "tests/simulator/link_machines.hpp"

using namespace shardwise;
using namespace shardwise::link_machines;

namespace {

// Machines that differ in kind of link, GPU generation and network.
struct Box {
  std::string name;
  Cluster cluster;
};
std::vector<Box> boxes() {
  Node tray = node(4, IntraLink::nvswitch, 2, 4, 50);
  tray.nvlink_domain_nodes = 18;
  return {
      {"2 x 4090", cluster(rtx_4090(), node(2, IntraLink::pcie_host, 1), 1, 2)},
      {"8 x 4090", cluster(rtx_4090(), node(8, IntraLink::pcie_host), 1, 8)},
      {"8 x L40S below switches", cluster(l40s(), node(8, IntraLink::pcie_switch), 1, 8)},
      {"4 x 3090 in pairs", cluster(rtx_3090(), node(4, IntraLink::nvlink_pairs, 1), 1, 4)},
      {"8 x V100", cluster(v100(), node(8, IntraLink::nvlink_mesh), 1, 8)},
      {"8 x MI300X", cluster(mi300x(), node(8, IntraLink::nvswitch), 1, 8)},
      {"8 x A100", hgx(a100())},
      {"8 x H100", hgx(h100())},
      {"4 nodes of A100", hgx(a100(), 4)},
      {"16 nodes of H100", hgx(h100(), 16)},
      {"4 desktops on 10 GbE", cluster(rtx_4090(), node(1, IntraLink::pcie_host, 1, 1, 1.25), 4, 1,
                                       network(1.25, 0.9, 30))},
      {"NVL72", cluster(b200(), tray, 18, 4, network(50, 0.91, 1.3))},
      {"2 x NVL72", cluster(b200(), tray, 36, 4, network(50, 0.91, 1.3))},
  };
}

std::vector<GroupShape> shapes_of(const Cluster& c) {
  std::vector<GroupShape> shapes;
  const int world = c.gpus(), node = gpus_per_node(c);
  for (int ranks = 1; ranks <= world; ranks *= 2)
    for (int stride = 1; ranks * stride <= world; stride *= 2)
      shapes.push_back(group_shape(ranks, stride, node, world));
  shapes.push_back(group_shape(world, 1, node, world));
  return shapes;
}

std::vector<Collective> all_collectives() {
  std::vector<Collective> kinds;
  for (std::size_t k = 0; k < collective_count; ++k) kinds.push_back(static_cast<Collective>(k));
  return kinds;
}

// A pair of ranks; other collectives take any group.
bool makes_sense(Collective kind, const GroupShape& s) {
  return kind != Collective::send_recv || s.ranks == 2;
}

GroupLinks plain_links(const LinkCalibration& links, int ranks) {
  GroupLinks l;
  l.ranks = l.local = ranks;
  l.kind = PathKind::nvl;
  l.ring = l.exchange = BytesPerSecond(100e9);
  l.generation = &links.generation("nvidia", 8.0);
  l.calibration = &links;
  l.compute_capability = 8.0;
  return l;
}

const CollectiveRow& row_of(Algorithm algorithm, Protocol protocol) {
  for (const CollectiveRow& row : collective_rows)
    if (row.algorithm == algorithm && row.protocol == protocol) return row;
  throw std::logic_error("no such row");
}

constexpr Bytes mebibyte(std::int64_t{1} << 20);

// What must cross a rank's port, or a node's NICs. All-reduce, gather and scatter: a rank sends at
// least the (n-1)/n S that others own, and a node the (N-1)/N S that other nodes own. Only the
// direction that is loaded least counts, so that no algorithm, in-switch reduction included, is
// below this.
Seconds port_bound(const GroupLinks& l, Collective kind, Bytes size) {
  if (l.ranks <= 1) return Seconds(0);
  const double bytes = static_cast<double>(size.value);
  const bool whole = kind == Collective::broadcast || kind == Collective::send_recv;
  if (l.nodes == 1) {
    const double rate = std::max(l.ring.value, l.exchange.value);
    return Seconds(bytes * (whole ? 1.0 : (l.ranks - 1.0) / l.ranks) / rate);
  }
  double leaving = whole ? bytes : bytes * (l.nodes - 1.0) / l.nodes;
  if (kind == Collective::all_to_all) leaving = bytes * l.local * (l.ranks - l.local) / l.ranks;
  return Seconds(leaving / l.network.value);
}

}  // namespace

TEST_CASE("a ring moves 2(n-1)/n of the bytes to reduce, (n-1)/n to gather", "[collective]") {
  const LinkCalibration links = tuner_alone();
  const CollectiveRow& ring = row_of(Algorithm::ring, Protocol::simple);
  for (const int n : {2, 3, 4, 8, 72}) {
    const GroupLinks l = plain_links(links, n);
    const auto transfer = [&](Collective kind) {
      return ring.time(kind, Bytes(1'000'000'000), Protocol::simple, l).transfer.value;
    };
    // 1 GB over 100 GB/s: 10 ms for each time that all bytes pass a link.
    CHECK(transfer(Collective::all_reduce) == Approx(0.01 * 2 * (n - 1) / n));
    CHECK(transfer(Collective::all_gather) == Approx(0.01 * (n - 1) / n));
    CHECK(transfer(Collective::reduce_scatter) == Approx(0.01 * (n - 1) / n));
    CHECK(transfer(Collective::broadcast) == Approx(0.01));
  }
}

TEST_CASE("over NVLink a rank's own part passes its ring's kernels too", "[collective]") {
  LinkCalibration links = tuner_alone();
  for (GpuGeneration& g : links.generations) {
    g.ring_fraction = 0.8;
    g.own_share = 0.5;
    g.own_share_of_all_reduce = 0.4;
  }
  const CollectiveRow& ring = row_of(Algorithm::ring, Protocol::simple);
  GroupLinks l = plain_links(links, 4);
  const auto ms = [&](Collective kind) {
    return 1e3 * ring.time(kind, Bytes(1'000'000'000), Protocol::simple, l).transfer.value;
  };
  // A quarter of 1 GB in 3 steps and half a one, over 80 GB/s: 250 x 3.5 / 80 = 10.94 ms; reduced
  // 250 x 6.4 / 80 = 20 ms; from one to all 1 GB, 12.5 ms.
  CHECK(ms(Collective::all_gather) == Approx(250 * 3.5 / 80));
  CHECK(ms(Collective::all_reduce) == Approx(250 * 6.4 / 80));
  CHECK(ms(Collective::broadcast) == Approx(12.5));
  // Over PCIe the link is what is slow, not the kernel: 250 x 3 / 100 = 7.5 ms.
  l.kind = PathKind::pxb;
  CHECK(ms(Collective::all_gather) == Approx(7.5));
}

TEST_CASE("filling the channels takes as long as sending, up to their depth", "[collective]") {
  const LinkCalibration plain = tuner_alone();
  LinkCalibration filled = plain;
  for (GpuGeneration& g : filled.generations) {
    g.filling_least = Seconds(4e-6);
    g.filling_most = Seconds(25e-6);
  }
  const Cluster box = hgx(a100());
  const GroupShape eight = group_shape(8, 1, 8, 8);
  const auto more_us = [&](Collective kind, double bytes) {
    const Bytes size(static_cast<std::int64_t>(bytes));
    return 1e6 * (CollectiveModel(box, filled).time(kind, size, eight).time -
                  CollectiveModel(box, plain).time(kind, size, eight).time)
                     .value;
  };
  // 7/8 of 2.4 MB over 300 x 0.8 = 240 GB/s: 8.75 us, and 4; of 24 MB 87.5, so 25.
  CHECK(more_us(Collective::all_gather, 2.4e6) == Approx(12.75));
  CHECK(more_us(Collective::all_gather, 24e6) == Approx(25));
  CHECK(more_us(Collective::all_to_all, 2.4e6) == Approx(8.75));
  CHECK(more_us(Collective::send_recv, 24e6) == Approx(0).margin(1e-9));
}

TEST_CASE("a ring's latency is a base and its hops", "[collective]") {
  // src/graph/tuning.cc:403-413 on one node: Simple 8.4 + 2(n-1) x 3.4 us, LL 6.6 + 2(n-1) x 0.6.
  const LinkCalibration links = calibration();
  const GroupLinks l = plain_links(links, 8);
  const auto us = [&](Protocol p) {
    const CollectiveRow& ring = row_of(Algorithm::ring, p);
    return ring.time(Collective::all_reduce, mebibyte, p, l).latency.value * 1e6;
  };
  CHECK(us(Protocol::simple) == Approx(8.4 + 14 * 3.4));
  CHECK(us(Protocol::ll) == Approx(6.6 + 14 * 0.6));
  CHECK(us(Protocol::ll128) == Approx(14.0 + 14 * 1.9));
}

TEST_CASE("a tree's latency grows with the logarithm of the nodes", "[collective]") {
  // :414-417: LL 6.8 + 2 x (7 x 0.6 + log2(N) x 5.0).
  const LinkCalibration links = calibration();
  const CollectiveRow& tree = row_of(Algorithm::tree, Protocol::ll);
  for (const auto& [nodes, depth] : {std::pair{2, 1}, {4, 2}, {16, 4}, {64, 6}}) {
    GroupLinks l = plain_links(links, 8);
    l.nodes = nodes;
    l.ranks = 8 * nodes;
    l.nics = 8;
    l.network = BytesPerSecond(200e9);
    CHECK(tree.time(Collective::all_reduce, mebibyte, Protocol::ll, l).latency.value * 1e6 ==
          Approx(6.8 + 2 * (7 * 0.6 + depth * 5.0)));
  }
}

TEST_CASE("in-switch reduction sends S(1 + 1/n)", "[collective]") {
  // 8 x H200, 16 GiB: 275.6 GB/s algorithm bandwidth measured (stas00/ml-engineering);
  // 450 x 0.824 x 0.85 / (1 + 1/8) = 280.2 predicted, before latency.
  const LinkCalibration links = calibration();
  const Cluster c = hgx(h100());
  const CollectiveModel model(c, links);
  const GroupShape s = group_shape(8, 1, 8, 8);
  const Bytes size(std::int64_t{16} << 30);
  const CollectiveTime t = model.time(Collective::all_reduce, size, s);
  CHECK(t.algorithm_name() == "NVLS");
  const double rate = static_cast<double>(size.value) / t.time.value / 1e9;
  CHECK(rate == Approx(450 * 0.824 * 0.85 / (1 + 1.0 / 8)).epsilon(0.002));
  CHECK(rate == Approx(275.6).epsilon(0.03));
}

TEST_CASE("bus bandwidth factors are those of nccl-tests", "[collective]") {
  CHECK(bus_factor(Collective::all_reduce, 8) == Approx(1.75));
  CHECK(bus_factor(Collective::all_gather, 8) == Approx(0.875));
  CHECK(bus_factor(Collective::reduce_scatter, 8) == Approx(0.875));
  CHECK(bus_factor(Collective::all_to_all, 8) == Approx(0.875));
  CHECK(bus_factor(Collective::broadcast, 8) == 1.0);
  CHECK(bus_factor(Collective::send_recv, 2) == 1.0);
  const LinkCalibration links = calibration();
  const Cluster c = hgx(a100());
  const CollectiveModel model(c, links);
  const CollectiveTime t = model.time(Collective::all_reduce, mebibyte, group_shape(8, 1, 8, 8));
  CHECK(t.bus_bandwidth.value == Approx(1.75 * 1048576 / t.time.value));
}

TEST_CASE("a model that remembers says the same, and the same again", "[collective]") {
  const LinkCalibration links = calibration();
  const Cluster c = hgx(h100());
  const CollectiveModel plain(c, links);
  CollectiveModel remembering(c, links);
  remembering.remember();
  for (int round = 0; round < 2; ++round)
    for (const GroupShape& shape : shapes_of(c))
      for (const Collective kind : all_collectives())
        for (const Bytes size : {Bytes(0), Bytes(1000), mebibyte}) {
          const CollectiveTime a = plain.time(kind, size, shape);
          const CollectiveTime b = remembering.time(kind, size, shape);
          CHECK(a.time == b.time);
          CHECK(a.algorithm == b.algorithm);
          CHECK(a.protocol == b.protocol);
          const auto bytes = static_cast<double>(size.value);
          CHECK(plain.transfer_bound(kind, bytes, shape) ==
                remembering.transfer_bound(kind, bytes, shape));
        }
}

TEST_CASE("sweep: zero for one rank, monotone in bytes, never below the port", "[collective]") {
  const LinkCalibration links = calibration();
  for (const Box& box : boxes()) {
    const CollectiveModel model(box.cluster, links);
    for (const GroupShape& shape : shapes_of(box.cluster))
      for (const Collective kind : all_collectives()) {
        if (!makes_sense(kind, shape)) continue;
        INFO(box.name << ", " << name(kind) << ", " << shape.ranks << " ranks on " << shape.nodes
                      << " nodes, stride " << shape.local_stride);
        const GroupLinks links_of = model.resolve(shape);
        Seconds before(0);
        bool monotone = true, above = true, finite = true;
        for (int power = 0; power <= 34; ++power)
          for (const std::int64_t part : {4, 5, 7}) {
            const Bytes size((part << power) / 4);
            const CollectiveTime t = model.time(kind, size, shape);
            monotone = monotone && t.time >= before;
            above = above && t.time >= port_bound(links_of, kind, size);
            finite = finite && t.time.value < 1e5;
            if (shape.ranks == 1)
              CHECK(t.time == Seconds(0));
            else
              CHECK(t.time > Seconds(0));
            before = t.time;
          }
        CHECK(monotone);
        CHECK(above);
        CHECK(finite);
        CHECK(model.time(kind, Bytes(0), shape).time == Seconds(0));
      }
  }
}

TEST_CASE("every row runs somewhere, and no row beats the port", "[collective]") {
  const LinkCalibration links = calibration();
  std::set<const CollectiveRow*> seen;
  for (const Box& box : boxes()) {
    const CollectiveModel model(box.cluster, links);
    for (const GroupShape& shape : shapes_of(box.cluster)) {
      if (shape.ranks == 1) continue;
      const GroupLinks l = model.resolve(shape);
      for (const CollectiveRow& row : collective_rows)
        for (const Collective kind : all_collectives()) {
          if (!makes_sense(kind, shape) || !row.applies(kind, l)) continue;
          seen.insert(&row);
          for (const std::int64_t size : {1'000, 1'000'000, 1'000'000'000}) {
            const CollectiveEstimate e = row.time(kind, Bytes(size), row.protocol, l);
            INFO(box.name << ", " << row.name << "/" << name(row.protocol) << ", " << name(kind));
            CHECK(e.latency > Seconds(0));
            CHECK(e.latency + e.transfer >= port_bound(l, kind, Bytes(size)));
            CHECK(e.transfer >=
                  (1 - 1e-12) * model.transfer_bound(kind, static_cast<double>(size), shape));
          }
        }
    }
  }
  CHECK(seen.size() == collective_rows.size());
}

TEST_CASE("more bandwidth is never slower", "[collective]") {
  const LinkCalibration links = calibration();
  const std::vector<std::pair<Cluster, Cluster>> pairs{
      {cluster(card("nvidia", 8.9, 3, 0), node(8, IntraLink::pcie_host), 1, 8),
       cluster(card("nvidia", 8.9, 4, 0), node(8, IntraLink::pcie_host), 1, 8)},
      {cluster(card("nvidia", 9.0, 5, 300), node(8, IntraLink::nvswitch, 2, 8, 50), 8, 8,
               network(50, 0.9, 2)),
       cluster(card("nvidia", 9.0, 5, 450), node(8, IntraLink::nvswitch, 2, 8, 50), 8, 8,
               network(50, 0.9, 2))},
      {cluster(a100(), node(8, IntraLink::nvswitch, 2, 4, 12.5), 4, 8, network(12.5, 0.9, 2)),
       cluster(a100(), node(8, IntraLink::nvswitch, 2, 8, 12.5), 4, 8, network(12.5, 0.9, 2))},
      {cluster(h100(), node(8, IntraLink::nvswitch, 2, 8, 25), 4, 8, network(25, 0.9, 2)),
       cluster(h100(), node(8, IntraLink::nvswitch, 2, 8, 50), 4, 8, network(50, 0.9, 2))},
  };
  for (const auto& [slow, fast] : pairs) {
    const CollectiveModel a(slow, links), b(fast, links);
    for (const GroupShape& shape : shapes_of(slow))
      for (const Collective kind : all_collectives()) {
        if (!makes_sense(kind, shape)) continue;
        for (int power = 3; power <= 33; ++power) {
          const Bytes size(std::int64_t{1} << power);
          INFO(name(kind) << ", " << shape.ranks << " ranks on " << shape.nodes << " nodes, 2^"
                          << power << " B");
          CHECK(b.time(kind, size, shape).time <= a.time(kind, size, shape).time);
        }
      }
  }
}

TEST_CASE("what a group shares its NICs with slows it", "[collective]") {
  const LinkCalibration links = calibration();
  const Cluster c = hgx(h100(), 4);
  const CollectiveModel model(c, links);
  GroupShape alone = group_shape(4, 8, 8, 32), crowded = alone;
  alone.sharing = 1;
  REQUIRE(crowded.sharing == 8);
  const Bytes size = 256 * mebibyte;
  CHECK(model.time(Collective::all_gather, size, crowded).time >
        model.time(Collective::all_gather, size, alone).time);
}

TEST_CASE("slower fabrics: more latency, less bandwidth", "[collective]") {
  const LinkCalibration links = calibration();
  const Cluster ib = hgx(h100(), 4);
  Cluster ethernet = ib;
  ethernet.network = network(12.5, 0.9, 30);
  ethernet.network->gpu_direct = false;
  const CollectiveModel fast(ib, links), slow(ethernet, links);
  const GroupShape s = group_shape(32, 1, 8, 32);
  for (const std::int64_t size : {8, 65'536, 16'777'216, 1'073'741'824})
    for (const Collective kind :
         {Collective::all_reduce, Collective::all_gather, Collective::all_to_all})
      CHECK(slow.time(kind, Bytes(size), s).time > fast.time(kind, Bytes(size), s).time);
}

TEST_CASE("protocols follow the size as NCCL's do", "[collective]") {
  const LinkCalibration links = calibration();
  const Cluster c = hgx(a100());
  const CollectiveModel model(c, links);
  const GroupShape s = group_shape(8, 1, 8, 8);
  CHECK(model.time(Collective::all_reduce, Bytes(1024), s).protocol == Protocol::ll);
  CHECK(model.time(Collective::all_reduce, 4 * mebibyte, s).protocol == Protocol::ll128);
  const CollectiveTime large = model.time(Collective::all_reduce, 4096 * mebibyte, s);
  CHECK(large.protocol == Protocol::simple);
  CHECK(large.algorithm_name() == "Ring");
  // No LL128 over PCIe (:514-536).
  const Cluster box = cluster(rtx_4090(), node(8, IntraLink::pcie_host), 1, 8);
  const CollectiveModel pcie(box, links);
  for (int power = 3; power <= 32; ++power)
    CHECK(pcie.time(Collective::all_reduce, Bytes(std::int64_t{1} << power), s).protocol !=
          Protocol::ll128);
}
