// Which stages of a pipeline are played, and what the others are told to take.
#include "planner/forecast/stage_plays.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalog/find.hpp"
#include "planner/answers/fit_answer.hpp"
#include "planner/choice/workload_choice.hpp"
#include "simulator/memory/played_alike.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t mib = 1 << 20;

// Stages of a 1F1B pipeline: stage s of p holds p - s microbatches.
struct Pipeline {
  int stages;
  std::function<std::int64_t(int)> allocated;  // bytes, of the microbatches in flight
  std::set<int> played{};
  StagesToPlay of{};

  std::vector<StageMemory> plays() {
    const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
    of.stages = stages;
    for (int s = 0; s < stages; ++s) of.slots.push_back(schedule.order({stages, 1, stages}, s));
    of.like_the_one_before = [](int) { return true; };
    of.play = [this](int s) {
      played.insert(s);
      StageMemory m;
      m.steady.allocated = m.steady.reserved = Bytes(allocated(stages - s));
      m.steady.breakdown[static_cast<std::size_t>(MemoryCategory::activations)] =
          allocated(stages - s);
      return m;
    };
    return stage_plays(of);
  }
};

}  // namespace

// 3 GiB and 96 MiB for each of 17 .. 1 microbatches is a line: its ends and stage 8, which holds 9,
// half way from 17 to 1, tell it.
TEST_CASE("Stages on a line are told by three of them", "[stage_plays]") {
  Pipeline p{17, [](int held) { return 3072 * mib + held * 96 * mib; }};
  const std::vector<StageMemory> stages = p.plays();
  CHECK(p.played == std::set<int>{0, 8, 16});
  for (int s = 0; s < 17; ++s) {
    CHECK(stages[static_cast<std::size_t>(s)].steady.allocated.value ==
          3072 * mib + (17 - s) * 96 * mib);
    CHECK(stages[static_cast<std::size_t>(s)].steady.reserved ==
          stages[static_cast<std::size_t>(s)].steady.allocated);
  }
}

// 4 GiB at least, and above that 512 MiB for each microbatch beyond 8: of 32 the first 24 stages
// are on one line, the rest on another. No stage is off by more than twice 1/256 of the least.
TEST_CASE("Where another moment is the fullest, more stages are played", "[stage_plays]") {
  const auto bytes = [](int held) { return 4096 * mib + std::max(0, held - 8) * 512 * mib; };
  Pipeline p{32, bytes};
  const std::vector<StageMemory> stages = p.plays();
  CHECK(p.played.size() > 3);
  CHECK(p.played.size() < 16);
  for (int s = 0; s < 32; ++s)
    CHECK(std::abs(stages[static_cast<std::size_t>(s)].steady.allocated.value - bytes(32 - s)) <=
          2 * 4096 * mib / 256);
}

TEST_CASE("Stages that do the same are played once", "[stage_plays]") {
  Pipeline p{8, [](int) { return 1024 * mib; }};
  p.of.slots.assign(8, find_pipeline_schedule("gpipe")->order({8, 1, 8}, 0));
  CHECK(p.plays().size() == 8);
  CHECK(p.played == std::set<int>{0});
}

// Of eight stages in 1F1B with three microbatches, stages 0 to 5 send three ahead before the first
// comes back, stage 6 two and stage 7 one; stage 3 begins a run of other layers.
TEST_CASE("Stages do the same where layers and slots are equal", "[stage_plays]") {
  StagesToPlay of;
  of.stages = 8;
  for (int s = 0; s < 8; ++s)
    of.slots.push_back(find_pipeline_schedule("1f1b")->order({8, 1, 3}, s));
  of.like_the_one_before = [](int s) { return s != 3; };
  CHECK(first_of_the_same(of) == std::vector<int>{0, 0, 0, 3, 3, 3, 6, 7});
}

TEST_CASE("Every stage is played where none may lie between others", "[stage_plays]") {
  Pipeline p{8, [](int held) { return held * 96 * mib; }};
  p.of.may_lie_between = false;
  p.plays();
  CHECK(p.played.size() == 8);
}

