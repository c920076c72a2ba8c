// Schedules as the simulator itself lowers and plays them, with its own memory play: what the tests
// of pipeline_schedule say of bare slots holds for whole steps.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <variant>
#include <vector>

#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "simulator/memory/memory_play.hpp"
#include "simulator/step/engine.hpp"
#include "simulator/step/lower.hpp"
#include "simulator/step/pass_span.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

Seconds from_picoseconds(std::int64_t n) { return Seconds(static_cast<double>(n) * 1e-12); }

ParallelPlan plan_for(const PipelineSchedule& schedule, PipelineShape shape) {
  ParallelPlan plan;
  plan.schedule = schedule.name;
  plan.pipeline = shape.stages;
  plan.chunks = shape.chunks_per_stage;
  plan.microbatches = shape.microbatches;
  return plan;
}

// One layer per chunk; times by stage and chunk from `time`.
template <class Time>
StepCosts costs_for(const ParallelPlan& plan, Time time) {
  StepCosts costs;
  costs.waits_for_all_stages = false;
  for (int s = 0; s < plan.pipeline; ++s) {
    StageCosts& stage = costs.stages.emplace_back();
    for (int c = 0; c < plan.chunks; ++c) {
      LayerSchedule layer;
      layer.time.forward.compute = time();
      layer.time.backward_input.compute = time();
      layer.time.backward_weight.compute = time();
      stage.chunks.push_back({layer});
    }
    costs.send.push_back(Seconds(0));
  }
  return costs;
}

PlayedStep played_schedule(const PipelineSchedule& schedule, const ParallelPlan& plan,
                           const StepCosts& costs) {
  LoweredStep lowered = lower(plan, schedule, costs, false);
  RunOutcome outcome = run(lowered.graph);
  REQUIRE(std::holds_alternative<Timeline>(outcome));
  return {std::move(lowered), std::get<Timeline>(std::move(outcome))};
}

// Each microbatch passes each model chunk once forward, later chunks later, and then once back.
bool passes_in_order(const PipelineSchedule& schedule, const ParallelPlan& plan,
                     const PlayedStep& step) {
  const PipelineShape shape{plan.pipeline, plan.chunks, plan.microbatches};
  struct Passed {
    SimTime forward_end, backward_start;
    int forwards = 0, backwards = 0;
  };
  std::map<std::pair<int, int>, Passed> passed;  // (microbatch, model chunk)
  for (int stage = 0; stage < plan.pipeline; ++stage)
    for (const PassSpan& span : pass_spans(step, stage)) {
      Passed& p = passed[{span.microbatch, schedule.model_chunk(shape, stage, span.chunk)}];
      if (span.pass == WorkKind::forward) {
        ++p.forwards;
        p.forward_end = span.end();
      } else if (span.pass == WorkKind::backward) {
        ++p.backwards;
        p.backward_start = span.start();
      }
    }
  const int chunks = schedule.model_chunks(shape);
  if (static_cast<int>(passed.size()) != chunks * plan.microbatches) return false;
  for (const auto& [key, p] : passed) {
    if (p.forwards != 1 || p.backwards != 1 || p.backward_start < p.forward_end) return false;
    const auto next = passed.find({key.first, key.second + 1});
    if (next == passed.end()) continue;
    if (next->second.forward_end < p.forward_end) return false;
    if (next->second.backward_start > p.backward_start) return false;
  }
  return true;
}

const PipelineSchedule& schedule_named(std::string_view name) {
  const PipelineSchedule* row = find_pipeline_schedule(name);
  REQUIRE(row != nullptr);
  return *row;
}

double bubble_fraction(std::string_view name, PipelineShape shape) {
  const PipelineSchedule& schedule = schedule_named(name);
  const ParallelPlan plan = plan_for(schedule, shape);
  const PlayedStep step =
      played_schedule(schedule, plan, costs_for(plan, [] { return from_picoseconds(100); }));
  const auto ranks = summarise_ranks(step.graph(), step.timeline);
  return seconds(ranks[static_cast<std::size_t>(shape.stages / 2)].bubble) /
         (step.timeline.makespan - SimTime{});
}

}  // namespace

