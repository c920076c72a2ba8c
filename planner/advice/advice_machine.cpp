#include <algorithm>
#include <cmath>
#include <utility>

#include "catalog/cluster_parser.hpp"
#include "catalog/placement.hpp"
#include "planner/advice/advice_trial.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/model_states.hpp"
#include "planner/request/asked_cluster.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"
#include "simulator/memory/played_alike.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {
namespace {

// So many times the cards at most, or cards of so many times the memory: a preference, for advice
// that can be taken.
constexpr int most_times = 4;
constexpr int one_box = largest_usual_box;

// Whether somebody sells it, or rents it out.
bool has_price(const Prices& prices, const Gpu& gpu) {
  const auto is = [&](const auto& price) { return price.gpu == gpu.id; };
  return std::any_of(prices.launch.begin(), prices.launch.end(), is) ||
         std::any_of(prices.cloud.begin(), prices.cloud.end(), is);
}

std::vector<Cluster> clusters_of(const AdviceTrial& t, const std::string& words) {
  ClusterOptions options = cluster_options(t.request.asked);
  options.gpus_per_node.reset();
  auto clusters = parse_gpus(t.request.facts->catalog, words, options);
  return clusters ? *std::move(clusters) : std::vector<Cluster>{};
}

// The plan that missed, over `cluster`: more GPUs are more data ranks, or more cards that layers
// are split over.
Question spread_over(const AdviceTrial& t, const Cluster& cluster) {
  Question q = t.question();
  ParallelPlan& p = q.plan;
  q.cluster = cluster;
  if (p.layer_split)
    p.pipeline = cluster.gpus();
  else
    p.data = cluster.gpus() / (p.tensor * p.context * p.pipeline);
  if (p.shard_group) p.shard_group = std::min(gpus_per_node(cluster) / p.tensor, p.data);
  const int round = p.data * p.microbatch;
  p.microbatches = std::max(1, (t.request.batch + round - 1) / round);
  p.layers_per_stage.clear();
  return q;
}

// A larger machine that is no faster is badly used: then the plan that `fit` would choose on it,
// unless that is none, or no better.
ChosenPlan best_there(const AdviceTrial& t, ChosenPlan found) {
  if (found.forecast.tokens_per_s > t.missed.forecast.tokens_per_s) return found;
  auto chosen = choose_fitting(t.request, t.method, found.question.cluster);
  const bool worse = !chosen ||
                     (chosen->verdict == Verdict::tight && found.verdict == Verdict::fits) ||
                     chosen->forecast.tokens_per_s < found.forecast.tokens_per_s;
  return worse ? std::move(found) : *std::move(chosen);
}

bool offer_machine(AdviceTrial& t, std::string change, Question q,
                   std::shared_ptr<const MemoryPlays> plays = nullptr) {
  auto found = fits_with(t, std::move(q), HostRam::decides, std::move(plays));
  if (found) record_advice(t, std::move(change), best_there(t, *std::move(found)));
  return found.has_value();
}

// Cards beyond `count` that people build with: one more in a box, then whole boxes.
int next_count(int count) { return count < one_box ? count + 1 : (count / one_box + 1) * one_box; }

// The least count that may hold it: nothing that a GPU holds shrinks faster than the number of GPUs
// grows. At most `most`, and one more than that where it is beyond.
int least_count(int gpus, Bytes device, Bytes capacity, int most) {
  const double count = gpus * (device / capacity);
  return count >= most ? most + 1 : static_cast<int>(std::ceil(count));
}

std::string where_they_stand(const Cluster& cluster) {
  if (cluster.nodes() == 1) return "";
  return sentence(", in ", cluster.nodes(), " boxes",
                  cluster.network ? sentence(" joined by ", cluster.network->name) : "");
}

std::string more_cards(const AdviceTrial& t, int count, const Cluster& cluster) {
  return sentence(count, " x ", t.cluster.groups.front().gpu.name, " instead of ", t.cluster.gpus(),
                  where_they_stand(cluster));
}

// One card has no plan that could be spread: several get the one that `fit` would choose for them,
// in the framework that they usually run. Nobody adds a card that is not sold (a laptop's).
void advise_several(AdviceTrial& t) {
  const Gpu& gpu = t.cluster.groups.front().gpu;
  if (!t.request.asked.plans.empty() || !has_price(t.request.facts->catalog.prices, gpu)) return;
  if (!t.request.asked.framework &&
      lacking_file(t.request.facts->catalog, usual_framework(t.method, one_box)))
    return;
  constexpr int most = 2 * one_box;
  const Bytes capacity = gpu.usable_memory();
  int least = 2;
  for (int count = 2; count <= most; count = next_count(count)) {
    if (count < least) continue;
    const std::vector<Cluster> clusters = clusters_of(t, sentence(count, "x", gpu.id));
    if (clusters.empty()) return;
    const Cluster& cluster = clusters.front();
    const Bytes states = model_states(choose_workload(t.request, t.method, cluster, 3).workload);
    least = t.request.asked.offload ? count : least_count(1, states, capacity, most);
    if (count < least) continue;
    ResolvedRequest r = t.request;
    r.batch = (r.batch + count - 1) / count * count;
    const auto chosen = choose_plan(r, t.method, cluster);
    if (!chosen) return;
    if (chosen->verdict != Verdict::does_not_fit)
      return record_advice(t, more_cards(t, count, cluster), *chosen);
    least = least_count(count, chosen->forecast.peak_device.expected, capacity, most);
  }
}

}  // namespace

