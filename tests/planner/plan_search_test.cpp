#include "planner/search/plan_search.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/answers/plan_answer.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/search/pipeline_sketch.hpp"
#include "planner/search/plan_bounds.hpp"
#include "tests/catch.hpp"
#include "tests/planner/small_problems.hpp"
#include "tests/planner/uncertain_facts.hpp"

namespace shardwise {
namespace {

const Profile& profile() { return known_facts().profile; }

Bytes fullest(const Forecast& f) {
  Bytes most;
  for (const StageForecast& s : f.stages) most = std::max(most, s.peak.device);
  return most;
}

// Every legal plan, forecast whole.
std::vector<FoundPlan> all_plans(const SearchSite& site) {
  std::vector<FoundPlan> all;
  for (PlanPoint outer : site.space.outer_points())
    for (std::size_t i = 0; i < site.space.values(PlanAxis::recompute); ++i) {
      outer[static_cast<std::size_t>(PlanAxis::recompute)] = static_cast<std::uint16_t>(i);
      site.space.each_pipeline(outer, [&](PlanPoint x, const ParallelPlan& p) {
        std::vector<std::uint16_t> groups = site.space.shard_positions(p);
        groups.insert(groups.begin(), 0);
        for (const std::uint16_t group : groups) {
          x[static_cast<std::size_t>(PlanAxis::shard_group)] = group;
          all.push_back({0, x, *site.space.plan(x), {}, 0});
        }
      });
    }
  for (FoundPlan& p : all)
    p.forecast = *forecast({site.space.workload(p.plan), p.plan, site.cluster}, profile());
  return all;
}

// The first `top` of them by the objective, then time, then index.
std::vector<FoundPlan> ranked(std::vector<FoundPlan> all, const SearchSite& site,
                              const SearchWish& wish) {
  std::erase_if(all, [&](const FoundPlan& p) { return !is_wanted(p.forecast, wish); });
  for (FoundPlan& p : all)
    p.value = wish.objective->value(site.rates, p.forecast.step_time.expected,
                                    Bytes(-p.forecast.margin.value));
  std::sort(all.begin(), all.end(), [](const FoundPlan& a, const FoundPlan& b) {
    const auto key = [](const FoundPlan& p) {
      return std::make_pair(p.value, p.forecast.step_time.expected.value);
    };
    return key(a) != key(b) ? key(a) < key(b) : before(a.point, b.point);
  });
  if (all.size() > static_cast<std::size_t>(wish.top))
    all.resize(static_cast<std::size_t>(wish.top));
  return all;
}

bool same(const std::vector<FoundPlan>& a, const std::vector<FoundPlan>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const FoundPlan& x, const FoundPlan& y) {
                      return x.point == y.point && x.plan == y.plan && x.value == y.value &&
                             x.forecast.step_time.expected == y.forecast.step_time.expected &&
                             x.forecast.peak_device.expected == y.forecast.peak_device.expected;
                    });
}

// By time, then index: those that no other covers, of equal ones the first. Memory counts by whole
// thirty-seconds of a card.
std::vector<FoundPlan> uncovered(std::vector<FoundPlan> all, const SearchSite& site,
                                 const SearchWish& wish) {
  SearchWish every = wish;
  every.objective = objective_named("time");
  every.top = 1 << 30;
  all = ranked(std::move(all), site, every);
  const Bytes step = pareto_step({&site});
  std::vector<FoundPlan> front;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ParetoFigures mine = pareto_figures(site, all[i].forecast, step);
    bool covered = false;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const ParetoFigures other = pareto_figures(site, all[k].forecast, step);
      covered = covered || (other.covers(mine) && (!mine.covers(other) || k < i));
    }
    if (!covered) front.push_back(all[i]);
  }
  return front;
}

bool accounts_for_all(const SearchProof& p) {
  return p.legal == p.in_sets + p.bounded + p.too_large + p.refused + p.begun && p.in_sets >= 0 &&
         p.begun >= std::max(p.timed, p.fitted) && p.begun <= p.timed + p.fitted;
}