// 1F1B of passes of f = 100 and b = 200 ps takes (m + p - 1)(f + b) = 11 x 300 ps, and the first
// stage is the last to be done: what it has tied to the last stage comes on top. That one's passes
// end at 300 + 2400; where it then reduces for 1000, the first stage waits for it.
TEST_CASE("two stages add up what they have tied when both are done", "[schedules]") {
  const PipelineSchedule& schedule = schedule_named("1f1b");
  const ParallelPlan plan = plan_for(schedule, {4, 1, 8});
  StepCosts costs = costs_for(plan, [] { return from_picoseconds(100); });
  const auto makespan = [&] {
    return played_schedule(schedule, plan, costs).timeline.makespan.picoseconds;
  };
  CHECK(makespan() == 3300);
  costs.tied = {TiedReduction{from_picoseconds(50), 0, 3}};
  CHECK(makespan() == 3350);
  costs.stages.back().reduce_at_end = from_picoseconds(1000);
  CHECK(makespan() == 3750);
}

TEST_CASE("10,000 random steps: every microbatch passes every chunk once, in order",
          "[schedules]") {
  std::mt19937 random(41);
  const auto upto = [&](unsigned most) { return 1 + static_cast<int>(random() % most); };
  int runs = 0;
  while (runs < 10'000) {
    const PipelineSchedule& schedule = pipeline_schedules()[random() % pipeline_schedules().size()];
    const PipelineShape shape{upto(6), upto(3), upto(16)};
    if (refusal(schedule, shape)) continue;
    ++runs;
    const ParallelPlan plan = plan_for(schedule, shape);
    const StepCosts costs = costs_for(
        plan, [&] { return from_picoseconds(1 + static_cast<std::int64_t>(random() % 50)); });
    INFO(schedule.name << " p=" << shape.stages << " v=" << shape.chunks_per_stage
                       << " m=" << shape.microbatches);
    REQUIRE(passes_in_order(schedule, plan, played_schedule(schedule, plan, costs)));
  }
}

TEST_CASE("bubble fractions of played steps are the papers'", "[schedules]") {
  // With F = I = W = t per chunk: a stage works for 3 t v m, and idles for
  //   gpipe, 1f1b   (p-1) 3t        of (m+p-1) 3t: (p-1)/(m+p-1)          arXiv 2104.04473, 2.2.1
  //   interleaved   (p-1) 3t        of v m 3t + (p-1) 3t: 1/v of it       section 2.2.2
  //   zb-h1         (p-1) t         of 3 m t + (p-1) t                    arXiv 2401.10241
  //   zb-v          (p-1) t         of 6 m t + (p-1) t (the ramp; none between first and last slot)
  for (const int p : {2, 4, 6})
    for (const int m : {2 * p, 4 * p}) {
      const double bubble = p - 1;
      INFO("p=" << p << " m=" << m);
      for (const char* name : {"gpipe", "1f1b"})
        CHECK(bubble_fraction(name, {p, 1, m}) == Approx(bubble / (m + p - 1)).epsilon(1e-9));
      for (const int v : {2, 3})
        CHECK(bubble_fraction("interleaved", {p, v, m}) ==
              Approx(bubble / (v * m + p - 1)).epsilon(1e-9));
      CHECK(bubble_fraction("zb-h1", {p, 1, m}) == Approx(bubble / (3 * m + p - 1)).epsilon(1e-9));
      CHECK(bubble_fraction("zb-v", {p, 2, m}) == Approx(bubble / (6 * m + p - 1)).epsilon(1e-9));
    }
}

