// What searches hand on to each other, and plans to plans, changes no answer.
#include "planner/search/search_known.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/known_layers.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/small_problems.hpp"

namespace shardwise {
namespace {

using Sites = std::vector<const SearchSite*>;

const Profile& known_profile() { return known_facts().profile; }

SmallProblem larger_problem(const char* framework, const char* model, const char* gpus,
                            Method method, std::optional<std::string> recompute) {
  Request r = request_for(model, gpus, {method});
  r.framework = framework;
  r.sequence = 1024;
  r.batch = 16;
  r.recompute = std::move(recompute);
  return {std::string(model) + " on " + gpus + ", " + framework, resolved(r)};
}

// What random small problems seldom have or never: ranks of experts beside dense layers (the first
// of DeepSeek-V2-Lite is), a vision tower before layers, and both a tower and experts.
std::vector<SmallProblem> larger_problems() {
  std::vector<SmallProblem> list;
  list.push_back(
      larger_problem("megatron-lm", "deepseek-v2-lite", "8xA100-80GB", Method::pretrain, "full"));
  list.push_back(larger_problem("torchtitan", "deepseek-v2-lite", "8xA100-80GB", Method::pretrain,
                                std::nullopt));
  list.push_back(
      larger_problem("llama-factory", "qwen2-vl-2b", "4xA100-80GB", Method::full, std::nullopt));
  list.push_back(
      larger_problem("ms-swift", "qwen3-vl-30b-a3b", "8xH100-SXM", Method::lora, std::nullopt));
  return list;
}

std::vector<std::int64_t> all_counts(const SearchProof& p) {
  return {p.legal,  p.too_large,    p.refused,    p.begun,   p.timed,
          p.fitted, p.does_not_fit, p.no_smaller, p.bounded, p.in_sets};
}

bool is_same_plan(const FoundPlan& a, const FoundPlan& b) {
  return a.site == b.site && a.point == b.point && a.plan == b.plan && a.value == b.value &&
         a.forecast.step_time.expected == b.forecast.step_time.expected &&
         a.forecast.peak_device.expected == b.forecast.peak_device.expected;
}

void check_same_found(const SearchResult& a, const SearchResult& b) {
  CHECK(std::equal(a.best.begin(), a.best.end(), b.best.begin(), b.best.end(), is_same_plan));
  CHECK(all_counts(a.proof) == all_counts(b.proof));
  CHECK(a.proof.points == b.proof.points);
  CHECK(a.refused_all == b.refused_all);
}

SearchWish wish_for(const char* objective, std::shared_ptr<SearchKnown> known = nullptr) {
  SearchWish wish;
  wish.objective = objective_named(objective);
  wish.known = std::move(known);
  return wish;
}

bool shares_experts(const SearchSite& site) {
  for (const PlanPoint& x : site.space.outer_points())
    if (site.space.layers_of(x).expert > 1) return true;
  return false;
}

bool is_same_bound(const RunBound& a, const RunBound& b) {
  return a.forward == b.forward && a.backward == b.backward && a.saved == b.saved &&
         a.rise == b.rise && a.host == b.host;
}

// Of layers that one `known` tells of every plan of a site, under one policy.
class LayersCompared {
 public:
  void on(const SmallProblem& problem, const std::vector<std::string>& policies) {
    const ResolvedRequest& r = problem.request;
    const SearchSite site(r, r.methods.front(), r.clusters.front());
    const CollectiveModel collectives(site.cluster, known_profile().links);
    KnownLayers known;
    std::set<const LayerBounds*> distinct;
    for (const PlanPoint& point : site.space.outer_points()) {
      ParallelPlan p = site.space.layers_of(point);
      const BoundSite at{site.space.workload(p), site.cluster, known_profile(), collectives};
      p.recompute = "full";  // whose ends the others share
      known.of(0, at, p);
      for (const std::string& policy : policies) {
        p.recompute = policy;
        INFO(problem.told << ": " << whole_text(p));
        const auto shared = known.of(0, at, p);
        ++asked;
        if (!distinct.insert(shared.get()).second) ++found;
        if (p.expert > 1) ++with_experts;
        if (at.workload.model.vision) ++with_tower;
        compare(at, p, *shared);
      }
    }
  }

  int asked = 0, found = 0, with_experts = 0, with_tower = 0;

