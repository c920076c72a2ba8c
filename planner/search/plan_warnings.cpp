#include "planner/search/plan_warnings.hpp"

#include <algorithm>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {
namespace {

constexpr int largest_box_compared = 64;  // GPUs; beyond, nobody thinks of one card instead

struct Warned {
  const ResolvedRequest& request;
  const SearchSite& site;
  const FoundPlan& best;
  const SearchWish& wish;

  Question question() const { return {site.space.workload(best.plan), best.plan, site.cluster}; }
  Seconds step() const { return best.forecast.step_time.expected; }
};

std::optional<Seconds> step_of(const Warned& k, const Question& q) {
  const auto f = forecast(q, k.request.facts->profile, {.memory = false});
  if (!f) return std::nullopt;
  return f->step_time.expected;
}

std::string times(double ratio) { return sentence(fixed(ratio, 2), " times"); }

// The best plan for the same batch on a part of the cluster; nothing where none fits.
std::optional<Seconds> best_step_on(const Warned& k, const Cluster& part) {
  const SearchSite site(k.request, k.request.methods.front(), part);
  SearchWish wish = k.wish;
  wish.objective = objective_named("time");
  wish.top = 1;
  const SearchResult found = search_plans({&site}, k.request.facts->profile, wish);
  if (found.best.empty()) return std::nullopt;
  return found.best.front().forecast.step_time.expected;
}

bool joined_by_nvlink(const NodeGroup& g) {
  return g.gpu.nvlink.value > 0 &&
         (g.node.intra_link == IntraLink::nvswitch || g.node.intra_link == IntraLink::nvlink_mesh);
}

void warn_of_idle_gpus(const Warned& k, std::vector<std::string>& to) {
  const Cluster& c = k.site.cluster;
  if (c.groups.size() != 1 || c.gpus() == 1 || c.gpus() > largest_box_compared) return;
  Cluster part = c;
  NodeGroup& group = part.groups.front();
  const bool several = c.nodes() > 1;
  if (!several && joined_by_nvlink(group)) return;
  if (!several) group.gpus_per_node = 1;
  group.nodes = 1;
  part.network.reset();
  const auto alone = best_step_on(k, part);
  if (!alone) return;
  const double faster = *alone / k.step(), over = static_cast<double>(c.gpus()) / part.gpus();
  if (faster >= poor_use_of_gpus * over) return;
  const std::string one = several ? sentence("one node of ", part.gpus()) : std::string("one card");
  to.push_back(faster <= 1.0
                   ? sentence("All ", c.gpus(), " GPUs together are no faster than ", one, ": ",
                              shown_time(k.step()), " against ", shown_time(*alone), " a step.")
                   : sentence("All ", c.gpus(), " GPUs together are only ", times(faster),
                              " as fast as ", one, ", over ",
                              several ? "this network." : "PCIe without NVLink."));
}

void warn_of_network(const Warned& k, std::vector<std::string>& to) {
  if (!k.site.cluster.network || k.site.cluster.nodes() == 1) return;
  Question q = k.question();
  q.cluster.network->port_bandwidth.value *= 2;
  for (NodeGroup& g : q.cluster.groups) g.node.nic_bandwidth.value *= 2;
  const auto wider = step_of(k, q);
  if (!wider || k.step() / *wider < worth_telling) return;
  const bool tensor = k.best.plan.tensor > gpus_per_node(k.site.cluster);
  to.push_back(sentence("The network between nodes holds this plan up",
                        tensor ? sentence(" (tp=", k.best.plan.tensor, " spans nodes)") : "",
                        ": with twice its bandwidth the same plan would be ",
                        times(k.step() / *wider), " as fast."));
}

void warn_of_batch(const Warned& k, std::vector<std::string>& to) {
  if (k.best.plan.pipeline == 1) return;
  Question q = k.question();
  q.plan.microbatches *= 2;
  const auto twice = step_of(k, q);
  if (!twice) return;
  const double faster = 2 * (k.step() / *twice);
  if (faster < worth_telling) return;
  to.push_back(sentence("The batch is small for ", k.best.plan.pipeline, " stages: with ",
                        grouped(q.plan.global_batch()), " sequences per step the same plan would ",
                        "train ", times(faster), " as many tokens per second."));
}

void warn_of_loader(const Warned& k, std::vector<std::string>& to) {
  Question q = k.question();
  if (!q.workload.load_per_sequence) return;
  q.workload.load_per_sequence.reset();
  const auto unhindered = step_of(k, q);
  if (!unhindered || k.step() / *unhindered < worth_telling) return;
  const double rate = k.best.plan.global_batch() / unhindered->value / k.site.cluster.nodes();
  to.push_back(sentence("The step waits for its data: with loaders of ", shown_rate(rate),
                        " sequences per second and node, or more, it would be ",
                        times(k.step() / *unhindered), " as fast."));
}

}  // namespace

std::vector<std::string> plan_warnings(const ResolvedRequest& request, const SearchSite& site,
                                       const FoundPlan& best, const SearchWish& wish) {
  const Warned k{request, site, best, wish};
  std::vector<std::string> warnings;
  warn_of_idle_gpus(k, warnings);
  warn_of_network(k, warnings);
  warn_of_batch(k, warnings);
  warn_of_loader(k, warnings);
  return warnings;
}

}  // namespace shardwise