// 200 random problems whose plans brute force can forecast too, each with its number from 1 on.
template <typename Check>
void on_small_spaces(unsigned seed, Check check) {
  std::mt19937 random(seed);
  for (int problems = 0; problems < 200;) {
    const SmallProblem problem = small_problem(random);
    const SearchSite site(problem.request, problem.request.methods.front(),
                          problem.request.clusters.front());
    const std::int64_t legal = site.space.legal();
    if (legal < 3 || legal > 60) continue;
    INFO(problem.told);
    check(site, ++problems);
  }
}

}  // namespace

// Brute force forecasts the whole space; every objective must find its first ten, ties in order.
TEST_CASE("the search finds what brute force finds, on random problems", "[search]") {
  int plans = 0;
  on_small_spaces(11, [&](const SearchSite& site, int problems) {
    const std::vector<FoundPlan> all = all_plans(site);
    plans += static_cast<int>(all.size());
    for (const char* objective : {"time", "headroom"}) {
      SearchWish wish;
      wish.objective = objective_named(objective);
      wish.allow_tight = problems % 2 == 0;
      wish.memory_fraction = problems % 3 == 0 ? 0.2 : 1;
      const SearchResult found = search_plans({&site}, profile(), wish);
      INFO(objective);
      CHECK(same(found.best, ranked(all, site, wish)));
      CHECK(accounts_for_all(found.proof));
      CHECK(found.proof.legal == site.space.legal());
      if (*objective == 't')
        CHECK(same(pareto_front({&site}, profile(), wish).best, uncovered(all, site, wish)));
    }
  });
  INFO(plans);
  CHECK(plans > 2000);
}

// What is refused once the best two are known must not hold the next one back, nor stand for it: of
// all plans by rank it is the first after them that keeps all or is not of this ZeRO stage.
TEST_CASE("a search that goes on finds the next in rank that is not refused", "[search]") {
  int further = 0, passed_over = 0;
  on_small_spaces(15, [&](const SearchSite& site, int problems) {
    SearchWish wish;
    wish.objective = objective_named("time");
    wish.allow_tight = problems % 2 == 0;
    wish.top = 1 << 30;
    const std::vector<FoundPlan> all = ranked(all_plans(site), site, wish);
    wish.top = 2;
    const auto refused = [](const ParallelPlan& p) {
      return p.recompute != "none" && p.zero_stage < 2;
    };
    wish.further = [&](const SearchResult& found) -> PlanRefusal {
      CHECK(accounts_for_all(found.proof));
      return [&](const Question& q) -> std::optional<std::string> {
        if (refused(q.plan)) return "it is";
        return std::nullopt;
      };
    };
    const SearchResult found = search_plans({&site}, profile(), wish);
    auto next = all.begin() + std::min<std::ptrdiff_t>(2, std::distance(all.begin(), all.end()));
    for (; next != all.end() && refused(next->plan); ++next) ++passed_over;
    CHECK(found.further.has_value() == (next != all.end()));
    if (next == all.end() || !found.further) return;
    ++further;
    CHECK(same({*found.further}, {*next}));
  });
  CHECK(further > 50);
  CHECK(passed_over > 50);
}

// Other cores refine ahead of the search; what they make must not tell, and nor must who made it.
TEST_CASE("a search alone finds and counts what it finds on all cores", "[search]") {
  std::mt19937 random(14);
  const auto counts = [](const SearchProof& p) {
    return std::vector<std::int64_t>{p.legal,  p.too_large,    p.refused, p.timed,
                                     p.fitted, p.does_not_fit, p.bounded, p.in_sets};
  };
  int found = 0;
  for (int problems = 0; problems < 60; ++problems) {
    const SmallProblem problem = small_problem(random);
    const SearchSite site(problem.request, problem.request.methods.front(),
                          problem.request.clusters.front());
    INFO(problem.told);
    SearchWish wish;
    wish.objective = objective_named("time");
    const SearchResult together = search_plans({&site}, profile(), wish);
    one_of_a_crew = true;
    const SearchResult alone = search_plans({&site}, profile(), wish);
    one_of_a_crew = false;
    CHECK(same(together.best, alone.best));
    CHECK(counts(together.proof) == counts(alone.proof));
    found += static_cast<int>(alone.best.size());
  }
  CHECK(found > 60);
}

TEST_CASE("threads that share the work of one beside many are so too", "[search]") {
  std::vector<int> told(64, 0);
  const auto ask = [&](std::size_t i) { told[i] = one_of_many ? 1 : 0; };
  {
    const BesideMany marked;
    on_all_cores(told.size(), ask);
  }
  CHECK(std::count(told.begin(), told.end(), 1) == 64);
  CHECK_FALSE(one_of_many);
  on_all_cores(told.size(), ask);
  CHECK(std::count(told.begin(), told.end(), 0) == 64);
}

