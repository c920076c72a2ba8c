#include "simulator/step/step_player.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <variant>
#include <vector>

#include "simulator/step/engine.hpp"
#include "simulator/step/lower.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// Draws costs: most parts of a step are there in some steps and absent in others.
class RandomCosts {
 public:
  explicit RandomCosts(std::uint32_t seed) : random_(seed) {}

  bool flip() { return random_() % 2 == 0; }
  Seconds time() { return Seconds(1e-6 * static_cast<double>(1 + random_() % 1000)); }
  std::optional<Seconds> maybe(bool there) {
    return there && flip() ? std::optional(time()) : std::nullopt;
  }

  StepCosts step(const ParallelPlan& plan) {
    gathers_ = flip(), reduces_ = flip(), copies_ = flip(), host_bound_ = flip();
    equal_ = flip();
    StepCosts costs;
    costs.overlaps_pipeline_comm = flip();
    costs.waits_for_all_stages = flip();
    costs.reduces_every_microbatch = flip();
    costs.gather_window = 1 + static_cast<double>(random_() % 3);
    for (int s = 0; s < plan.pipeline; ++s) {
      costs.stages.push_back(equal_ && s > 0 ? costs.stages.front() : stage(plan.chunks));
      costs.send.push_back(equal_ && s > 0 ? costs.send.front() : time());
    }
    costs.stages.front().load = maybe(true);
    if (flip())
      for (int s = 0; s < (flip() ? 1 : plan.pipeline / 2); ++s)
        if (plan.pipeline > 1) costs.tied.push_back({time(), s, plan.pipeline - 1 - s});
    return costs;
  }

  // Three links, of which each kind of traffic of each stage may want any part.
  StepTraffic traffic(const ParallelPlan& plan) {
    StepTraffic made;
    made.stages.resize(static_cast<std::size_t>(plan.pipeline));
    std::array<LinkId, 3> links{};
    for (LinkId& link : links) link = made.network.add_link(BytesPerSecond(1e9));
    for (auto& stage : made.stages)
      for (auto& kind : stage) {
        if (flip()) continue;
        std::vector<FlowLoad> loads;
        for (const LinkId link : links)
          if (flip()) loads.push_back({link, 0.1 * static_cast<double>(1 + random_() % 10)});
        kind = made.network.add_class(BytesPerSecond(1e8 * static_cast<double>(1 + random_() % 9)),
                                      loads);
      }
    return made;
  }

 private:
  PassTime pass() {
    PassTime p;
    p.compute = time();
    for (Seconds& s : p.exposed) s = maybe(true).value_or(Seconds(0));
    if (host_bound_) p.host = time();
    p.copies = maybe(copies_).value_or(Seconds(0));
    if (host_bound_) p.lead = maybe(true).value_or(Seconds(0));
    for (int waits = 0; host_bound_ && waits < 2 && flip(); ++waits)
      p.waited.push_back({0.25 * p.compute, {}, 0.125 * p.host, waits * 0.0625 * p.host});
    return p;
  }

  LayerSchedule layer() {
    LayerSchedule l;
    l.time = {pass(), flip() ? pass() : PassTime{}, pass(), pass()};
    l.gather_forward = maybe(gathers_);
    l.gather_backward = maybe(gathers_);
    if (l.gather_backward) l.gather_again = maybe(gathers_);
    l.gather_first = maybe(!gathers_);
    l.reduce = maybe(reduces_);
    l.copy_in = maybe(copies_);
    l.copy_out = maybe(copies_);
    return l;
  }

  StageCosts stage(int chunks) {
    StageCosts costs;
    for (int c = 0; c < chunks; ++c) {
      costs.chunks.emplace_back();
      for (auto n = random_() % 4; n > 0; --n) costs.chunks.back().push_back(layer());
    }
    costs.optimizer = time();
    costs.host_per_step = time();
    costs.host_optimizer = maybe(copies_);
    costs.nvme_each_way = maybe(copies_);
    costs.reduce_at_end = maybe(!reduces_);
    costs.copy_out_at_end = maybe(copies_);
    costs.gather_at_end = maybe(true);
    costs.copy_in_at_end = maybe(copies_);
    return costs;
  }

  std::mt19937 random_;
  bool gathers_ = false, reduces_ = false, copies_ = false, host_bound_ = false, equal_ = false;
};

struct BothWays {
  std::optional<PlayedStages> whole, fast;
};

// Each stage on a link of its own, of which all its kinds of traffic take a hundredth.
StepTraffic traffic_of_own_links(std::size_t stages) {
  StepTraffic traffic;
  traffic.stages.resize(stages);
  for (auto& kinds : traffic.stages) {
    const LinkId link = traffic.network.add_link(BytesPerSecond(1e9));
    for (auto& kind : kinds)
      kind = traffic.network.add_class(BytesPerSecond(1e9), std::array{FlowLoad{link, 0.01}});
  }
  return traffic;
}

