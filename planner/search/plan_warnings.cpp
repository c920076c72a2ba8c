#include "planner/search/plan_warnings.hpp"

#include <algorithm>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {
namespace {

constexpr double poor_use_of_gpus = 0.6;  // speed-up / GPUs, over one card or one node; assumed
constexpr double least_told_share = 0.1;  // of a step; assumed
constexpr int largest_box_compared = 64;  // GPUs; beyond, nobody thinks of one card instead

std::optional<Seconds> step_of(const WarnedPlan& k, const Question& q) {
  const auto f = forecast(q, k.profile, {.memory = false});
  if (!f) return std::nullopt;
  return f->step_time.expected;
}

// What the step waits for most, where that is worth telling: " (38 % of it is ...)".
std::string what_holds_up(const WarnedPlan& k) {
  const auto f = forecast(k.question, k.profile, {.memory = false});
  if (!f) return "";
  Seconds most = f->breakdown.bubble;
  std::string what = "the pipeline's bubble";
  const auto weigh = [&](Seconds t, std::string name) {
    if (t > most) most = t, what = std::move(name);
  };
  for (const auto& [kind, t] : f->breakdown.exposed)
    weigh(t, sentence("communication that nothing hides: ", kind));
  weigh(f->breakdown.host, "waiting for the host to launch kernels");
  const double share = most / f->step_time.expected;
  if (share < least_told_share) return "";
  return sentence(" (", shown_share(share), " of it is ", what, ')');
}

std::string times(double ratio) { return sentence(fixed(ratio, 2), " times"); }

bool joined_by_nvlink(const NodeGroup& g) {
  return g.gpu.nvlink.value > 0 &&
         (g.node.intra_link == IntraLink::nvswitch || g.node.intra_link == IntraLink::nvlink_mesh);
}

void warn_of_idle_gpus(const WarnedPlan& k, std::vector<std::string>& to) {
  const Cluster& c = k.question.cluster;
  if (c.groups.size() != 1 || c.gpus() == 1 || c.gpus() > largest_box_compared) return;
  Cluster part = c;
  NodeGroup& group = part.groups.front();
  const bool several = c.nodes() > 1;
  if (!several && joined_by_nvlink(group)) return;
  if (!several) group.gpus_per_node = 1;
  group.nodes = 1;
  part.network.reset();
  const auto alone = k.best_step_on(part);
  if (!alone) return;
  const double faster = *alone / k.step, over = static_cast<double>(c.gpus()) / part.gpus();
  if (faster >= poor_use_of_gpus * over) return;
  const std::string why = what_holds_up(k);
  const std::string one = several ? sentence("one node of ", part.gpus()) : std::string("one card");
  to.push_back(
      faster <= 1.0
          ? sentence("All ", c.gpus(), " GPUs together are no faster than ", one, ": ",
                     shown_time(k.step), " a step", why, " against ", shown_time(*alone), '.')
          : sentence("All ", c.gpus(), " GPUs together are only ", times(faster), " as fast as ",
                     one, ", over ", several ? "this network" : "PCIe without NVLink", ": ",
                     shown_time(k.step), " a step", why, '.'));
}

// Of a box of unlike cards: those of one kind, or one of them, may do as well without the others.
void warn_of_slower_cards(const WarnedPlan& k, std::vector<std::string>& to) {
  const Cluster& c = k.question.cluster;
  if (!c.mixed_in_one_node || c.gpus() > largest_box_compared) return;
  std::optional<Seconds> best;
  std::string of_what;
  for (const NodeGroup& group : c.groups)
    for (const int cards : {group.gpus(), 1}) {
      Cluster part = c;
      part.groups = {group};
      part.groups.front().gpus_per_node = cards;
      part.mixed_in_one_node = false;
      const auto step = k.best_step_on(part);
      if (!step || (best && *step >= *best)) continue;
      best = step;
      of_what =
          cards == 1 ? sentence("one ", group.gpu.name) : sentence(cards, " x ", group.gpu.name);
    }
  if (!best || *best > k.step) return;
  to.push_back(sentence("All ", c.gpus(), " GPUs together are no faster than ", of_what,
                        " without the others: ", shown_time(k.step), " against ", shown_time(*best),
                        " a step."));
}

void warn_of_network(const WarnedPlan& k, std::vector<std::string>& to) {
  if (!k.question.cluster.network || k.question.cluster.nodes() == 1) return;
  Question q = k.question;
  q.cluster.network->port_bandwidth.value *= 2;
  for (NodeGroup& g : q.cluster.groups) g.node.nic_bandwidth.value *= 2;
  const auto wider = step_of(k, q);
  if (!wider || k.step / *wider < worth_telling) return;
  const bool tensor = k.question.plan.tensor > gpus_per_node(k.question.cluster);
  to.push_back(sentence("The network between nodes holds this plan up",
                        tensor ? sentence(" (tp=", k.question.plan.tensor, " spans nodes)") : "",
                        ": with twice its bandwidth the same plan would be ",
                        times(k.step / *wider), " as fast."));
}

void warn_of_batch(const WarnedPlan& k, std::vector<std::string>& to) {
  if (k.question.plan.pipeline == 1) return;
  Question q = k.question;
  q.plan.microbatches *= 2;
  const auto twice = step_of(k, q);
  if (!twice) return;
  const double faster = 2 * (k.step / *twice);
  if (faster < worth_telling) return;
  to.push_back(sentence("The batch is small for ", k.question.plan.pipeline, " stages: with ",
                        grouped(q.plan.global_batch()), " sequences per step the same plan would ",
                        "train ", times(faster), " as many tokens per second."));
}

void warn_of_loader(const WarnedPlan& k, std::vector<std::string>& to) {
  Question q = k.question;
  if (!q.workload.load_per_sequence) return;
  q.workload.load_per_sequence.reset();
  const auto unhindered = step_of(k, q);
  if (!unhindered || k.step / *unhindered < worth_telling) return;
  const double rate =
      k.question.plan.global_batch() / unhindered->value / k.question.cluster.nodes();
  to.push_back(sentence("The step waits for its data: with loaders of ", shown_rate(rate),
                        " sequences per second and node, or more, it would be ",
                        times(k.step / *unhindered), " as fast."));
}

}  // namespace

std::vector<std::string> plan_warnings(const WarnedPlan& plan) {
  std::vector<std::string> warnings;
  warn_of_idle_gpus(plan, warnings);
  warn_of_slower_cards(plan, warnings);
  warn_of_network(plan, warnings);
  warn_of_batch(plan, warnings);
  warn_of_loader(plan, warnings);
  return warnings;
}

std::vector<std::string> plan_warnings(const ResolvedRequest& request, const SearchSite& site,
                                       const FoundPlan& best, const SearchWish& wish) {
  const Question question{site.space.workload(best.plan), best.plan, site.cluster};
  const Profile& profile = request.facts->profile;
  const auto best_step_on = [&](const Cluster& part) -> std::optional<Seconds> {
    const SearchSite on_part(request, request.methods.front(), part);
    SearchWish fastest = wish;
    fastest.objective = objective_named("time");
    fastest.top = 1;
    const SearchResult found = search_plans({&on_part}, profile, fastest);
    if (found.best.empty()) return std::nullopt;
    return found.best.front().forecast.step_time.expected;
  };
  return plan_warnings({question, best.forecast.step_time.expected, profile, best_step_on});
}

}  // namespace shardwise