TEST_CASE("Nobody asks for the stages behind one that was given up", "[stage_plays]") {
  Pipeline p{8, [](int held) { return held * 96 * mib; }};
  p.of.like_the_one_before = [](int) { return true; };
  p.plays();
  StagesToPlay of = p.of;
  int plays = 0;
  of.play = [&](int) {
    ++plays;
    StageMemory m;
    m.given_up = true;
    m.steady.allocated = Bytes(7 * mib);
    return m;
  };
  for (const StageMemory& m : stage_plays(of)) CHECK(m.steady.allocated == Bytes(7 * mib));
  CHECK(plays == 1);
}

// What the lines are held against: every stage of real pipelines, played. What is allocated rises
// by the same tensors with each microbatch, but for blocks whose remainder is handed out too; what
// is reserved moves in segments of 2 to 20 MiB besides. The fullest stage is one that is played.
TEST_CASE("Stages between others hold what their own play holds", "[stage_plays]") {
  const Workload w = pretraining(llama(32, 4096, 32, 32, 11008, 32000), 2048);
  for (const std::string name : {"1f1b", "zb-h1", "zb-v", "interleaved"})
    for (const std::string recompute : {"none", "full"}) {
      const PipelineSchedule& schedule = *find_pipeline_schedule(name);
      ParallelPlan plan = plan_of(1);
      plan.pipeline = 16;
      plan.microbatches = 32;
      plan.chunks = name == "zb-v" || name == "interleaved" ? 2 : 1;
      plan.schedule = name;
      const ModelPartition partition =
          partition_model(w, plan, schedule, *recompute_policy(recompute));
      StagesToPlay of;
      of.stages = plan.pipeline;
      for (int s = 0; s < plan.pipeline; ++s)
        of.slots.push_back(slots_of_step(w, plan, schedule, s));
      int plays = 0;
      of.play = [&](int s) {
        ++plays;
        return play_memory(w, plan, schedule, partition, s, {});
      };
      of.like_the_one_before = [&](int s) {
        const auto at = static_cast<std::size_t>(s);
        return equal_layers(partition.stages[at], partition.stages[at - 1]);
      };
      const std::vector<StageMemory> told = stage_plays(of);
      CHECK(plays < plan.pipeline);
      INFO(name << ' ' << recompute);
      Bytes fullest, fullest_told;
      for (int s = 0; s < plan.pipeline; ++s) {
        const StageMemory& m = told[static_cast<std::size_t>(s)];
        const StageMemory own = play_memory(w, plan, schedule, partition, s, {});
        CHECK(gib(m.steady.allocated) == Approx(gib(own.steady.allocated)).epsilon(0.008));
        CHECK(gib(m.steady.reserved) == Approx(gib(own.steady.reserved)).epsilon(0.02));
        CHECK(m.steady.reserved >= m.steady.allocated);
        fullest = std::max(fullest, own.peak().reserved);
        fullest_told = std::max(fullest_told, m.peak().reserved);
      }
      CHECK(gib(fullest_told) == Approx(gib(fullest)).epsilon(0.005));
    }
}

// What cards with and without bf16 lend each other has to be their own to the byte: every row of
// the catalog, in every method that it runs, in both formats where they are said to be alike.
TEST_CASE("Formats of 16 bits that are played alike leave the same in memory", "[stage_plays]") {
  const auto in = [](const Framework& row, Method method, DType compute) {
    Workload w = pretraining(llama(2, 512, 8, 4, 1024, 4096), 256);
    w.method = method;
    w.compute = compute;
    w.framework = resolved_for(row, method, compute);
    w.step_with(*optimizer_named(w.framework.defaults.optimizer));
    if (method == Method::qlora) w.adapter.base = Quantization::nf4;
    return w;
  };
  int alike = 0, unlike = 0;
  for (const Framework& row : known_facts().catalog.frameworks)
    for (const Method method : {Method::pretrain, Method::full, Method::lora, Method::qlora}) {
      if (!row.runs(method)) continue;
      const Workload a = in(row, method, DType::bf16), b = in(row, method, DType::fp16);
      const bool said = played_alike(a, b);
      ++(said ? alike : unlike);
      if (!said) continue;
      INFO(row.id << ' ' << shardwise::row(method).name);
      for (const int zero : {0, 2, 3}) {
        ParallelPlan plan = plan_of(2);
        plan.zero_stage = zero;
        plan.microbatches = 2;
        plan.recompute = "full";
        const StageMemory x = first_stage(a, plan), y = first_stage(b, plan);
        CHECK(x.loaded == y.loaded);
        CHECK(x.first_step.breakdown == y.first_step.breakdown);
        CHECK(x.first_step.reserved == y.first_step.reserved);
        CHECK(x.steady.breakdown == y.steady.breakdown);
        CHECK(x.steady.reserved == y.steady.reserved);
        CHECK(x.after_step == y.after_step);
      }
    }
  CHECK(alike > 0);   // else nothing above was compared
  CHECK(unlike > 0);  // eager attention, DeepSpeed's gradients in fp16
  Workload w = in(known_facts().catalog.frameworks.front(), Method::full, DType::bf16);
  Workload turing = w;
  turing.framework.attention.writes_grouped_out = !w.framework.attention.writes_grouped_out;
  CHECK_FALSE(played_alike(w, turing));  // keys repeated for a kernel that lacks grouped ones
}

