#include "simulator/network/topology.hpp"

#include "simulator/network/machine_graph.hpp"
#include "tests/simulator/link_machines.hpp"

using namespace shardwise;
using namespace shardwise::link_machines;

namespace {

double gb(BytesPerSecond b) { return b.value / 1e9; }

// PCIe 4.0 x16: 16 lanes x 1.9692 GB/s, of which DMA moves 0.813.
constexpr double slot_rate = 16 * 1.9692 * 0.813;
constexpr double shm = 0.59, shared = 0.83, p2p = 0.96, across = 0.834;

GroupShape spread(int nodes, int per_node, int sharing) {
  GroupShape s;
  s.ranks = nodes * per_node;
  s.nodes = nodes;
  s.ranks_per_node = per_node;
  s.sharing = sharing;
  return s;
}

}  // namespace

TEST_CASE("cards without peer access go through host memory", "[topology]") {
  const LinkCalibration links = calibration();
  const Topology two(cluster(rtx_4090(), node(2, IntraLink::pcie_host, 1), 1, 2), links);
  const Path path = two.path(0, 1);
  CHECK(path.kind == PathKind::phb);
  CHECK(path.transport == Transport::shm);
  CHECK(gb(path.bandwidth) == Approx(slot_rate * shm));
  // Each slot carries one flow out and one in: the ring is as fast as the pair.
  CHECK(gb(two.local(2, 1).ring) == Approx(slot_rate * shm));

  SECTION("a slot of eight lanes is half as fast") {
    Node desktop = node(2, IntraLink::pcie_host, 1);
    desktop.pcie_lanes_per_gpu = 8;
    const Topology narrow(cluster(rtx_4090(), desktop, 1, 2), links);
    CHECK(gb(narrow.local(2, 1).ring) == Approx(slot_rate * shm / 2));
  }
  SECTION("an older host slows a newer card") {
    Node old = node(2, IntraLink::pcie_host, 1);
    old.pcie_generation = 3;
    const Topology slow(cluster(rtx_4090(), old, 1, 2), links);
    CHECK(gb(slow.local(2, 1).ring) == Approx(16 * 0.9846 * 0.8 * shm));
  }
  SECTION("host memory is shared: every byte is written once and read once") {
    Node desktop = node(2, IntraLink::pcie_host, 1);
    desktop.host_memory_bandwidth = BytesPerSecond(40e9);
    const Topology starved(cluster(rtx_4090(), desktop, 1, 2), links);
    // 40 GB/s x 0.8, half of it for writes, two flows.
    CHECK(gb(starved.local(2, 1).ring) == Approx(40 * 0.8 / 2 / 2));
  }
}

TEST_CASE("eight cards share two sockets", "[topology]") {
  const LinkCalibration links = calibration();
  const Node box = node(8, IntraLink::pcie_host, 2);
  const Topology t(cluster(rtx_4090(), box, 1, 8), links);
  CHECK(t.path(0, 3).kind == PathKind::phb);
  CHECK(t.path(3, 4).kind == PathKind::sys);
  CHECK(t.local(8, 1).kind == PathKind::sys);
  CHECK(gb(t.local(8, 1).ring) == Approx(slot_rate * shm));
  // Pairs 0-4, 1-5, 2-6, 3-7: four flows over the 48 GB/s between the sockets.
  CHECK(gb(t.local(2, 4).ring) == Approx(48.0 / 4));

  SECTION("with peer access everywhere, as a patched driver gives it") {
    LinkCalibration patched = links;
    patched.nccl.p2p_level = PathKind::sys;
    const Topology direct(cluster(card("nvidia", 8.9, 4, 0), box, 1, 8), patched);
    CHECK(direct.local(8, 1).transport == Transport::p2p);
    CHECK(gb(direct.local(4, 1).ring) == Approx(slot_rate * p2p));
    CHECK(gb(direct.local(8, 1).ring) == Approx(slot_rate * p2p * across));
  }
}

TEST_CASE("NCCL goes direct below a switch, through the host above it", "[topology]") {
  const LinkCalibration links = calibration();
  const Topology t(cluster(l40s(), node(8, IntraLink::pcie_switch, 2), 1, 8), links);
  CHECK(t.path(0, 1).kind == PathKind::pix);
  CHECK(t.path(0, 1).transport == Transport::p2p);
  CHECK(gb(t.path(0, 1).bandwidth) == Approx(slot_rate * p2p));
  CHECK(t.path(0, 7).kind == PathKind::sys);
  CHECK(t.path(0, 7).transport == Transport::shm);
  CHECK(gb(t.local(4, 1).ring) == Approx(slot_rate * p2p));
  // One ring over both switches: one flow bounces in each direction.
  CHECK(t.local(8, 1).transport == Transport::shm);
  CHECK(gb(t.local(8, 1).ring) == Approx(slot_rate * shm));
  // Four pairs, one card of each below either switch: they share the switch's one way up.
  CHECK(gb(t.local(2, 4).ring) == Approx(slot_rate * shared / 4));
}