// The same step unfolded and folded, which must take as long and have as many tasks.
BothWays both_ways(const ParallelPlan& plan, const PipelineSchedule& schedule,
                   const StepCosts& costs, const StepTraffic& traffic) {
  BothWays played{play_stages(plan, schedule, costs, &traffic, {.folds = false}),
                  play_stages(plan, schedule, costs, &traffic)};
  REQUIRE(played.whole);
  REQUIRE(played.fast);
  CHECK(played.fast->makespan == played.whole->makespan);
  CHECK(played.fast->tasks == played.whole->tasks);
  return played;
}

}  // namespace

// What the engine finds on the lowered graph of one rank per stage, the player finds as well: the
// makespan, which rank is busiest and every entry of its account, to the picosecond.
TEST_CASE("stages played on their own agree with the engine", "[step_player]") {
  int played_steps = 0;
  for (const PipelineSchedule& schedule : pipeline_schedules())
    for (const int p : {1, 2, 3, 4, 6, 8})
      for (const int v : {1, 2, 3})
        for (const int m : {1, 2, 5, 8, 12, 24}) {
          ParallelPlan plan = plan_of(1, 1, p);
          plan.schedule = schedule.name;
          plan.chunks = v;
          plan.microbatches = m;
          if (refusal(schedule, {p, v, m})) continue;
          const auto seed = static_cast<std::uint32_t>(++played_steps);
          RandomCosts random(seed);
          const StepCosts costs = random.step(plan);
          const bool shares = seed % 2 == 0;
          const StepTraffic traffic = shares ? random.traffic(plan) : StepTraffic{};
          const StepTraffic* const given = shares ? &traffic : nullptr;
          INFO(schedule.name << " p " << p << " v " << v << " m " << m << " seed " << seed);

          const LoweredStep step = lower(plan, schedule, costs, false, given);
          const auto timeline = std::get<Timeline>(run(step.graph));
          const std::vector<RankSummary> ranks = summarise_ranks(step.graph, timeline);
          const auto busiest = std::min_element(ranks.begin(), ranks.end(),
                                                [](const RankSummary& a, const RankSummary& b) {
                                                  return total(a.busy) > total(b.busy);
                                                });
          const auto played = play_stages(plan, schedule, costs, given);
          REQUIRE(played);
          CHECK(played->makespan == timeline.makespan);
          CHECK(played->tasks == static_cast<std::int64_t>(step.graph.task_count()));
          CHECK(played->busiest == busiest - ranks.begin());
          CHECK(played->summary == *busiest);
        }
  CHECK(played_steps > 250);
}

// Long steps settle into a rhythm, of which one period is played and the others are copied. Nothing
// of the answer may tell: every slot's tasks, played or copied, end when they do in a play without
// copies, so makespan, busiest rank and account are the same. Equal microbatches are the rule, so
// many of these steps must have been folded: at least one in three where links are shared.
TEST_CASE("a step that is folded in time equals one that is not", "[step_player]") {
  int steps = 0, folded = 0;
  std::int64_t skipped = 0, tasks = 0;
  for (const PipelineSchedule& schedule : pipeline_schedules())
    for (const int p : {1, 2, 4, 7})
      for (const int v : {1, 2, 3})
        for (const int m : {16, 42, 84, 168})
          for (int again = 0; again < 3; ++again) {
            ParallelPlan plan = plan_of(1, 1, p);
            plan.schedule = schedule.name;
            plan.chunks = v;
            plan.microbatches = m;
            if (refusal(schedule, {p, v, m})) continue;
            const auto seed = static_cast<std::uint32_t>(1000 + ++steps);
            RandomCosts random(seed);
            const StepCosts costs = random.step(plan);
            const StepTraffic traffic = random.traffic(plan);
            INFO(schedule.name << " p " << p << " v " << v << " m " << m << " seed " << seed);
            const auto [whole, fast] = both_ways(plan, schedule, costs, traffic);
            CHECK(fast->busiest == whole->busiest);
            CHECK(fast->summary == whole->summary);
            CHECK(whole->skipped == 0);
            CHECK(fast->skipped < fast->tasks);
            folded += fast->skipped > 0;
            skipped += fast->skipped;
            tasks += fast->tasks;
          }
  UNSCOPED_INFO(folded << " of " << steps << " steps, " << skipped << " of " << tasks << " tasks");
  CHECK(steps > 250);
  CHECK(3 * folded > steps);
}

