#include "planner/answers/plan_starts.hpp"

#include <algorithm>

#include "planner/answers/fit_answer.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

using Names = std::vector<std::string_view>;

Question starting_question(const ResolvedRequest& r, Method method, const std::string& plan) {
  const Cluster& cluster = r.clusters.front();
  Question q{choose_workload(r, method, cluster, 3).workload, {}, cluster};
  const auto whole = complete_plan(r, q.workload, cluster, plan);
  REQUIRE(whole);
  q.plan = *whole;
  return q;
}

PlanStarts starts_of(const char* model, const char* gpus, Method method, const std::string& plan) {
  const ResolvedRequest r = resolved(request_for(model, gpus, {method}));
  return plan_starts(r, starting_question(r, method, plan));
}

bool holds(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

// The experts of Mixtral are 32 layers x 8 x 3 x 4,096 x 14,336 = 45.1e9 of its 46.7e9 weights.
// Where bitsandbytes passes over them they are 84 GiB in 16 bits, 42 on each of two cards of 24 GB;
// in 4 bits and with their constants a quarter and a bit, 12. axolotl alone quantises them.
TEST_CASE("a target starts a plan only where it fits in what the target runs") {
  const PlanStarts s = starts_of("mixtral-8x7b", "2xRTX-3090", Method::qlora,
                                 "dp=2,zero=3,mbs=1,ga=8,recompute=full");
  CHECK(s.targets == Names{"axolotl"});
  CHECK(s.too_large == Names{"accelerate", "deepspeed"});
  CHECK(told(s, "this plan").starts_with("Started by shardwise launch --target axolotl, with "));
  const PlanStarts roomy = starts_of("mixtral-8x7b", "8xH200-SXM-141GB", Method::qlora,
                                     "dp=8,zero=3,mbs=1,ga=2,recompute=full");
  CHECK(holds(roomy.targets, "accelerate"));
  CHECK(roomy.too_large.empty());
}

// Cards in turns are nobody's.
TEST_CASE("a plan that no target can be told is started by none") {
  const PlanStarts s = starts_of("llama-3.1-8b", "2xRTX-3090", Method::lora, "pp=2,split=true");
  CHECK_FALSE(s.any());
  CHECK(s.too_large.empty());
  CHECK(told(s, "this plan") == "No target of shardwise launch can start this plan");
}

// fsdp_qlora's adapters are of rank 64, and not on o; each target's framework has others. What is
// told in the flags is what the files are written for.
TEST_CASE("targets are told what they would choose otherwise") {
  const Method method = Method::qlora;
  const std::string plan = "dp=2,zero=3,mbs=1,ga=8,recompute=full";
  Request request = request_for("llama-3.1-8b", "2xRTX-4090", {method});
  const ResolvedRequest r = resolved(request);
  const Question q = starting_question(r, method, plan);
  const PlanStarts s = plan_starts(r, q);
  REQUIRE(s.any());
  const Adapter& adapter = q.workload.adapter;
  CHECK(s.flags == std::vector<std::string>{"--lora-rank 64",
                                            "--lora-targets " + target_names(adapter.targets),
                                            "--quantization nf4-double"});
  request.plans = {plan};
  request.lora_rank = adapter.rank;
  request.lora_targets = target_names(adapter.targets);
  request.quantization = adapter.base;
  for (const std::string_view target : s.targets) {
    INFO(target);
    request.target = std::string(target);
    const auto a = launch_answer(request, known_facts());
    REQUIRE(a);
    CHECK(a->verdict != Verdict::does_not_fit);
    const Adapter& written = a->job.question.workload.adapter;
    CHECK(written.rank == adapter.rank);
    CHECK(written.targets == adapter.targets);
    CHECK(written.base == adapter.base);
    CHECK(a->job.question.plan == q.plan);
    CHECK(a->job.question.workload.framework.id ==
          question_in(r, q, *launch_target_named(target)).workload.framework.id);
  }
}

// An RTX 3090 and a Titan RTX have 24 GB; the one before Ampere trains in fp16.
TEST_CASE("what was played for one card changes nothing for the next") {
  std::vector<PlayedStart> played;
  for (const char* gpus : {"2xRTX-3090", "2xRTX-4090", "2xTitan-RTX", "2xA10", "2xRTX-4080"}) {
    INFO(gpus);
    const ResolvedRequest r = resolved(request_for("llama-3.1-8b", gpus, {Method::qlora}));
    const Question q = starting_question(r, Method::qlora, "dp=2,zero=3,mbs=1,ga=8,recompute=full");
    const PlanStarts alone = plan_starts(r, q), beside = plan_starts(r, q, &played);
    CHECK(alone.targets == beside.targets);
    CHECK(alone.too_large == beside.too_large);
    CHECK(alone.flags == beside.flags);
  }
  CHECK_FALSE(played.empty());
}

TEST_CASE("the target that runs what was forecast is named first") {
  const PlanStarts s = starts_of("llama-3.1-8b", "8xH100-SXM", Method::pretrain,
                                 "dp=8,zero=2,mbs=1,recompute=full");  // in Megatron-LM
  REQUIRE(s.targets.size() > 1);
  CHECK(s.targets.front() == "megatron");
}

// SynapseAI is neither CUDA nor ROCm, which is what the files start.
TEST_CASE("nothing is written for Gaudi, which is said") {
  CHECK_FALSE(starts_of("llama-3.1-8b", "8xgaudi-2", Method::lora, "dp=8,zero=3").any());
  Request r = request_for("llama-3.1-8b", "8xgaudi-2", {Method::lora});
  const auto notes = resolved(r).notes;
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("neither CUDA nor ROCm") != std::string::npos;
  }));
  r.target = "accelerate";
  const auto written = launch_answer(r, known_facts());
  REQUIRE_FALSE(written);
  CHECK(written.error().front().what.find("neither") != std::string::npos);
}

TEST_CASE("of what launch would choose for its targets the fastest is told") {
  Request request = request_for("llama-3.1-8b", "2xRTX-3090", {Method::lora});
  const auto best = best_start(request, Method::lora, known_facts());
  REQUIRE(best);
  CHECK(best->verdict != Verdict::does_not_fit);
  CHECK_FALSE(best->files.files.empty());
  for (const LaunchTarget& target : launch_targets()) {
    Request one = request;
    one.target = std::string(target.name);
    const auto a = launch_answer(one, known_facts());
    if (a && a->verdict == best->verdict)
      CHECK(best->forecast.step_time.expected <= a->forecast.step_time.expected);
  }
  request.plans = {"dp=2,zero=3"};  // who asks for a plan is told of that one alone
  CHECK_FALSE(best_start(request, Method::lora, known_facts()));
}

}  // namespace shardwise