void advise_more_gpus(AdviceTrial& t) {
  const NodeGroup& group = t.cluster.groups.front();
  const int now = t.cluster.gpus();
  if (now == 1) return advise_several(t);
  if (t.cluster.groups.size() > 1) return;  // more of which?
  if (t.question().plan.zero_stage < 3 && (!t.question().plan.layer_split || now >= one_box))
    return;  // replicas do not shrink
  const Bytes capacity = group.gpu.usable_memory();
  const int most = std::max(most_times * now, 2 * one_box);
  Bytes device = t.missed.forecast.peak_device.expected;
  int before = now;
  const int next = next_count(now);
  for (int count = next; count <= most;) {
    const std::vector<Cluster> clusters = clusters_of(t, sentence(count, "x", group.gpu.id));
    if (clusters.empty()) return;
    const Question q = spread_over(t, clusters.front());
    const std::string change = more_cards(t, count, clusters.front());
    if (count == next) {  // what so many need is near enough to what is known
      if (offer_machine(t, change, q)) return;
    } else if (states_on_gpu(q.workload, q.plan) <= capacity) {
      const auto missed = forecast(q, t.request.facts->profile, {.time = false});
      if (!missed || offer_machine(t, change, q, missed->plays)) return;
      device = missed->peak_device.expected;
      before = count;
    }
    const int least = least_count(before, device, capacity, most);
    do count = next_count(count);
    while (count < least);
  }
}

namespace {

// Other cards may train in another number format or attend by another kernel.
std::optional<ChosenPlan> fits_on_other_cards(const AdviceTrial& t, const Cluster& cluster) {
  Question q = spread_over(t, cluster);
  q.workload = choose_workload(t.request, t.method, cluster, q.plan).workload;
  const bool alike = played_alike(t.question().workload, q.workload);
  return fits_with(t, std::move(q), HostRam::decides, alike ? t.missed.forecast.plays : nullptr);
}

}  // namespace

void advise_bigger_cards(AdviceTrial& t) {
  const Gpu& now = t.cluster.groups.front().gpu;
  std::vector<Bytes> sizes;
  for (const Gpu& gpu : t.request.facts->catalog.gpus)
    if (gpu.stands_for_size && gpu.memory > now.memory &&
        gpu.memory <= std::int64_t{most_times} * now.memory && gpu.vendor == now.vendor)
      sizes.push_back(gpu.memory);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const Bytes size : sizes) {
    std::vector<std::string> names;
    std::optional<ChosenPlan> fitting;
    for (const Cluster& cluster :
         clusters_of(t, sentence(t.cluster.gpus(), "x", fixed(gib(size), 0), "GB"))) {
      const Gpu& gpu = cluster.groups.front().gpu;
      if (gpu.vendor != now.vendor || names.size() == 3) continue;
      if (!has_price(t.request.facts->catalog.prices, gpu)) continue;
      if (!fitting) fitting = fits_on_other_cards(t, cluster);
      if (fitting) names.push_back(gpu.name);
    }
    if (!fitting) continue;
    record_advice(t,
                  sentence(t.cluster.gpus(), t.cluster.gpus() == 1 ? " card of " : " cards of ",
                           fixed(gib(size), 0), " GB, such as ", listed(names, " or ")),
                  best_there(t, *std::move(fitting)));
    return;
  }
}

}  // namespace shardwise
