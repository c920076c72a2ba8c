#include "simulator/rank_layout.hpp"

#include <set>
#include <vector>

#include "tests/simulator/link_machines.hpp"

using namespace shardwise;
using namespace shardwise::link_machines;

namespace {

ParallelPlan plan(int data, int tensor, int pipeline = 1, int context = 1) {
  ParallelPlan p;
  p.data = data;
  p.tensor = tensor;
  p.pipeline = pipeline;
  p.context = context;
  p.expert_tensor = tensor;
  return p;
}

}  // namespace

TEST_CASE("Megatron's example: 16 GPUs, tensor 2, pipeline 4, data 2", "[rank_layout]") {
  // megatron/core/parallel_state.py, docstring of initialize_model_parallel:
  //   tensor groups [g0, g1], [g2, g3], ...; data groups [g0, g2], [g1, g3], [g4, g6], ...;
  //   pipeline groups [g0, g4, g8, g12], [g1, g5, g9, g13], ...
  const RankLayout layout(plan(2, 2, 4), hgx(a100(), 2));
  CHECK(layout.group(GroupKind::tensor, 3) == RankGroup{2, 1, 2});
  CHECK(layout.group(GroupKind::data, 3) == RankGroup{1, 2, 2});
  CHECK(layout.group(GroupKind::data, 6) == RankGroup{4, 2, 2});
  CHECK(layout.group(GroupKind::pipeline, 9) == RankGroup{1, 4, 4});
}

TEST_CASE("the groups of each kind partition the world", "[rank_layout]") {
  ParallelPlan p = plan(4, 2, 2, 2);
  p.shard_group = 2;
  p.expert = 4;
  const RankLayout layout(p, hgx(h100(), 4));
  REQUIRE(layout.world() == 32);
  for (std::size_t k = 0; k < group_kind_count; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    std::set<int> firsts;
    std::vector<int> seen(32, 0);
    for (int r = 0; r < 32; ++r) {
      const RankGroup g = layout.group(kind, r);
      if (!firsts.insert(g.first).second) continue;
      for (int i = 0; i < g.ranks; ++i) ++seen[static_cast<std::size_t>(g.first + i * g.stride)];
    }
    INFO(name(kind));
    CHECK(seen == std::vector<int>(32, 1));
  }
  // ZeRO shards over context x shard group = 4 ranks; the replicas are 2.
  CHECK(layout.shape(GroupKind::shard).ranks == 4);
  CHECK(layout.shape(GroupKind::replicate).ranks == 2);
  CHECK(layout.shape(GroupKind::gradient).ranks == 8);
}

TEST_CASE("tensor parallelism inside a node leaves its data groups one GPU per node",
          "[rank_layout]") {
  const RankLayout layout(plan(4, 8), hgx(h100(), 4));
  const GroupShape tensor = layout.shape(GroupKind::tensor);
  CHECK(tensor == GroupShape{8, 1, 8, 1, 1, 1});
  CHECK(group_shape(4, 1, 8, 32).sharing == 2);  // two groups of four on a node
  const GroupShape data = layout.shape(GroupKind::data);
  CHECK(data.ranks == 4);
  CHECK(data.nodes == 4);
  CHECK(data.ranks_per_node == 1);
  CHECK(data.sharing == 8);  // eight of them share the node's NICs
}

TEST_CASE("a data group of four GPUs per node", "[rank_layout]") {
  const GroupShape s = RankLayout(plan(16, 2), hgx(h100(), 4)).shape(GroupKind::gradient);
  CHECK(s.ranks == 16);
  CHECK(s.nodes == 4);
  CHECK(s.ranks_per_node == 4);
  CHECK(s.local_stride == 2);
  CHECK(s.sharing == 2);
}

TEST_CASE("tensor parallelism over two nodes", "[rank_layout]") {
  const GroupShape s = RankLayout(plan(1, 16), hgx(h100(), 2)).shape(GroupKind::tensor);
  CHECK(s.nodes == 2);
  CHECK(s.ranks_per_node == 8);
  CHECK(s.sharing == 1);
}

