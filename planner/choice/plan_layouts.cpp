#include "planner/choice/plan_layouts.hpp"

#include <algorithm>
#include <cmath>

#include "catalog/placement.hpp"
#include "simulator/packed_weights.hpp"
#include "simulator/plan_rules.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {
namespace {

constexpr int most_tensor = 8;  // NVLink domains of eight; beyond, all-reduces leave the node
constexpr int most_pipeline = 16;

bool has_nvlink(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [](const NodeGroup& g) {
    const bool switched =
        g.node.intra_link == IntraLink::nvswitch || g.node.intra_link == IntraLink::nvlink_mesh;
    return switched && g.gpu.nvlink.value > 0;
  });
}

struct LayoutSpace {
  const Workload& workload;
  const Cluster& cluster;
  int batch;
  int context;
  std::vector<ParallelPlan> layouts;

  void add(ParallelPlan plan) {
    if (batch % plan.data != 0) return;
    const bool mixture = workload.model.moe.has_value();
    plan.sequence_parallel =
        sequence_parallel_by_default(workload.framework, plan.tensor, mixture) &&
        workload.sequence % (plan.tensor * plan.context) == 0;
    plan.async_tensor = plan.sequence_parallel &&
                        workload.framework.parallel.overlaps_tensor(mixture, workload.compute);
    if (plan.context > 1) plan.context_kind = workload.framework.parallel.context_kind;
    if (workload.model.moe && plan.expert == 1) plan.expert_tensor = plan.tensor;
    layouts.push_back(plan);
  }
};

// Every ZeRO stage that means something different here, the most sharding first.
std::vector<int> zero_stages(const Workload& w, const ParallelPlan& plan) {
  if (plan.data * plan.context == 1) return {0};
  std::vector<int> stages;
  for (int stage = w.framework.supports.max_zero_stage; stage >= 0; --stage) {
    if (!why_frozen_stay_whole(w, stage).empty()) continue;
    const int least = w.framework.supports.least_zero_stage;
    if (stage > 0 && stage < least) continue;
    const bool distinct = w.trains_base() || stage == 0 || stage == 3;
    // Beyond, every microbatch gathers or reduces again.
    const bool with_pipeline = stage <= least;
    if (distinct && (plan.pipeline == 1 || with_pipeline)) stages.push_back(stage);
  }
  return stages;
}

void add_stages(LayoutSpace& space, ParallelPlan plan) {
  for (const int stage : zero_stages(space.workload, plan)) {
    plan.zero_stage = stage;
    space.add(plan);
    const int local = gpus_per_node(space.cluster) / (plan.tensor * plan.context);
    if (stage != 3 || local <= 1 || local >= plan.data || plan.data % local != 0) continue;
    ParallelPlan hybrid = plan;
    hybrid.shard_group = local;
    space.add(hybrid);
  }
}

// The most ranks of a node that a layer's experts can be dealt to whole; one where they cannot.
int expert_ranks(const Workload& w, const Cluster& cluster, const ParallelPlan& plan) {
  if (!w.model.moe || !w.framework.supports.expert) return 1;
  const int inside = plan.data * plan.tensor * plan.context;
  for (int ranks = std::min({gpus_per_node(cluster), inside, w.model.moe->experts}); ranks > 1;
       --ranks)
    if (w.model.moe->experts % ranks == 0 && inside % ranks == 0) return ranks;
  return 1;
}

}  // namespace

bool sequence_parallel_by_default(const Framework& framework, int tensor, bool experts) {
  return tensor > 1 && (framework.parallel.sequence_parallel || experts);
}

namespace {

// With tensor parallelism of `least` to `most`.
void add_layouts(LayoutSpace& space, int least, int most) {
  const Workload& w = space.workload;
  const Cluster& cluster = space.cluster;
  const int gpus = cluster.gpus(), local = gpus_per_node(cluster), context = space.context;
  const bool pipeline = w.framework.supports.pipeline && !cluster.mixed_in_one_node;
  for (int t = least; t <= std::min(most, local); t *= 2) {
    if (gpus % (t * context) != 0 || local % t != 0 || tensor_refusal(w.model, t)) continue;
    for (int p = 1; p <= (pipeline ? std::min(most_pipeline, w.model.layers) : 1); ++p) {
      if ((gpus / t / context) % p != 0) continue;
      ParallelPlan plan;
      plan.tensor = t;
      plan.pipeline = p;
      plan.context = context;
      plan.data = gpus / t / p / context;
      add_stages(space, plan);
      plan.expert = expert_ranks(w, cluster, plan);
      if (plan.expert > 1) add_stages(space, plan);
    }
  }
}

}  // namespace

bool splits_layers(const Workload& w, const Cluster& cluster) {
  const int gpus = cluster.gpus();
  return !w.framework.supports.pipeline && cluster.nodes() == 1 && gpus > 1 &&
         gpus <= std::min(largest_usual_box, w.model.layers);
}

bool equal_memory(const Cluster& cluster) {
  const Bytes first = cluster.groups.front().gpu.memory;
  return std::all_of(cluster.groups.begin(), cluster.groups.end(),
                     [&](const NodeGroup& g) { return g.gpu.memory == first; });
}

std::vector<std::vector<int>> layers_by_memory(const Workload& w, const Cluster& cluster) {
  std::vector<Bytes> cards;
  for (const NodeGroup& g : cluster.groups)
    cards.insert(cards.end(), static_cast<std::size_t>(g.gpus()), g.gpu.memory);
  Bytes all;
  for (const Bytes card : cards) all += card;
  const int layers = w.model.layers, parts = static_cast<int>(cards.size());
  std::vector<std::vector<int>> splits;
  for (const int head : {0, layers / 8, layers / 4}) {
    std::vector<int> split;
    int left = layers;
    for (int i = 0; i + 1 < parts; ++i) {
      const double share = (layers + head) * (cards[static_cast<std::size_t>(i)] / all);
      const int most = left - (parts - 1 - i);  // one for each that follows
      split.push_back(std::clamp(static_cast<int>(std::lround(share)), 1, std::max(1, most)));
      left -= split.back();
    }
    split.push_back(left);
    const auto [least, most] = std::minmax_element(split.begin(), split.end());
    const bool known = std::find(splits.begin(), splits.end(), split) != splits.end();
    if (*most - *least > 1 && !known) splits.push_back(std::move(split));
  }
  return splits;
}

std::vector<ParallelPlan> slow_tensor_layouts(const Workload& w, const Cluster& cluster,
                                              int batch) {
  LayoutSpace space{w, cluster, batch, 1, {}};
  if (w.framework.supports.tensor && !has_nvlink(cluster)) add_layouts(space, 2, most_tensor);
  return std::move(space.layouts);
}

std::vector<ParallelPlan> plan_layouts(const Workload& w, const Cluster& cluster, int batch,
                                       int context) {
  LayoutSpace space{w, cluster, batch, context, {}};
  const int gpus = cluster.gpus();
  if (gpus % context != 0) return {};
  add_layouts(space, 1, w.framework.supports.tensor && has_nvlink(cluster) ? most_tensor : 1);
  if (context == 1 && splits_layers(w, cluster)) {
    ParallelPlan split;
    split.pipeline = gpus;
    split.layer_split = true;
    space.add(split);
    if (equal_memory(cluster)) return std::move(space.layouts);
    for (std::vector<int>& layers : layers_by_memory(w, cluster)) {
      split.layers_per_stage = std::move(layers);
      space.add(split);
    }
  }
  return std::move(space.layouts);
}

}  // namespace shardwise
