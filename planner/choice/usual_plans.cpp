#include "planner/choice/usual_plans.hpp"

#include <algorithm>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// The deepest pipeline, and the most ranks that experts are dealt to, of those that pretraining is
// known for: 16 stages of Llama 3.1 405B (P. Balaji at SC'24, whose table stands in
// glennklockwood.com/garden/llama-3.1), 64 ranks of DeepSeek-V3 on 1,024 H100
// (catalog/runs/b_megatron_bridge.json).
constexpr int most_stages = 16, most_expert_ranks = 64;

// GPUs of a node; 0 where nodes differ.
int gpus_of_every_node(const Cluster& cluster) {
  const int first = cluster.gpus_of_node(cluster.groups.front());
  const bool alike =
      std::all_of(cluster.groups.begin(), cluster.groups.end(),
                  [&](const NodeGroup& g) { return cluster.gpus_of_node(g) == first; });
  return alike ? first : 0;
}

// The largest divisor of `whole` up to `most`; with `also`, one that divides it too.
int largest_divisor(int whole, int most, int also = 0) {
  for (int d = std::min(whole, most); d > 1; --d)
    if (whole % d == 0 && also % d == 0) return d;
  return 1;
}

// Experts over ranks, also within the stages of a pipeline: over a node's, and over more of them.
void add_expert_plans(int experts, int n, int g, int stages, std::vector<std::string>& plans) {
  if (const int ep = largest_divisor(n, g, experts); ep > 1)
    plans.push_back(sentence("dp=", n, ",ep=", ep));
  const int dp = n / stages;
  const int near = largest_divisor(dp, g, experts);
  const int wide = largest_divisor(dp, most_expert_ranks, experts);
  if (stages == 1 || near == 1) return;
  plans.push_back(sentence("dp=", dp, ",pp=", stages, ",ep=", near));
  if (wide > near) plans.push_back(sentence("dp=", dp, ",pp=", stages, ",ep=", wide));
}

}  // namespace

std::vector<std::string> usual_plans(const Transformer& model, const Cluster& cluster) {
  const int n = cluster.gpus();
  if (n == 1) return {};
  const int g = gpus_of_every_node(cluster);
  const bool several_nodes = g > 0 && n > g;
  std::vector<std::string> plans;
  for (int zero = 0; zero <= 3; ++zero) plans.push_back(sentence("dp=", n, ",zero=", zero));
  if (several_nodes && g > 1) plans.push_back(sentence("dp=", n, ",zero=3,shard=", g));
  if (g <= 1) return plans;
  const int in_node = largest_divisor(g, model.layers);
  const int over_nodes = largest_divisor(n / g, std::min(most_stages, model.layers));
  plans.push_back(sentence("dp=", n / g, ",tp=", g));
  if (in_node > 1) plans.push_back(sentence("dp=", n / in_node, ",pp=", in_node));
  if (over_nodes > 1)
    plans.push_back(sentence("dp=", n / g / over_nodes, ",tp=", g, ",pp=", over_nodes));
  plans.push_back(sentence("dp=", n / g, ",cp=", g, ",zero=3"));
  const int pair = largest_divisor(g, std::min(2, model.layers));
  if (model.moe)
    add_expert_plans(model.moe->experts, n, g, several_nodes ? over_nodes : pair, plans);
  return plans;
}

}  // namespace shardwise
