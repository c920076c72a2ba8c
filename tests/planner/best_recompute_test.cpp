#include "planner/forecast/best_recompute.hpp"

#include <algorithm>
#include <limits>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "simulator/graphs/recompute_options.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

Question small_question(const char* gpus, const char* framework, const char* plan, int layers) {
  Question q;
  q.workload.model = **find_model(known_facts().catalog, "llama-3.2-1b");
  q.workload.model.layers = layers;
  q.workload.method = Method::pretrain;
  q.workload.sequence = 4096;
  q.workload.framework = **find_framework(known_facts().catalog, framework);
  q.plan = *parse_plan(plan);
  q.cluster = parse_gpus(known_facts().catalog, gpus)->front();
  return q;
}

RecomputePolicy asked_recompute(std::optional<Bytes> budget) {
  RecomputePolicy policy = *recompute_policy("best");
  policy.budget = budget;
  return policy;
}

// One stage of a question under any assignment of options to its blocks.
struct Bench {
  const Question& q;
  const PipelineSchedule& schedule = *find_pipeline_schedule(q.plan.schedule_row());
  CostModel cost{q.workload, q.plan, q.cluster, known_facts().profile};
  KernelModel kernels{q.cluster.groups.front().gpu, known_facts().profile,
                      attention_choice(q.workload, q.plan)};

  ModelPartition partition(const BlockRecompute& choice) const {
    RecomputePolicy policy = asked_recompute(std::nullopt);
    policy.chosen = std::make_shared<BlockRecompute>(choice);
    return partition_model(q.workload, q.plan, schedule, policy);
  }

  // Of the re-runs of a stage, once through all its blocks.
  Seconds time(const BlockRecompute& choice, int stage) const {
    const ModelPartition p = partition(choice);
    Seconds sum;
    for (const ModelChunk& chunk : p.stages[static_cast<std::size_t>(stage)])
      for (const ChunkLayer& layer : chunk.layers)
        sum += cost.layer_time(*layer.definition, kernels).recompute.device();
    return sum;
  }

  bool fits(const BlockRecompute& choice, int stage, Bytes room) const {
    const ContextCalibration& context =
        known_facts().profile.row(q.cluster.groups.front().gpu.family).context;
    return !play_memory(q.workload, q.plan, schedule, partition(choice), stage, context, room)
                .ran_out;
  }

  Bytes needs(const BlockRecompute& choice, int stage) const {
    const ContextCalibration& context =
        known_facts().profile.row(q.cluster.groups.front().gpu.family).context;
    return play_memory(q.workload, q.plan, schedule, partition(choice), stage, context)
        .peak()
        .allocated;
  }

  std::vector<RecomputeOption> options() const {
    const ModelPartition p =
        partition_model(q.workload, q.plan, schedule, asked_recompute(std::nullopt));
    for (const LayerDefinition& d : p.definitions) {
      if (d.role != LayerRole::block) continue;
      std::vector<Picoseconds> forward;
      for (const Operator& op : d.graph.operators) {
        LayerDefinition one = d;
        one.graph.operators = {op};
        one.script.runs_again = one.redone = {false};
        const Seconds t = cost.layer_time(one, kernels).forward.device();
        forward.emplace_back((SimTime{} + t).picoseconds);
      }
      return recompute_options(d.graph, forward, d.script.runs_again);
    }
    return {};
  }
};

// Visits every assignment of options to `blocks` blocks.
template <class Visit>
void for_each_assignment(std::size_t options, std::size_t blocks, Visit visit) {
  std::vector<std::size_t> choice(blocks, 0);
  for (;;) {
    visit(choice);
    std::size_t b = 0;
    while (b < blocks && ++choice[b] == options) choice[b++] = 0;
    if (b == blocks) return;
  }
}

Bytes outside(const Question& q) {
  const Forecast f =
      *forecast_under(q, known_facts().profile, asked_recompute(std::nullopt), {.time = false});
  return f.stages.front().peak.device - f.stages.front().peak.reserved;
}

}  // namespace