// Where a period is long beside the step, it is found while later stages are still in their first:
// 64 microbatches through 16 stages of 5 chunks are 640 slots of each, and a round of 16 is 160 of
// them. At the second round hosts that run ahead have no whole period behind them that the latest
// one could be held against: what was played in its place is the start, of other tasks. The step is
// the same all the same.
TEST_CASE("a step is not folded by what is before its first period", "[step_player]") {
  ParallelPlan plan = plan_of(1, 1, 16);
  plan.schedule = "interleaved";
  plan.chunks = 5;
  plan.microbatches = 64;
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule);
  const StepTraffic traffic = traffic_of_own_links(16);
  LayerSchedule slow_host;
  slow_host.time.forward.compute = Seconds(1e-5);
  slow_host.time.forward.host = Seconds(2e-5);
  for (const double backward : {1e-3, 2e-3, 3e-3})
    for (const double send : {1e-6, 1e-5, 1e-4, 1e-3}) {
      LayerSchedule layer;
      layer.time.forward.compute = Seconds(1e-3);
      layer.time.backward_input.compute = Seconds(backward);
      layer.time.forward.host = layer.time.backward_input.host = Seconds(1e-4);
      StageCosts stage;
      stage.chunks.assign(5, {layer});
      StepCosts costs;
      costs.overlaps_pipeline_comm = true;
      costs.stages.assign(16, stage);
      costs.stages.back().chunks.back().push_back(slow_host);
      costs.send.assign(16, Seconds(send));
      INFO("backward " << backward << " s, send " << send << " s");
      const auto [whole, fast] = both_ways(plan, schedule, costs, traffic);
      CHECK(fast->summary == whole->summary);
    }
}

// Gradients that are reduced once, behind the last backward pass, keep a lane of every stage
// waiting for that pass all through the step. On the last stage of 1F1B every slot repeats, the
// last one as well; its reduction still waits when the step is folded, as that slot is then still
// to come. Of 168 microbatches through 4 stages some 8 settle and 8 drain: at least two thirds must
// be skipped.
TEST_CASE("a step is folded though a lane waits for the last slot that repeats", "[step_player]") {
  ParallelPlan plan = plan_of(1, 1, 4);
  plan.schedule = "1f1b";
  plan.microbatches = 168;
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule);
  const StepTraffic traffic = traffic_of_own_links(4);
  for (const double head : {0.0, 1e-4, 2e-3})
    for (const double send : {1e-6, 1e-4, 3e-3})
      for (const bool waits : {false, true}) {
        LayerSchedule layer;
        layer.time.forward.compute = Seconds(1e-3);
        layer.time.backward_input.compute = Seconds(2e-3);
        StageCosts stage;
        stage.chunks.assign(1, {layer});
        stage.optimizer = Seconds(1e-4);
        stage.reduce_at_end = Seconds(1e-2);
        StepCosts costs;
        costs.waits_for_all_stages = waits;
        costs.stages.assign(4, stage);
        layer.time.forward.compute = Seconds(head);
        costs.stages.back().chunks.back().push_back(layer);
        costs.send.assign(4, Seconds(send));
        INFO("head " << head << " s, send " << send << " s, waits " << waits);
        const auto [whole, fast] = both_ways(plan, schedule, costs, traffic);
        CHECK(fast->busiest == whole->busiest);
        CHECK(fast->summary == whole->summary);
        CHECK(3 * fast->skipped > 2 * fast->tasks);
      }
}

// Where nobody asks for a step longer than L, the play may end early. It then names a time above L,
// but never one above the step's own, which the whole play finds; a step of L itself is not cut.
// With L at nine tenths of the step what is still to come makes it certain in most plays.
TEST_CASE("a step is cut only where it is longer, and by what it takes at the least",
          "[step_player]") {
  int steps = 0, cut = 0;
  for (const PipelineSchedule& schedule : pipeline_schedules())
    for (const int p : {1, 2, 4, 7})
      for (const int v : {1, 2, 3})
        for (const int m : {3, 16, 84})
          for (const bool folds : {false, true}) {
            ParallelPlan plan = plan_of(1, 1, p);
            plan.schedule = schedule.name;
            plan.chunks = v;
            plan.microbatches = m;
            if (refusal(schedule, {p, v, m})) continue;
            const auto seed = static_cast<std::uint32_t>(5000 + ++steps);
            RandomCosts random(seed);
            const StepCosts costs = random.step(plan);
            const StepTraffic traffic = random.traffic(plan);
            const StepTraffic* const given = seed % 3 == 0 ? nullptr : &traffic;
            INFO(schedule.name << " p " << p << " v " << v << " m " << m << " seed " << seed);
            const SimTime whole = play_stages(plan, schedule, costs, given)->makespan;
            for (const std::int64_t tenths : {1, 5, 9, 10}) {
              const SimTime longest{whole.picoseconds / 10 * tenths + (tenths == 10 ? 9 : 0)};
              const auto played = play_stages(plan, schedule, costs, given, {folds, longest});
              REQUIRE(played);
              CHECK(played->makespan <= whole);
              CHECK((played->cut ? played->makespan > longest : played->makespan == whole));
              if (longest >= whole) CHECK_FALSE(played->cut);
              cut += played->cut && tenths == 9;
            }
          }
  CHECK(steps > 150);
  CHECK(2 * cut > steps);
}

// The clock counts 2^63 ps: one layer of 1e7 s ends outside.
TEST_CASE("a step that outlasts the clock is not played", "[step_player]") {
  const ParallelPlan plan = plan_of(1);
  StepCosts costs;
  StageCosts stage;
  LayerSchedule layer;
  layer.time.forward.compute = Seconds(1e7);
  stage.chunks.push_back({layer});
  costs.stages.push_back(stage);
  costs.send.push_back(Seconds(0));
  CHECK_FALSE(play_stages(plan, *find_pipeline_schedule("1f1b"), costs));
}