TEST_CASE("no bound is above the forecast", "[search]") {
  std::mt19937 random(12);
  InFlightCounts counts;
  KnownSlots slots;
  int plans = 0, offloaded = 0;
  while (plans < 3000) {
    const SmallProblem problem = small_problem(random);
    const SearchSite site(problem.request, problem.request.methods.front(),
                          problem.request.clusters.front());
    const auto outer = site.space.outer_points();
    for (int i = 0; i < 30; ++i) {
      const PlanPoint point = outer[random() % outer.size()];
      std::vector<ParallelPlan> inner;
      site.space.each_pipeline(point,
                               [&](PlanPoint, const ParallelPlan& p) { inner.push_back(p); });
      if (inner.empty()) continue;
      const ParallelPlan& p = inner[random() % inner.size()];
      const CollectiveModel collectives(site.cluster, profile().links);
      const BoundSite at{site.space.workload(p), site.cluster, profile(), collectives};
      const LayerBounds layers(at.workload, site.space.layers_of(point), site.cluster, profile(),
                               collectives);
      const Forecast f = *forecast({at.workload, p, site.cluster}, profile());
      ++plans;
      const bool away = p.offload.parameters || p.offload.optimizer || p.offload.activations;
      offloaded += away;
      INFO(problem.told << ": " << whole_text(p));
      CHECK(mean_work_bound(layers, p, site.space.batch()) <= f.step_time.expected);
      CHECK(pipeline_bound(layers, p) <= f.step_time.expected);
      const Seconds gathered = pipeline_bound(layers, p, data_traffic(at, layers, p));
      CHECK(gathered <= f.step_time.expected);
      CHECK((1 - 1e-6) * gathered <=
            std::max(costed_bound(at, layers, p, slots), together_bound(at, layers, p, slots)));
      CHECK(costed_bound(at, layers, p, slots) <= f.step_time.expected);
      CHECK(together_bound(at, layers, p, slots) <= f.step_time.expected);
      CHECK(stream_bound(at, layers, p) <= f.step_time.expected);
      CHECK(stage_mean_bound(at, layers, p) <= fullest(f));
      const PipelineSketch sketch = sketch_of(p, layers.blocks(), {});
      const std::vector<LayerState> held = layer_states(at, layers, p);
      const StateBounds states(at, layers, p, held);
      CHECK(sketched_time(sketch, layers) <= f.step_time.expected);
      CHECK(sketched_time(sketch, layers, data_traffic(at, layers, p)) <= f.step_time.expected);
      CHECK(sketched_memory(sketch, layers, states, p, outside_tensors(at)) <= fullest(f));
      CHECK(memory_bound(at, layers, p, counts, held) + communicators_of(at, p) <= fullest(f));
      CHECK(mean_memory_bound(at, layers, site.space.layers_of(point),
                              site.space.most_stages(point)) <= fullest(f));
    }
  }
  INFO(offloaded);
  CHECK(offloaded > 500);
}

// What a sketch takes from the first 2p microbatches of a pipeline holds for all of them.
TEST_CASE("with fewer microbatches a stage has no more of them in flight") {
  int compared = 0;
  for (const PipelineSchedule& schedule : pipeline_schedules())
    for (const int stages : {2, 3, 4, 8})
      for (const int chunks : {1, 2, 3, 5})
        for (const int more : {3, 4, 5, 16}) {
          const PipelineShape few{stages, chunks, 2 * stages}, many{stages, chunks, more * stages};
          if (refusal(schedule, few) || refusal(schedule, many)) continue;
          for (int stage = 0; stage < stages; ++stage, ++compared) {
            INFO(schedule.name << " " << stages << " x " << chunks << " x " << more << ": "
                               << stage);
            CHECK(awaiting_backward(schedule.order(few, stage)) <=
                  awaiting_backward(schedule.order(many, stage)));
          }
        }
  CHECK(compared > 500);
}