TEST_CASE("groups that do not divide a node are split by it", "[rank_layout]") {
  // Four ranks on nodes of six: some group has two here and two there.
  const GroupShape s = group_shape(4, 1, 6, 24);
  CHECK(s.nodes == 2);
  CHECK(s.ranks_per_node == 2);
  // In a world of one node nothing is split.
  CHECK(group_shape(4, 1, 6, 4).nodes == 1);
}

TEST_CASE("ranks that are no whole number of nodes apart", "[rank_layout]") {
  // 12 GPUs on nodes of eight: 0 and 12 are on neighbours, 4 and 16 two nodes apart.
  const GroupShape s = group_shape(2, 12, 8, 24);
  CHECK(s.nodes == 2);
  CHECK(s.node_stride == 2);
  CHECK(group_shape(2, 16, 8, 32).node_stride == 2);
}

TEST_CASE("pipeline neighbours: inside a node or across", "[rank_layout]") {
  const RankLayout inside(plan(1, 2, 4), hgx(a100(), 1));
  CHECK(inside.pipeline_link(0).nodes == 1);
  CHECK(inside.pipeline_link(0).local_stride == 2);
  const RankLayout across(plan(1, 4, 4), hgx(a100(), 2));
  CHECK(across.pipeline_link(0).nodes == 1);  // ranks 0..3 to 4..7
  CHECK(across.pipeline_link(1).nodes == 2);  // 4..7 to 8..11
  CHECK(across.pipeline_link(1).sharing == 4);
  CHECK(across.pipeline_link(3).nodes == 2);  // the last stage to the first
  const RankLayout wide(plan(4, 8, 2), hgx(a100(), 8));
  CHECK(wide.pipeline_link(0).node_stride == 4);
}

TEST_CASE("experts with their own tensor parallelism are folded into the stage", "[rank_layout]") {
  // 32 ranks, tensor 4, expert 8 of one GPU each: an expert group is eight neighbours, one node.
  ParallelPlan p = plan(8, 4);
  p.expert = 8;
  p.expert_tensor = 1;
  const RankLayout folded(p, hgx(h100(), 4));
  CHECK(folded.group(GroupKind::expert, 9) == RankGroup{8, 1, 8});
  CHECK(folded.shape(GroupKind::expert).nodes == 1);
  CHECK(folded.shape(GroupKind::expert_gradient).ranks == 4);
  CHECK(folded.group(GroupKind::expert_shard, 9) == folded.group(GroupKind::expert_gradient, 9));
  // A shard group of four data ranks is 16 neighbours, of which two hold expert 1.
  p.shard_group = 4;
  const RankLayout hybrid(p, hgx(h100(), 4));
  CHECK(hybrid.group(GroupKind::expert_shard, 9) == RankGroup{1, 8, 2});
  CHECK(hybrid.group(GroupKind::expert_gradient, 9) == RankGroup{1, 8, 4});
  p.shard_group = std::nullopt;
  // With the tensor parallelism of attention the group strides over it: four nodes.
  p.expert_tensor = 4;
  const RankLayout strided(p, hgx(h100(), 4));
  CHECK(strided.group(GroupKind::expert, 9) == RankGroup{1, 4, 8});
  CHECK(strided.shape(GroupKind::expert).nodes == 4);
  CHECK(strided.shape(GroupKind::expert_gradient).ranks == 1);
}

TEST_CASE("an NVLink domain of several machines is one node", "[rank_layout]") {
  Node tray = node(4, IntraLink::nvswitch, 2, 4, 50);
  tray.nvlink_domain_nodes = 18;
  const Cluster rack = cluster(b200(), tray, 18, 4, network(50, 0.91, 1.3));
  CHECK(RankLayout(plan(9, 8), rack).shape(GroupKind::gradient).nodes == 1);
  const Cluster part = cluster(b200(), tray, 2, 4, network(50, 0.91, 1.3));
  CHECK(gpus_per_node(part) == 8);
}