// The same of cards: what settle_on has a card decide is either asked by played_alike or leaves the
// tensors as they are. One card of each kind that it tells apart, every row of the catalog, without
// recomputation, so that all that attention and MLP keep is there.
TEST_CASE("Cards that are played alike leave the same in memory", "[stage_plays]") {
  const Catalog& catalog = known_facts().catalog;
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  plan.recompute = "none";
  int alike = 0, unlike = 0;
  for (const Framework& row : catalog.frameworks) {
    const Method method = row.runs(Method::full) ? Method::full : Method::lora;
    if (!row.runs(method)) continue;
    std::vector<std::pair<Workload, StageMemory>> played;
    for (const char* card : {"v100-sxm2-16gb", "titan-rtx", "a100-sxm4-80gb", "rtx-4090",
                             "h100-sxm5-80gb", "b200", "rtx-5090", "mi300x"}) {
      INFO(row.id << " on " << card);
      Workload w = pretraining(llama(2, 512, 8, 4, 1024, 4096), 256);
      w.method = method;
      w.compute = DType::fp16;
      w.framework = resolved_for(row, method, w.compute);
      settle_on(**find_gpu(catalog, card), w.compute, w.framework);
      w.step_with(*optimizer_named(w.framework.defaults.optimizer));
      const auto like = std::find_if(played.begin(), played.end(), [&](const auto& before) {
        return played_alike(before.first, w);
      });
      const StageMemory own = first_stage(w, plan);
      ++(like == played.end() ? unlike : alike);
      if (like == played.end()) {
        played.emplace_back(w, own);
        continue;
      }
      CHECK(like->second.steady.breakdown == own.steady.breakdown);
      CHECK(like->second.steady.reserved == own.steady.reserved);
      CHECK(like->second.after_step == own.after_step);
    }
  }
  CHECK(alike > 0);
  CHECK(unlike > static_cast<int>(catalog.frameworks.size()));  // FlashAttention's and others
}

// Kernels are a card's own where its memory is another's: 24 GB cards with bf16 and without (TITAN
// RTX), which in fp16 all train alike, but for transformers on the latter: its keys and values are
// repeated there. What a list says of that card is what is said of it alone.
TEST_CASE("A TITAN RTX among cards of 24 GB is answered as it is alone", "[stage_plays]") {
  for (const char* asked : {"usual", "fp16"}) {
    Request list = request_for("llama-3.1-8b", "2x24GB", {Method::lora});
    Request alone = request_for("llama-3.1-8b", "2xtitan-rtx", {Method::lora});
    list.framework = alone.framework = "peft";
    if (asked == std::string("fp16")) list.precision = alone.precision = DType::fp16;
    const FitAnswers all = fit_answers(resolved(list)), one = fit_answers(resolved(alone));
    REQUIRE(one.answers.size() == 1);
    const auto there = std::find_if(all.answers.begin(), all.answers.end(),
                                    [](const FitAnswer& a) { return a.gpu == "titan-rtx"; });
    REQUIRE(there != all.answers.end());
    const Forecast &f = there->chosen.forecast, &g = one.answers.front().chosen.forecast;
    INFO(asked);
    CHECK(there->chosen.question.plan == one.answers.front().chosen.question.plan);
    CHECK(f.worst().peak.reserved == g.worst().peak.reserved);
    CHECK(f.worst().peak.allocated == g.worst().peak.allocated);
    CHECK(f.step_time.expected == g.step_time.expected);
  }
}

}  // namespace shardwise
