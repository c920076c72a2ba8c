// RankLayout: which rank sits where, and whom it talks to.
//
// Ranks are numbered as Megatron does: tensor fastest, then context, then data, pipeline slowest
//
//   rank = tensor + T (context + C (data + D pipeline))
//
// and fill the nodes in order. Every communicator is then an arithmetic progression of ranks:
//
//   tensor         T ranks, stride 1
//   context        C ranks, stride T
//   data           D ranks, stride T C
//   gradient       C D ranks, stride T        (gradients are the same over context ranks too)
//   shard          C x shard group, stride T  (HSDP: ZeRO shards over these)
//   replicate      D / shard group, stride T C x shard group
//   expert_tensor  ET ranks, stride 1
//   expert         E ranks, stride ET         (with ET = T: inside data x context)
//   expert_gradient the ranks that hold the same expert, stride ET E
//   expert_shard   those of them in one shard group, stride ET E (ZeRO shards experts over these)
//   pipeline       neighbouring stages, stride T C D
//
// Source: Megatron-LM megatron/core/parallel_state.py, RankGenerator with order tp-cp-ep-dp-pp
// and a separate generator for experts (tp-ep-dp-pp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "catalog/cluster.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {

enum class GroupKind : std::uint8_t {
  tensor,
  context,
  data,
  gradient,
  shard,
  replicate,
  expert_tensor,
  expert,
  expert_gradient,
  expert_shard,
  pipeline,
};
inline constexpr std::array<std::string_view, 11> group_kind_names{
    "tensor", "context",         "data",         "gradient", "shard", "replicate", "expert_tensor",
    "expert", "expert_gradient", "expert_shard", "pipeline"};
inline constexpr std::size_t group_kind_count = group_kind_names.size();
constexpr std::string_view name(GroupKind k) {
  return group_kind_names[static_cast<std::size_t>(k)];
}

// A communicator as links see it. A *node* here is what NVLink or PCIe joins: one machine, or all
// the machines of an NVLink domain (an NVL72 rack is one node of 72).
struct GroupShape {
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;  // on the node that holds most
  int local_stride = 1;    // between neighbours inside a node
  int node_stride = 1;     // between nodes that are neighbours in the group
  int sharing = 1;         // groups of the kind that use a node's NICs at the same time
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

// first, first + stride, ..., `ranks` of them.
struct RankGroup {
  int first = 0, stride = 1, ranks = 1;
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

// Machines of one NVLink domain that a job uses. A job that needs several domains takes equally
// many machines of each (64 trays of NVL72: 4 x 16, not 3 x 18 + 10), as topology-aware schedulers
// place it; a group of ranks would straddle two domains otherwise.
int machines_per_nvlink_domain(const NodeGroup& group);

// GPUs of one node in the sense above; the smallest where a cluster mixes nodes.
int gpus_per_node(const Cluster& cluster);

// The shape of a group whose ranks lie `stride` apart, where its siblings are all active.
GroupShape group_shape(int ranks, int stride, int gpus_per_node, int world);

class RankLayout {
 public:
  // REQUIRES a plan that multiplies out to cluster.gpus().
  RankLayout(const ParallelPlan& plan, const Cluster& cluster);

  int world() const { return world_; }
  const GroupShape& shape(GroupKind kind) const { return shapes_[static_cast<std::size_t>(kind)]; }
  RankGroup group(GroupKind kind, int rank) const;  // that `rank` belongs to

  // Two stages: a rank of each, in one node or in two.
  GroupShape stage_pair(int stage, int other) const;
  // Stage `stage` to the next one (the last: to the first): two ranks, in one node or in two.
  GroupShape pipeline_link(int stage) const;

 private:
  struct Progression {
    int stride, ranks;
  };
  int pipeline_;
  int world_;
  int gpus_per_node_;
  std::array<Progression, group_kind_count> progressions_;
  std::array<GroupShape, group_kind_count> shapes_;
};

}  // namespace shardwise
