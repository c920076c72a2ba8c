#include "simulator/rank_layout.hpp"

#include <algorithm>
#include <limits>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

int machines_per_nvlink_domain(const NodeGroup& group) {
  if (group.node.intra_link != IntraLink::nvswitch) return 1;
  const int nodes = std::max(1, group.nodes);
  int machines = std::clamp(group.node.nvlink_domain_nodes, 1, nodes);
  while (nodes % machines != 0) --machines;
  return machines;
}

int gpus_per_node(const Cluster& cluster) {
  if (cluster.mixed_in_one_node) return cluster.gpus();
  int least = std::numeric_limits<int>::max();
  for (const NodeGroup& group : cluster.groups) {
    least = std::min(least, group.gpus_per_node * machines_per_nvlink_domain(group));
  }
  return least;
}

GroupShape group_shape(int ranks, int stride, int node, int world) {
  require(ranks >= 1 && stride >= 1 && node >= 1 && world >= 1, "a group has ranks and a stride");
  GroupShape shape;
  shape.ranks = ranks;
  if (ranks == 1) return shape;
  const int active = std::min(node, world);  // GPUs of a node that are at work
  const int extent = ranks * stride;         // of a group and the siblings between its ranks
  if (stride >= node) {
    shape.nodes = ranks;
    shape.node_stride = ceil_div(stride, node);
    shape.sharing = active;
    return shape;
  }
  shape.local_stride = stride;
  if (extent <= node && node % extent == 0) {
    shape.nodes = 1;
    shape.ranks_per_node = ranks;
    shape.sharing = active / ranks;
    return shape;
  }
  // Some group starts anywhere in a node when sizes do not divide: the one that is split most.
  const bool aligned = node % stride == 0 && extent % node == 0;
  const int most = aligned ? 0 : node - 1;
  const int span = (ranks - 1) * stride + 1;
  shape.nodes =
      aligned ? extent / node : std::min((span + most - 1) / node + 1, ceil_div(world, node));
  shape.nodes = std::max(1, shape.nodes);
  shape.ranks_per_node = std::clamp(ceil_div(ranks, shape.nodes), 1, std::max(1, node / stride));
  shape.sharing = std::max(1, active / shape.ranks_per_node);
  return shape;
}

RankLayout::RankLayout(const ParallelPlan& plan, const Cluster& cluster)
    : pipeline_(plan.pipeline),
      world_(plan.gpus()),
      gpus_per_node_(shardwise::gpus_per_node(cluster)) {
  require(world_ == cluster.gpus(), "the plan multiplies out to the GPUs of the cluster");
  const int tensor = plan.tensor, context = plan.context, data = plan.data;
  const int shard = std::min(plan.shard_group.value_or(data), data);
  const int stage = tensor * context * data;  // ranks of one pipeline stage
  const int expert_extent = plan.expert_tensor * plan.expert;
  const auto set = [this](GroupKind kind, int stride, int ranks) {
    progressions_[static_cast<std::size_t>(kind)] = {stride, ranks};
    shapes_[static_cast<std::size_t>(kind)] = group_shape(ranks, stride, gpus_per_node_, world_);
  };
  set(GroupKind::tensor, 1, tensor);
  set(GroupKind::context, tensor, context);
  set(GroupKind::data, tensor * context, data);
  set(GroupKind::gradient, tensor, context * data);
  set(GroupKind::shard, tensor, context * shard);
  set(GroupKind::replicate, tensor * context * shard, data / shard);
  set(GroupKind::expert_tensor, 1, plan.expert_tensor);
  set(GroupKind::expert, plan.expert_tensor, plan.expert);
  set(GroupKind::expert_gradient, expert_extent, std::max(1, stage / expert_extent));
  set(GroupKind::expert_shard, expert_extent,
      std::max(1, tensor * context * shard / expert_extent));
  set(GroupKind::pipeline, stage, pipeline_);
}

RankGroup RankLayout::group(GroupKind kind, int rank) const {
  require(rank >= 0 && rank < world_, "a rank of this layout");
  const Progression p = progressions_[static_cast<std::size_t>(kind)];
  const int extent = p.stride * p.ranks;
  return {rank / extent * extent + rank % p.stride, p.stride, p.ranks};
}

GroupShape RankLayout::stage_pair(int stage, int other) const {
  require(stage >= 0 && stage < pipeline_ && other >= 0 && other < pipeline_,
          "two stages of this plan");
  if (stage == other) return {};
  const int size = world_ / pipeline_;
  GroupShape shape;
  shape.ranks = 2;
  // Where any pair of ranks lies on two nodes, the stage waits for that pair. The pattern repeats
  // with every node.
  int apart = 0;
  for (int i = 0; i < std::min(size, gpus_per_node_); ++i) {
    const int a = (stage * size + i) / gpus_per_node_, b = (other * size + i) / gpus_per_node_;
    apart = std::max(apart, a < b ? b - a : a - b);
  }
  shape.sharing = std::min(size, gpus_per_node_);
  if (apart == 0) {
    shape.ranks_per_node = 2;
    shape.local_stride = size;  // as between neighbours
    return shape;
  }
  shape.nodes = 2;
  shape.node_stride = apart;
  return shape;
}

GroupShape RankLayout::pipeline_link(int stage) const {
  require(stage >= 0 && stage < pipeline_, "a stage of this plan");
  return stage_pair(stage, (stage + 1) % pipeline_);
}

}  // namespace shardwise