// A single microbatch passes all model chunks forward and back, one after the other: the sum of all
// passes is a bound, also where each pass gathers its first layer and its input is on its way
// meanwhile.
TEST_CASE("gathers do not make a pass forget what it waits for") {
  Request r = request_for("gpt3-6.7b", "64xA100-80GB", {Method::pretrain});
  r.framework = "megatron-lm";
  r.sequence = 1024;
  r.batch = 128;
  const ResolvedRequest asked = resolved(r);
  const SearchSite site(asked, Method::pretrain, asked.clusters.front());
  const ParallelPlan p = *parse_plan(
      "dp=1,tp=2,sp=true,cp=4,pp=8,vpp=2,schedule=interleaved,zero=3,mbs=128,ga=1,"
      "recompute=selective");
  ParallelPlan whole = p;
  whole.pipeline = whole.chunks = 1;
  whole.data = 8;
  const CollectiveModel collectives(site.cluster, profile().links);
  const LayerBounds layers(site.space.workload(p), whole, site.cluster, profile(), collectives);
  const Forecast f = *forecast({site.space.workload(p), p, site.cluster}, profile());
  CHECK(pipeline_bound(layers, p) <= f.step_time.expected);
}

namespace {

// The bound of a plan's memory over its forecast.
double told_by_bound(const char* model, const char* gpus, const char* plan) {
  Request r = request_for(model, gpus, {Method::pretrain});
  r.framework = "megatron-lm";
  r.sequence = 4096;
  const ResolvedRequest asked = resolved(r);
  const SearchSite site(asked, Method::pretrain, asked.clusters.front());
  const ParallelPlan p = *parse_plan(plan);
  ParallelPlan whole = p;
  whole.pipeline = whole.chunks = 1;
  whole.data = p.data * p.pipeline;
  whole.schedule = "1f1b";
  whole.layers_per_stage.clear();
  const CollectiveModel collectives(site.cluster, profile().links);
  const BoundSite at{site.space.workload(p), site.cluster, profile(), collectives};
  const LayerBounds layers(at.workload, whole, site.cluster, profile(), collectives);
  const Forecast f = *forecast({at.workload, p, site.cluster}, profile());
  InFlightCounts counts;
  return memory_bound(at, layers, p, counts, layer_states(at, layers, p)) / fullest(f);
}

}  // namespace

// What is left out is NCCL's share and what the allocator cannot use. Chunks of one block and of
// two (126 blocks in 96 chunks, 1/31x2/63x1/0): all of them counted as the smallest would leave out
// half of what is in flight in the others. Three dense layers first (1/30x2/0): the fullest stage
// is the third one, the first with experts.
TEST_CASE("the bound of memory tells nearly all of it where chunks or layers are unlike") {
  const double chunks =
      told_by_bound("llama-3.1-405b", "1024xH100-SXM",
                    "dp=8,tp=2,cp=4,pp=16,vpp=6,schedule=interleaved,zero=2,mbs=1,ga=32,"
                    "recompute=none,layers=1/31x2/63x1/0");
  CHECK(chunks > 0.9);
  CHECK(chunks <= 1);
  const double experts = told_by_bound(
      "deepseek-v3", "256xH800", "dp=4,cp=2,pp=32,ep=8,mbs=1,ga=64,recompute=none,layers=1/30x2/0");
  CHECK(experts > 0.9);
  CHECK(experts <= 1);
}

TEST_CASE("neither more time nor more memory makes an objective better") {
  const SiteRates rates{8, UsDollars{20}, 5.6, 1.1};
  for (const Objective& o : objectives()) {
    INFO(o.name);
    for (const double t : {1.0, 2.0, 30.0})
      for (const std::int64_t gib : {-40, 0, 10}) {
        const Bytes m(gib << 30);
        CHECK(o.value(rates, Seconds(t), m) <= o.value(rates, Seconds(1.5 * t), m));
        CHECK(o.value(rates, Seconds(t), m) <=
              o.value(rates, Seconds(t), Bytes(m.value + (std::int64_t{1} << 30))));
      }
  }
}