// Four cards below one switch that may not reach each other (NCCL_P2P_LEVEL=NVL): all four flows of
// a ring go up to host memory and down again over the switch's one way. Two are held by it as well:
// 0.83 / 2 is less than the 0.59 of a card's own slot.
TEST_CASE("cards without peer access share their switch's way up", "[topology]") {
  const LinkCalibration links = calibration();
  Gpu apart = l40s();
  apart.peer_over_pcie = PeerAccess::no;
  const Topology t(cluster(apart, node(4, IntraLink::pcie_switch, 1), 1, 4), links);
  CHECK(t.path(0, 1).kind == PathKind::pix);
  CHECK(t.path(0, 1).transport == Transport::shm);
  CHECK(gb(t.path(0, 1).bandwidth) == Approx(slot_rate * shm));
  CHECK(gb(t.local(2, 1).ring) == Approx(slot_rate * shared / 4));  // both pairs at once
  CHECK(gb(t.local(4, 1).ring) == Approx(slot_rate * shared / 4));
}

TEST_CASE("bridges join cards two by two", "[topology]") {
  const LinkCalibration links = calibration();
  const Topology t(cluster(rtx_3090(), node(4, IntraLink::nvlink_pairs, 1), 1, 4), links);
  CHECK(t.path(0, 1).kind == PathKind::nvl);
  CHECK(gb(t.local(2, 1).ring) == Approx(56.25 * 0.853));
  CHECK(t.path(1, 2).kind == PathKind::phb);
  CHECK(gb(t.local(4, 1).ring) == Approx(slot_rate * shm));
  CHECK(t.local(2, 2).kind == PathKind::phb);  // 0-2 and 1-3
}

// A third of a card's NVLink leads to each other card of its four; two of them use one third.
TEST_CASE("bridges join cards by fours", "[topology]") {
  const LinkCalibration links = calibration();
  const Topology t(cluster(rtx_3090(), node(8, IntraLink::nvlink_fours, 1), 1, 8), links);
  CHECK(t.path(0, 3).kind == PathKind::nvl);
  CHECK(t.path(4, 6).kind == PathKind::nvl);
  CHECK(t.path(3, 4).kind != PathKind::nvl);
  CHECK(gb(t.local(2, 1).ring) == Approx(56.25 * 0.853 / 3));
  CHECK(t.local(4, 1).ring > t.local(2, 1).ring);
  CHECK(t.local(4, 1).ring > t.local(8, 1).ring);
}

TEST_CASE("NVSwitch gives every group the full rate", "[topology]") {
  const LinkCalibration links = calibration();
  const Topology t(hgx(a100()), links);
  CHECK_FALSE(t.in_switch_reduction());  // Ampere has none
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (int stride = 1; ranks * stride <= 8; ++stride) {
      CHECK(gb(t.local(ranks, stride).ring) == Approx(240));
      CHECK(gb(t.local(ranks, stride).exchange) == Approx(240));
    }
  CHECK(Topology(hgx(h100()), links).in_switch_reduction());
}

TEST_CASE("meshes give a group the links among its members", "[topology]") {
  const LinkCalibration links = calibration();
  SECTION("DGX-1V: 1 link between 0 and 1, 4 inside a quad, 6 in all; 20 GB/s each") {
    const Topology t(cluster(v100(), node(8, IntraLink::nvlink_mesh), 1, 8), links);
    CHECK(gb(t.local(2, 1).ring) == Approx(20));
    CHECK(gb(t.local(4, 1).ring) == Approx(80));
    CHECK(gb(t.local(8, 1).ring) == Approx(120));
    CHECK(t.path(0, 7).kind == PathKind::nvl);  // through another GPU
  }
  SECTION("MI300X: seven links of 64 GB/s") {
    const Topology t(cluster(mi300x(), node(8, IntraLink::nvswitch), 1, 8), links);
    CHECK(gb(t.local(2, 1).ring) == Approx(64 * 0.745));
    CHECK(gb(t.local(8, 1).ring) == Approx(448 * 0.745));
    CHECK_FALSE(t.in_switch_reduction());
  }
}

