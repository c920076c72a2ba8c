// Plans that no framework could run as they are said.
#include <string>

#include "planner/answers/fit_answer.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/report/fit_text.hpp"
#include "planner/search/plan_choice.hpp"
#include "simulator/plan_rules.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// What is wrong with a plan; empty: nothing.
std::string wrong_with(const Request& request, const std::string& text) {
  const ResolvedRequest r = resolved(request);
  const Workload w = choose_workload(r, r.methods.front(), r.clusters.front(), 0).workload;
  const auto plan = complete_plan(r, w, r.clusters.front(), text);
  REQUIRE(plan);
  const Problems problems = plan_problems(w, *plan, r.clusters.front());
  return problems.empty() ? "" : problems.front().what;
}

}  // namespace

// One process per split; sixteen cards are two boxes of eight.
TEST_CASE("layers are dealt to the cards of one node") {
  Request r = request_for("70b", "16xRTX-3090", {Method::lora});
  r.batch = 16;
  CHECK(holds(wrong_with(r, "dp=1,pp=16,split=true"), "pp must divide the 8 of a node, got 16"));
  CHECK(wrong_with(r, "dp=2,pp=8,split=true").empty());
}

// NVMe is another place; inputs of layers, which frameworks offload unasked, are counted instead.
TEST_CASE("nothing is offloaded to a host that has the GPU's memory") {
  const Request r = request_for("8b", "gb10", {Method::full});
  for (const char* plan : {"offload=params", "offload=optimizer", "offload=params+optimizer"})
    CHECK(holds(wrong_with(r, plan), "has no memory but the GPU's"));
  CHECK(wrong_with(r, "offload=optimizer,nvme=true").empty());
  CHECK(wrong_with(r, "offload=activations,recompute=full").empty());
  CHECK(wrong_with(request_for("8b", "4090", {Method::full}), "offload=params").empty());
}

// Two tensor ranks without sequence parallelism have the same tokens, and would send them twice.
TEST_CASE("experts beside tensor parallelism need sequences to be split") {
  Request r = request_for("mixtral-8x7b", "8xH100-SXM", {Method::pretrain});
  r.framework = "megatron-lm";
  CHECK(holds(wrong_with(r, "tp=2,sp=false,dp=4"), "each of them would send every token"));
  CHECK(holds(wrong_with(r, "tp=2,sp=false,dp=4,ep=4,etp=1"), "sp=true"));
  CHECK(wrong_with(r, "tp=2,dp=4").empty());  // as it is where nobody says
  CHECK(wrong_with(r, "tp=1,dp=8,ep=8").empty());
}

// Llama-3.2-1B's head is its table, which torchtitan's stages cannot share; Megatron-LM's can, and
// Llama-3.1-8B has two tables.
TEST_CASE("tied embeddings lie on two stages where the framework adds up their gradients") {
  Request r = request_for("llama-3.2-1b", "8xH100-SXM", {Method::pretrain});
  r.framework = "torchtitan";
  CHECK(holds(wrong_with(r, "pp=2,dp=4,ga=4"), "does not tie embeddings over pipeline stages"));
  CHECK(wrong_with(r, "dp=8").empty());
  r.framework = "megatron-lm";
  CHECK(wrong_with(r, "pp=2,dp=4,ga=4").empty());
  r = request_for("llama-3.1-8b", "8xH100-SXM", {Method::pretrain});
  r.framework = "torchtitan";
  CHECK(wrong_with(r, "pp=2,dp=4,ga=4").empty());
}

// Its last layers read keys that earlier ones make, and a piece of what lies by the embedding.
TEST_CASE("layers that need what another stage makes are not cut off from it") {
  const Request r = request_for("gemma-4-e4b", "2xRTX-3090", {Method::lora});
  CHECK(holds(wrong_with(r, "dp=1,pp=2,split=true"), "pp 2 cuts off layers"));
  CHECK(wrong_with(r, "dp=2,mbs=1").empty());
}

// 28 heads are 7 on each of 4 ranks, and no whole number on 8. On 7 ranks they are 4 each, but the
// 4 heads of keys and values neither divide by 7 nor into it.
TEST_CASE("Ulysses deals out whole heads") {
  Request r = request_for("qwen2.5-7b", "8xH100-SXM", {Method::pretrain});
  r.framework = "hf-deepspeed";
  CHECK(wrong_with(r, "cp=4,cp-kind=ulysses").empty());
  CHECK(holds(wrong_with(r, "cp=8,cp-kind=ulysses"), "8 must divide the 28 attention heads"));
  CHECK(wrong_with(r, "cp=8,cp-kind=ring").empty());
  r.gpus = "7xH100-SXM";
  r.sequence = 7 * 256;
  CHECK(holds(wrong_with(r, "cp=7,cp-kind=ulysses"), "7 and the 4 key/value heads"));
}