// Where forecasts may be three times too small, a plan that takes more than a third of its card is
// tight. 70B by QLoRA takes more than half of 6 x 24 GB however it is split; 1B less than a third.
TEST_CASE("where no plan is safe, those that fit by the forecast are shown") {
  const Facts facts = facts_with_memory_interval(0.5, 3);
  const auto a =
      plan_answer(request_for("llama-3.1-70b", "6xRTX-3090", {Method::qlora}), {}, facts);
  REQUIRE(a);
  REQUIRE_FALSE((*a)->result.best.empty());
  for (const FoundPlan& p : (*a)->result.best) CHECK(p.forecast.verdict == Verdict::tight);
  REQUIRE_FALSE((*a)->notes.empty());
  const auto& told = (*a)->notes;
  CHECK(std::any_of(told.begin(), told.end(), [](const std::string& note) {
    return note.starts_with("No plan leaves room");
  }));
  // Where some plan is safe, none but safe ones.
  const auto safe =
      plan_answer(request_for("llama-3.2-1b", "4xRTX-4090", {Method::qlora}), {}, facts);
  REQUIRE(safe);
  REQUIRE_FALSE((*safe)->result.best.empty());
  for (const FoundPlan& p : (*safe)->result.best) CHECK(p.forecast.verdict == Verdict::fits);
}

// Twice the GPUs for the same batch: the best plan is never slower, and never twice as fast and
// more (the work of all GPUs together is the same or more).
TEST_CASE("the scaling curve of a range") {
  Request r = request_for("llama-3.2-1b", "2..8xH100-SXM", {Method::pretrain});
  r.batch = 16;
  const auto a = plan_answer(r, {}, known_facts());
  REQUIRE(a);
  REQUIRE((*a)->scaling.size() == 3);
  for (const ScalingPoint& p : (*a)->scaling) {
    REQUIRE(p.best);
    CHECK(p.best->plan.gpus() == p.gpus);
    CHECK(p.best->plan.global_batch() == 16);
    if (!p.faster) continue;
    CHECK(*p.faster >= 1.0);
    CHECK(*p.faster <= 2.0 * 1.001);
  }
}

// One GPU alone would run another framework by default, and the curve would compare the two.
TEST_CASE("all sizes of a range run one framework") {
  Request r = request_for("llama-3.2-1b", "1..2xH100-SXM", {Method::lora});
  const auto curve = plan_answer(r, {}, known_facts());
  REQUIRE(curve);
  std::vector<std::string> ids;
  for (const SearchSite& site : (*curve)->sites) ids.push_back(site.without_zero.framework.id);
  CHECK(ids == std::vector<std::string>{"accelerate-fsdp", "accelerate-fsdp"});
  r.gpus = "1xH100-SXM";
  const auto alone = plan_answer(r, {}, known_facts());
  REQUIRE(alone);
  CHECK((*alone)->sites.front().without_zero.framework.id == "trl");
}

// The whole space holds plans that Megatron-LM's own arguments cannot say (norms and activations
// recomputed, Megatron-FSDP with model chunks), and some come out among the first. They are marked,
// those and no others, and noted: asked for Megatron-LM's own plans, the answer has nothing to add
// and is no faster.
TEST_CASE("plans that the usual framework cannot be told are marked") {
  Request r = request_for("llama-3.1-70b", "64xH100-SXM", {Method::pretrain});
  r.batch = 256;
  PlanWish wish;
  wish.top = 5;
  const LaunchTarget* megatron = launch_target_named("megatron");
  REQUIRE(megatron);
  struct Said {
    bool refused = false, noted = false;
    Seconds step;
  };
  const auto said = [&](const Request& asked) {
    const auto a = plan_answer(asked, wish, known_facts());
    REQUIRE(a);
    REQUIRE_FALSE((*a)->result.best.empty());
    bool refused = false;
    for (const FoundPlan& p : (*a)->result.best) {
      const SearchSite& site = (*a)->sites[p.site];
      const Question asked_of{site.space.workload(p.plan), p.plan, site.cluster};
      const bool here = !launch_refusals(*megatron, asked_of).empty();
      CHECK(here == beyond_usual(**a, p).has_value());
      refused |= here;
    }
    const auto& notes = (*a)->notes;
    const bool noted = std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("--framework megatron-lm keeps to plans that it runs") != std::string::npos;
    });
    return Said{refused, noted, (*a)->result.best.front().forecast.step_time.expected};
  };
  const Said whole = said(r);
  CHECK(whole.refused);
  CHECK(whole.noted);
  r.framework = "megatron-lm";
  const Said own = said(r);
  CHECK_FALSE(own.refused);
  CHECK_FALSE(own.noted);
  CHECK(own.step >= whole.step);
}

}  // namespace shardwise