TEST_CASE("a rack of one NVLink domain is one node", "[topology]") {
  const LinkCalibration links = calibration();
  Node tray = node(4, IntraLink::nvswitch, 2, 4, 50);
  tray.nvlink_domain_nodes = 18;
  const Cluster racks = cluster(b200(), tray, 36, 4, network(50, 0.91, 1.3));
  CHECK(gpus_per_node(racks) == 72);
  const Topology t(racks, links);
  CHECK(t.path(0, 71).kind == PathKind::nvl);
  CHECK(t.path(0, 72).kind == PathKind::net);
  CHECK(t.communicator_nics() == 72);
  CHECK(t.several_chassis());
}

TEST_CASE("NICs are shared by the groups that use them", "[topology]") {
  const LinkCalibration links = calibration();
  const Topology t(hgx(a100(), 4), links);  // 8 x 25 GB/s, 0.92 of it
  CHECK(t.path(0, 8).transport == Transport::net);
  CHECK(gb(t.path(0, 8).bandwidth) == Approx(25 * 0.92));
  CHECK(gb(t.network(spread(4, 8, 1), false)) == Approx(8 * 25 * 0.92));
  CHECK(gb(t.network(spread(4, 2, 4), false)) == Approx(2 * 25 * 0.92));
  // One GPU alone cannot feed eight NICs: its slot is the limit.
  CHECK(gb(t.network(spread(4, 1, 1), false)) == Approx(slot_rate));
}

TEST_CASE("without GPUDirect a NIC is fed through the host", "[topology]") {
  const LinkCalibration links = calibration();
  const Cluster far =
      cluster(l40s(), node(2, IntraLink::pcie_host, 2, 1, 25), 2, 2, network(25, 0.9, 2));
  CHECK(gb(Topology(far, links).network(spread(2, 2, 1), false)) == Approx(slot_rate * 0.37));
  Cluster off = hgx(a100(), 2);
  off.network->gpu_direct = false;
  CHECK(gb(Topology(off, links).path(0, 8).bandwidth) == Approx(slot_rate * 0.37));
}

TEST_CASE("the rings of one communicator may find few of a node's NICs", "[topology]") {
  const LinkCalibration links = calibration();
  Cluster c = hgx(a100(), 4);  // 8 x 25 GB/s, 0.92 of it
  c.network->communicator_nics = 1;
  const Topology t(c, links);
  CHECK(gb(t.network(spread(4, 8, 1), false)) == Approx(25 * 0.92));
  // Every GPU exchanges through its own NIC.
  CHECK(gb(t.network(spread(4, 8, 1), true)) == Approx(8 * 25 * 0.92));
  // Eight groups with a GPU of each node: all NICs are used, an eighth of them by each.
  GroupShape one = spread(4, 1, 1);
  one.sharing = 8;
  CHECK(gb(t.network(one, false)) == Approx(25 * 0.92));
}

TEST_CASE("oversubscription slows what leaves a leaf", "[topology]") {
  const LinkCalibration links = calibration();
  Cluster big = hgx(h100(), 64);
  big.network->oversubscription = 4;
  const Topology t(big, links);
  const double full = 8 * 50 * 0.92;
  CHECK(gb(t.network(spread(16, 8, 1), true)) == Approx(full));  // one leaf of 16 nodes
  // Of an exchange over 64 nodes 3/4 leave the leaf, at a quarter of the bandwidth.
  CHECK(gb(t.network(spread(64, 8, 1), true)) == Approx(full / 3));
  // A ring leaves with one neighbour in 16: 4 x 1/16 < 1.
  CHECK(gb(t.network(spread(64, 8, 1), false)) == Approx(full));
  GroupShape strided = spread(4, 8, 1);
  strided.node_stride = 16;  // every neighbour is below another leaf
  CHECK(gb(t.network(strided, false)) == Approx(full / 4));
  GroupShape within = spread(2, 8, 1);
  within.node_stride = 8;  // nodes 0 and 8 of the 16 below one leaf: nothing leaves it
  CHECK(gb(t.network(within, false)) == Approx(full));
}