namespace {

struct PlayedPair {
  Workload workload;
  ContextCalibration context;
};

const PlayedPair& small_model() {
  static const PlayedPair one = [] {
    const Facts facts = *load_facts(source_dir() + "/catalog", std::nullopt);
    PlayedPair p;
    p.workload.model = **find_model(facts.catalog, "llama-3.2-1b");
    p.workload.method = Method::pretrain;
    p.workload.sequence = 1024;
    p.workload.framework = **find_framework(facts.catalog, "megatron-lm");
    p.context = facts.profile.row((*find_gpu(facts.catalog, "h100-sxm5-80gb"))->family).context;
    return p;
  }();
  return one;
}

std::vector<StageMemory> memory_of(std::string_view name, PipelineShape shape) {
  const PipelineSchedule& schedule = schedule_named(name);
  ParallelPlan plan = plan_for(schedule, shape);
  plan.recompute = "none";
  const Workload& w = small_model().workload;
  const ModelPartition partition =
      partition_model(w, plan, schedule, *recompute_policy(plan.recompute));
  std::vector<StageMemory> stages;
  for (int stage = 0; stage < shape.stages; ++stage)
    stages.push_back(play_memory(w, plan, schedule, partition, stage, small_model().context));
  return stages;
}

double activations(const StageMemory& memory) {
  return static_cast<double>(
      memory.steady.breakdown[static_cast<std::size_t>(MemoryCategory::activations)]);
}

}  // namespace

TEST_CASE("played activations: 1F1B's stage i holds p - i microbatches, GPipe's all",
          "[schedules]") {
  // Stages 1 and 2 of 4 hold blocks only, equally many; so do the middle stages of ZB-V.
  const auto one = memory_of("1f1b", {4, 1, 8});
  const auto all = memory_of("gpipe", {4, 1, 8});
  const double each = activations(all[1]) / 8;
  CHECK(each > 0);
  // The peak may come when the last block has let go of some of its own.
  CHECK(activations(one[1]) == Approx(3 * each).epsilon(0.03));
  CHECK(activations(one[2]) == Approx(2 * each).epsilon(0.03));
  CHECK(activations(all[2]) == Approx(8 * each).epsilon(0.02));
  // ZB-V: every stage at most 2 p chunks of half the blocks, as 1F1B's first stage: balanced.
  const auto v = memory_of("zb-v", {4, 2, 16});
  CHECK(activations(v[1]) == Approx(activations(v[2])).epsilon(0.02));
  CHECK(activations(v[2]) == Approx(activations(v[3])).epsilon(0.02));
  CHECK(activations(v[2]) <= 4 * each * 1.02);
}

TEST_CASE("random schedules: a steady step ends with the bytes that it began with", "[schedules]") {
  std::mt19937 random(43);
  const auto upto = [&](unsigned most) { return 1 + static_cast<int>(random() % most); };
  const PlayedPair& small = small_model();
  for (int runs = 0; runs < 150;) {
    const PipelineSchedule& schedule = pipeline_schedules()[random() % pipeline_schedules().size()];
    const PipelineShape shape{upto(4), upto(2), upto(12)};
    if (refusal(schedule, shape)) continue;
    ++runs;
    ParallelPlan plan = plan_for(schedule, shape);
    plan.recompute = random() % 2 == 0 ? "none" : "full";
    const ModelPartition partition =
        partition_model(small.workload, plan, schedule, *recompute_policy(plan.recompute));
    const int stage = static_cast<int>(random() % static_cast<unsigned>(shape.stages));
    // Two steps of as many microbatches as it takes, and two whole steps, leave the same behind.
    const StageMemory twice =
        play_memory(small.workload, plan, schedule, partition, stage, small.context);
    const auto moments =
        record_memory(small.workload, plan, schedule, partition, stage, small.context);
    INFO(schedule.name << " p=" << shape.stages << " v=" << shape.chunks_per_stage
                       << " m=" << shape.microbatches << " stage " << stage);
    CHECK(moments.back().after == twice.after_step);
    Bytes most;
    for (const MemoryMoment& m : moments) most = std::max(most, m.most);
    // With several chunks the shorter steps may hold another mix of chunks at their peak.
    if (shape.chunks_per_stage == 1)
      CHECK(most == twice.steady.allocated);
    else
      CHECK(most.value == Approx(twice.steady.allocated.value).epsilon(0.02));
  }
}