TEST_CASE("of all assignments that need no more memory than the best, none is faster",
          "[recompute]") {
  const Question q = small_question("H100-SXM", "megatron-lm", "dp=1,mbs=2,ga=1,recompute=best", 3);
  const Bench bench{q};
  const std::vector<RecomputeOption> options = bench.options();
  CHECK(options.size() > 4);
  struct Assignment {
    Seconds time;
    Bytes needs;
  };
  std::vector<Assignment> all;
  for_each_assignment(options.size(), 3, [&](const std::vector<std::size_t>& pick) {
    BlockRecompute choice;
    choice.again.emplace_back();
    Assignment a;
    for (const std::size_t o : pick) {
      choice.again.front().push_back(options[o].again);
      a.time += seconds(options[o].time);
    }
    a.needs = bench.needs(choice, 0);
    all.push_back(a);
  });
  Bytes least = all.front().needs, most = least;
  for (const Assignment& a : all) {
    least = std::min(least, a.needs);
    most = std::max(most, a.needs);
  }
  const Bytes aside = outside(q);
  // Eight budgets between the least that any assignment needs and what keeping everything needs;
  // the allocator may lose two GiB to fragmentation: the logits are blocks of half a GiB, each of
  // the embedding's moments of one.
  const Bytes lost(std::int64_t{2} << 30);
  for (int part = 1; part <= 8; ++part) {
    const Bytes room = least + lost + Bytes((most - least).value * part / 8);
    const auto best = best_recompute(q, known_facts().profile, asked_recompute(room + aside));
    const Bytes needs = bench.needs(*best, 0);
    Seconds fastest = all.front().time + Seconds(1), fastest_with_less_room = fastest;
    for (const Assignment& a : all) {
      if (a.needs <= needs) fastest = std::min(fastest, a.time);
      if (a.needs <= room - lost) fastest_with_less_room = std::min(fastest_with_less_room, a.time);
    }
    INFO("part " << part);
    CHECK(bench.fits(*best, 0, room));
    CHECK(bench.time(*best, 0).value == Approx(fastest.value).epsilon(1e-6).margin(1e-12));
    CHECK(bench.time(*best, 0).value <= fastest_with_less_room.value + 1e-12);
  }
}

TEST_CASE("a larger budget never asks for more re-runs, and enough asks for none", "[recompute]") {
  const Question q =
      small_question("4xH100-SXM", "megatron-lm", "dp=1,pp=4,mbs=2,ga=8,recompute=best", 16);
  const Bench bench{q};
  std::vector<Seconds> before(4, Seconds(std::numeric_limits<double>::max()));
  for (const std::int64_t gib : {8, 10, 12, 16, 24, 79}) {
    const auto best = best_recompute(q, known_facts().profile, asked_recompute(Bytes(gib << 30)));
    for (int stage = 0; stage < 4; ++stage) {
      const Seconds now = bench.time(*best, stage);
      CHECK(now <= before[static_cast<std::size_t>(stage)]);
      before[static_cast<std::size_t>(stage)] = now;
    }
  }
  for (const Seconds left : before) CHECK(left == Seconds(0));
}

// What was chosen is handed on with what was played: the same forecast. Plays alone are another
// card's, where more or less had to run again (24 GB against 80): they say nothing here.
TEST_CASE("what was chosen for a question is not chosen anew", "[recompute]") {
  const char* plan = "dp=1,mbs=4,ga=1,recompute=best";
  const Question q = small_question("1xRTX-4090", "pytorch-ddp", plan, 8);
  const Question roomy = small_question("1xA100-80GB", "pytorch-ddp", plan, 8);
  const Profile& profile = known_facts().profile;
  const Forecast first = *forecast(q, profile), other = *forecast(roomy, profile);
  REQUIRE(first.chosen != nullptr);
  CHECK(first.chosen->again != other.chosen->again);
  const Forecast again = *forecast(q, profile, {.plays = first.plays, .chosen = first.chosen});
  CHECK(again.chosen == first.chosen);
  CHECK(again.step_time.expected == first.step_time.expected);
  CHECK(again.peak_device.expected == first.peak_device.expected);
  const Forecast there = *forecast(roomy, profile, {.plays = first.plays});
  CHECK(there.peak_device.expected == other.peak_device.expected);
  CHECK(there.peak_device.expected > first.peak_device.expected);
}

TEST_CASE("best is never slower than the named policies that fit", "[recompute]") {
  for (const char* framework : {"megatron-lm", "pytorch-fsdp2"}) {
    const bool sharded = std::string(framework) == "pytorch-fsdp2";
    Question q = small_question("4xRTX-4090", framework,
                                sharded ? "dp=4,zero=3,mbs=1,ga=1" : "dp=4,zero=1,mbs=1,ga=1", 8);
    q.plan.recompute = "best";
    const Forecast best = *forecast(q, known_facts().profile);
    INFO(framework);
    int fitting = 0;
    for (const char* policy :
         {"none", "selective-op", "full", "blocks-2", "blocks-4", "blocks-6"}) {
      q.plan.recompute = policy;
      const Forecast named = *forecast(q, known_facts().profile);
      if (named.verdict != Verdict::fits) continue;
      ++fitting;
      INFO(policy);
      CHECK(best.verdict == Verdict::fits);
      CHECK(best.step_time.expected <= named.step_time.expected);
    }
    CHECK(fitting > 0);
    CHECK_FALSE(best.recompute.empty());
    int blocks = 0;
    for (const StageRecompute& r : best.recompute) blocks += r.blocks;
    CHECK(blocks == 8);
  }
}