TEST_CASE("a measured fall with the number of nodes is interpolated", "[topology]") {
  const LinkCalibration links = calibration();
  Cluster c = hgx(h100(), 64);
  c.network->scaling = {{2, 1.0}, {8, 0.5}, {32, 0.25}};
  const Topology t(c, links);
  const double full = 8 * 50 * 0.92;
  CHECK(gb(t.network(spread(2, 8, 1), false)) == Approx(full));
  CHECK(gb(t.network(spread(4, 8, 1), false)) == Approx(full * 0.75));  // half way in log(nodes)
  CHECK(gb(t.network(spread(32, 8, 1), false)) == Approx(full / 4));
  CHECK(gb(t.network(spread(64, 8, 1), false)) == Approx(full / 4));
}

TEST_CASE("host copies share the socket's memory and root complex", "[topology]") {
  const LinkCalibration links = calibration();
  const Topology t(cluster(rtx_4090(), node(4, IntraLink::pcie_host, 1), 1, 4), links);
  CHECK(gb(t.host_copy(1)) == Approx(slot_rate));
  CHECK(gb(t.host_copy(4)) == Approx(slot_rate));  // 4 x 25.6 < 200
  Node slow = node(4, IntraLink::pcie_host, 1);
  slow.host_memory_bandwidth = BytesPerSecond(80e9);
  const Topology starved(cluster(rtx_4090(), slow, 1, 4), links);
  CHECK(gb(starved.host_copy(4)) == Approx(80 * 0.8 / 4));  // a copied byte passes once
}

// Four GPUs, two on each CPU, each with 225 GB/s to its memory, of which copies reach 0.72: 162. A
// slot would carry 25.6, a root complex 200. Memory of 2 x 200 GB/s gives 0.8 x 200 / 2 to each.
TEST_CASE("copies between chips pass no PCIe slot and no root complex", "[topology]") {
  const LinkCalibration links = calibration();
  Gpu chip = rtx_4090();
  chip.host_link = BytesPerSecond(225e9);
  Node tray = node(4, IntraLink::pcie_host, 2);
  tray.host_memory_bandwidth = BytesPerSecond(1024e9);
  const Topology t(cluster(chip, tray, 1, 4), links);
  CHECK(gb(t.host_copy(4)) == Approx(225 * 0.72));
  tray.host_memory_bandwidth = BytesPerSecond(400e9);
  const Topology starved(cluster(chip, tray, 1, 4), links);
  CHECK(gb(starved.host_copy(4)) == Approx(0.8 * 200 / 2));
}

TEST_CASE("unequal cards in one box: the slowest slot sets the pace", "[topology]") {
  const LinkCalibration links = calibration();
  Gpu old = rtx_4090();
  old.pcie_generation = 3;
  Cluster mixed = cluster(rtx_4090(), node(4, IntraLink::pcie_host, 1), 1, 2);
  mixed.groups.push_back({old, node(4, IntraLink::pcie_host, 1), 1, 2});
  mixed.mixed_in_one_node = true;
  const Topology t(mixed, links);
  CHECK(t.gpus_per_node() == 4);
  CHECK(gb(t.path(0, 1).bandwidth) == Approx(slot_rate * shm));
  CHECK(gb(t.local(4, 1).ring) == Approx(16 * 0.9846 * 0.8 * shm));
}

TEST_CASE("a large cluster costs the graph of one node", "[topology]") {
  const LinkCalibration links = calibration();
  const Cluster large = hgx(h100(), 2048), small = hgx(h100(), 2);
  const auto one = build_machines(large, links);
  REQUIRE(one.size() == 1);
  CHECK(boost::num_vertices(one.front().graph) ==
        boost::num_vertices(build_machines(small, links).front().graph));
}

TEST_CASE("more bandwidth is never slower, for any group of any box", "[topology]") {
  const LinkCalibration links = calibration();
  for (const IntraLink kind :
       {IntraLink::nvswitch, IntraLink::nvlink_mesh, IntraLink::nvlink_pairs,
        IntraLink::nvlink_fours, IntraLink::pcie_switch, IntraLink::pcie_host})
    for (const PeerAccess peer : {PeerAccess::yes, PeerAccess::no}) {
      const Gpu slow = card("nvidia", 8.0, 3, 100, peer), fast = card("nvidia", 8.0, 4, 300, peer);
      const Topology a(cluster(slow, node(8, kind), 1, 8), links);
      const Topology b(cluster(fast, node(8, kind), 1, 8), links);
      for (int ranks = 2; ranks <= 8; ++ranks)
        for (int stride = 1; ranks * stride <= 8; ++stride) {
          CHECK(b.local(ranks, stride).ring >= a.local(ranks, stride).ring);
          CHECK(b.local(ranks, stride).exchange >= a.local(ranks, stride).exchange);
        }
    }
}