// 64 x 67,108,864 is 2^32, of which 32 bits hold nothing: it must not become a divisor. Numbers up
// to a million each are multiplied out: 64 x 65,536 = 4,194,304, and 8 x 1e6 chunks for 80 layers.
TEST_CASE("numbers whose products no int holds are refused, not divided by") {
  Request r = request_for("70b", "8xH100-SXM", {Method::pretrain});
  r.framework = "megatron-lm";
  for (const char* plan :
       {"tp=64,cp=67108864,sp=true", "dp=1,tp=2,etp=1000001", "dp=8,vpp=2000000"})
    CHECK(holds(wrong_with(r, plan), "of ordinary size"));
  for (const char* plan : {"tp=64,cp=1000000,sp=true", "dp=1,tp=1000000,cp=1000000,pp=1000000",
                           "dp=1000000,tp=1000000,cp=1000000,pp=1000000,vpp=1000000"})
    CHECK(holds(wrong_with(r, plan), "the cluster has 8"));
  r.framework = "nanotron";  // deals layers to the stages by itself
  CHECK(holds(wrong_with(r, "pp=8,vpp=1000000"), "8000000 model chunks are far more"));
  Request experts = request_for("deepseek-v2-lite", "64xH100-SXM", {Method::pretrain});
  experts.framework = "megatron-lm";
  CHECK(holds(wrong_with(experts, "dp=64,ep=64,etp=67108864"), "etp must be a positive number"));
  CHECK(holds(wrong_with(experts, "dp=64,ep=64,etp=65536"), "ep x etp = 4194304 must divide"));
}

// 8 x 100,000 x 100,000 = 80 thousand million sequences.
TEST_CASE("a step has so many sequences and no more") {
  const Request r = request_for("8b", "8xH100-SXM", {Method::pretrain});
  CHECK(holds(wrong_with(r, "dp=8,mbs=100000,ga=100000"), "than the 100000000 sequences"));
  CHECK(wrong_with(r, "dp=8,mbs=1,ga=100000").empty());
}

// transformers refuses GaLore's and APOLLO's layerwise optimizers in several processes, whatever
// these share, and with accumulation.
TEST_CASE("an optimizer that steps layer by layer is alone on its GPU") {
  Request r = request_for("llama-3.2-1b", "2xH100-SXM", {Method::full});
  for (const char* name : {"galore-adamw-layerwise", "apollo-adamw-layerwise"}) {
    r.optimizer = optimizer_named(name);
    CHECK(holds(wrong_with(r, "dp=2,mbs=1,ga=1"), "steps in one process: dp must be 1, got 2"));
  }
  // Nobody asked for a plan, so the refusal names the one that was tried, no flag.
  const ResolvedRequest two = resolved(r);
  const auto chosen = choose_plan(two, Method::full, two.clusters.front());
  REQUIRE_FALSE(chosen);
  CHECK(holds(chosen.error().front().where, "the first plan tried, dp=2"));
  // LoRA has a plan, layers dealt to two cards by one process; the answer tells of both methods.
  r.methods = {Method::full, Method::lora};
  const ResolvedRequest both = resolved(r);
  const std::string told = fit_text(both, fit_answers(both), 80);
  CHECK(holds(told, "  full     no plan: " + std::string(r.optimizer->name)));
  CHECK(holds(told, "  lora     FITS"));
  Request alone = request_for("llama-3.2-1b", "1xH100-SXM", {Method::full});
  alone.optimizer = r.optimizer;
  CHECK(holds(wrong_with(alone, "mbs=1,ga=4"), "ga must be 1, got 4"));
  CHECK(wrong_with(alone, "mbs=1,ga=1").empty());
  r.framework = "torchtitan";
  r.methods = {Method::pretrain};
  CHECK(holds(wrong_with(r, "tp=2,mbs=1,ga=1"), "tp must be 1, got 2"));
}

TEST_CASE("what shards without ZeRO is said with ZeRO") {
  Request r = request_for("8b", "16xA100-80GB", {Method::pretrain});
  r.framework = "megatron-deepspeed";
  r.batch = 64;
  r.precision = DType::bf16;
  CHECK(holds(wrong_with(r, "dp=8,tp=2,zero=0"), "zero=1"));
  CHECK(wrong_with(r, "dp=8,tp=2,zero=1").empty());
  r.precision = DType::fp16;
  CHECK(wrong_with(r, "dp=8,tp=2,zero=0").empty());
}

}  // namespace shardwise