 private:
  static void compare(const BoundSite& at, const ParallelPlan& p, const LayerBounds& shared) {
    const LayerBounds own(at.workload, p, at.cluster, at.profile, at.collectives);
    REQUIRE(shared.blocks() == own.blocks());
    const int third = own.blocks() / 3, half = own.blocks() / 2;
    for (const LayerBounds::Chunk& chunk :
         {LayerBounds::Chunk{third, half, true, false}, LayerBounds::Chunk{0, 1, true, false},
          LayerBounds::Chunk{half, own.blocks() - half, false, true}})
      CHECK(is_same_bound(shared.run(chunk), own.run(chunk)));
    CHECK(is_same_bound(shared.whole(), own.whole()));
    CHECK(is_same_bound(shared.least(half, 2, 1), own.least(half, 2, 1)));
    CHECK(shared.least_saved() == own.least_saved());
    CHECK(shared.head_time() == own.head_time());
    CHECK(shared.embedding_time() == own.embedding_time());
    REQUIRE(shared.kinds().size() == own.kinds().size());
    for (std::size_t i = 0; i < own.kinds().size(); ++i) {
      CHECK(shared.kinds()[i].parameters == own.kinds()[i].parameters);
      CHECK(shared.kinds()[i].trainable == own.kinds()[i].trainable);
      CHECK(shared.kinds()[i].layers == own.kinds()[i].layers);
    }
    const LayerTimes* times = shared.times(at.workload, p, at.cluster, at.profile, at.collectives);
    if (times == nullptr) return;
    const CostModel cost(at.workload, p, at.cluster, at.profile);
    for (const LayerTimes::One& one : times->layers) {
      const KernelModel kernels(at.cluster.groups[one.group].gpu, at.profile,
                                attention_choice(at.workload, p));
      CHECK(cost.layer_time(*one.definition, kernels) == one.time);
    }
  }
};

}  // namespace

// Bounds that were found for another plan, of other ZeRO stages and offloads, and of layers without
// experts for one that shares experts out otherwise, are those that this plan's own layers have, to
// the last bit.
TEST_CASE("layers that are alike have the bounds that are known", "[search]") {
  std::mt19937 random(13);
  LayersCompared compared;
  while (compared.asked < 1500) {
    const SmallProblem problem = small_problem(random);
    compared.on(problem, {problem.request.asked.recompute.value_or("none")});
  }
  CHECK(4 * compared.found > compared.asked);  // or little is tested: FSDP has two ZeRO stages
  for (const SmallProblem& problem : larger_problems())
    compared.on(problem, {"none", "selective", "one-in-2-layers", "full"});
  INFO(compared.with_experts << " " << compared.with_tower);
  CHECK(compared.with_experts > 100);
  CHECK(compared.with_tower > 20);
}

// The same plans, in the same order, with the same proof: where nothing is known, where the same
// search and where one with another wish went before.
TEST_CASE("what searches before have found out changes no answer", "[search]") {
  std::mt19937 random(17);
  std::vector<SmallProblem> problems = larger_problems();
  for (int i = 0; i < 40; ++i) problems.push_back(small_problem(random));
  int with_experts = 0, with_tower = 0, best_with_experts = 0, found = 0;
  for (const SmallProblem& problem : problems) {
    INFO(problem.told);
    const ResolvedRequest& r = problem.request;
    const SearchSite site(r, r.methods.front(), r.clusters.front());
    const Sites sites{&site};
    const SearchResult alone = search_plans(sites, known_profile(), wish_for("time"));
    const auto known = std::make_shared<SearchKnown>(sites, known_profile());
    const SearchWish wish = wish_for("time", known);
    check_same_found(alone, search_plans(sites, known_profile(), wish));
    SearchWish other = wish_for("headroom", known);
    other.allow_tight = true;
    other.refused = [](const Question& q) -> std::optional<std::string> {
      if (q.plan.pipeline > 1) return "it is";
      return std::nullopt;
    };
    const SearchResult after = search_plans(sites, known_profile(), other);
    other.known = nullptr;
    check_same_found(search_plans(sites, known_profile(), other), after);
    check_same_found(alone, search_plans(sites, known_profile(), wish));
    if (alone.best.empty()) continue;
    ++found;
    with_experts += shares_experts(site);
    with_tower += site.without_zero.model.vision.has_value();
    for (const FoundPlan& p : alone.best) best_with_experts += p.plan.expert > 1;
  }
  INFO(found << " " << with_experts << " " << with_tower << " " << best_with_experts);
  CHECK(found > 20);
  CHECK(with_experts > 2);
  CHECK(with_tower >= 2);
  CHECK(best_with_experts > 0);
}

// A card with a slower link to the others, other cards, the same two the other way round, a site
// that lies where another one lay: what is known of those tells nothing of these.
TEST_CASE("a search leaves alone what is known of other sites", "[search]") {
  Request request = request_for("llama-3.2-1b", "4xRTX-4090", {Method::full});
  request.framework = "pytorch-fsdp2";
  request.sequence = 1024;
  request.batch = 8;
  const ResolvedRequest slow = resolved(request);
  request.gpus = "4xH100-SXM";
  const ResolvedRequest fast = resolved(request);
  const SearchSite a(slow, Method::full, slow.clusters.front());
  const SearchSite b(fast, Method::full, fast.clusters.front());
  const auto first = std::make_shared<SearchKnown>(Sites{&a}, known_profile());
  CHECK(first->is_of({&a}, known_profile()));
  CHECK_FALSE(first->is_of({&b}, known_profile()));
  CHECK_FALSE(first->is_of({&a, &b}, known_profile()));
  const Profile copy = known_profile();
  CHECK_FALSE(first->is_of({&a}, copy));
  CHECK(known_on({&a}, known_profile(), first) == first);
  CHECK(known_on({&b}, known_profile(), first)->is_of({&b}, known_profile()));
  search_plans({&a}, known_profile(), wish_for("time", first));
  for (const Sites& sites : {Sites{&b}, Sites{&a, &b}, Sites{&b, &a}})
    check_same_found(search_plans(sites, known_profile(), wish_for("time")),
                     search_plans(sites, known_profile(), wish_for("time", first)));
  const auto both = std::make_shared<SearchKnown>(Sites{&a, &b}, known_profile());
  search_plans({&a, &b}, known_profile(), wish_for("time", both));
  check_same_found(search_plans({&b, &a}, known_profile(), wish_for("time")),
                   search_plans({&b, &a}, known_profile(), wish_for("time", both)));
  std::optional<SearchSite> place;
  std::shared_ptr<SearchKnown> before;
  for (const ResolvedRequest* r : {&slow, &fast}) {
    place.emplace(*r, Method::full, r->clusters.front());
    const Sites sites{&*place};
    if (before) CHECK_FALSE(before->is_of(sites, known_profile()));
    check_same_found(search_plans(sites, known_profile(), wish_for("time")),
                     search_plans(sites, known_profile(), wish_for("time", before)));
    before = std::make_shared<SearchKnown>(sites, known_profile());
    search_plans(sites, known_profile(), wish_for("time", before));
  }
}

}  // namespace shardwise
