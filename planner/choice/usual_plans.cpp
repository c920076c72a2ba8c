#include "planner/choice/usual_plans.hpp"

#include <algorithm>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// GPUs of a node; 0 where nodes differ.
int gpus_of_every_node(const Cluster& cluster) {
  const int first = cluster.gpus_of_node(cluster.groups.front());
  const bool alike =
      std::all_of(cluster.groups.begin(), cluster.groups.end(),
                  [&](const NodeGroup& g) { return cluster.gpus_of_node(g) == first; });
  return alike ? first : 0;
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
  if (g > 1) {
    plans.push_back(sentence("dp=", n / g, ",tp=", g));
    plans.push_back(sentence("dp=", n / g, ",pp=", g));
    if (several_nodes) plans.push_back(sentence("tp=", g, ",pp=", n / g));
    plans.push_back(sentence("dp=", n / g, ",cp=", g, ",zero=3"));
  }
  const int experts = model.moe ? model.moe->experts : 1;
  for (int ep = std::min(g, experts); ep > 1; --ep)
    if (n % ep == 0 && experts % ep == 0) {
      plans.push_back(sentence("dp=", n, ",ep=", ep));
      break;
    }
  return plans;
}

}  // namespace shardwise
