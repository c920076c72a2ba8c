#include "planner/choice/asked_plan.hpp"

#include "planner/answers/fit_answer.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/report/fit_text.hpp"
#include "simulator/offload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Result<ParallelPlan> complete(const Request& request, const std::string& text) {
  const ResolvedRequest r = resolved(request);
  const Workload w = choose_workload(r, r.methods.front(), r.clusters.front(), 0).workload;
  return complete_plan(r, w, r.clusters.front(), text);
}

Request pretraining(const std::string& framework) {
  Request r = request_for("8b", "16xH100-SXM", {Method::pretrain});
  r.framework = framework;
  r.batch = 64;
  return r;
}

}  // namespace

TEST_CASE("what a plan leaves out follows from the GPUs, the batch and the framework") {
  const auto plan = complete(pretraining("torchtitan"), "tp=4,pp=2");
  REQUIRE(plan);
  CHECK(plan->data == 2);          // 16 / (4 x 2)
  CHECK(plan->zero_stage == 3);    // torchtitan's default
  CHECK(plan->sequence_parallel);  // likewise
  CHECK(plan->microbatch == 1);
  CHECK(plan->microbatches == 32);  // 64 / (2 x 1)
  CHECK(plan->recompute == "selective-op");
  const auto megatron = complete(pretraining("megatron-lm"), "tp=4,pp=2,mbs=2");
  REQUIRE(megatron);
  CHECK(megatron->zero_stage == 1);
  CHECK(megatron->microbatches == 16);  // 64 / (2 x 2)
}

// Nanotron counts parameters: a layer of Llama-3.1-8B has 218.1 M, the head 525.3 M, all 7,504.9 M,
// of which a stage of four closes once it holds more than its quarters: 1,876.2 M after 9 layers
// (8.6), the half after 18 (17.2), three quarters after 26 (25.8).
TEST_CASE("layers that nobody dealt are dealt as the framework does") {
  const auto plan = complete(pretraining("nanotron"), "tp=4,pp=4");
  REQUIRE(plan);
  CHECK(plan->layers_per_stage == std::vector<int>{9, 9, 8, 6});
  CHECK(complete(pretraining("nanotron"), "tp=4,pp=4,layers=4x8")->layers_per_stage ==
        std::vector<int>{8, 8, 8, 8});
  CHECK(complete(pretraining("megatron-lm"), "tp=4,pp=4")->layers_per_stage.empty());
}

TEST_CASE("a sequence is shared as the framework does unless the plan says otherwise") {
  CHECK(complete(pretraining("torchtitan"), "cp=2")->context_kind == ContextKind::all_gather);
  CHECK(complete(pretraining("megatron-lm"), "cp=2")->context_kind == ContextKind::ring);
  CHECK(complete(pretraining("hf-deepspeed"), "cp=2")->context_kind == ContextKind::ulysses);
  CHECK(complete(pretraining("torchtitan"), "cp=2,cp-kind=ring")->context_kind ==
        ContextKind::ring);
  CHECK(complete(pretraining("torchtitan"), "dp=16")->context_kind == ContextKind::ring);
}

TEST_CASE("what a plan says is kept whatever the framework's default") {
  const auto plan = complete(pretraining("torchtitan"), "dp=16,zero=1,recompute=full");
  REQUIRE(plan);
  CHECK(plan->zero_stage == 1);
  CHECK(plan->recompute == "full");
}

// Unsloth's checkpoints go to the host from 512 tokens on, unless the request says otherwise.
TEST_CASE("checkpoints are offloaded where the framework does so by itself") {
  Request r = request_for("8b", "4090", {Method::qlora});
  r.framework = "unsloth";
  r.sequence = 512;
  REQUIRE(complete(r, ""));
  CHECK(complete(r, "")->offload == Offload{false, false, true});
  CHECK(complete(r, "recompute=none")->offload == Offload{});
  CHECK(complete(r, "offload=none")->offload == Offload{});
  r.offload = Offload{};
  CHECK(complete(r, "")->offload == Offload{});
  r.offload.reset();
  r.sequence = 511;
  CHECK(complete(r, "")->offload == Offload{});
}

// Two cards x 2 x 8 = 32 sequences, where 16 are usual.
TEST_CASE("the head line of fit says the batch of the plan that was asked for") {
  Request request = request_for("llama-3.1-8b", "2xRTX-4090", {Method::full});
  request.framework = "hf-trainer";
  const auto head_line = [&] {
    const ResolvedRequest r = resolved(request);
    const std::string text = fit_text(r, fit_answers(r), 80);
    return text.substr(0, text.find('\n'));
  };
  CHECK(head_line().find(", 16 sequences per step") != std::string::npos);
  request.plans = {"mbs=2,ga=8"};
  CHECK(head_line().find(", 32 sequences per step") != std::string::npos);
}

TEST_CASE("a layer split is over all cards and has one replica") {
  Request r = request_for("8b", "4x3090", {Method::lora});
  const auto plan = complete(r, "split=true");
  REQUIRE(plan);
  CHECK(plan->pipeline == 4);
  CHECK(plan->data == 1);
  CHECK(plan->zero_stage == 0);
}

// 4090: 165.2 TFLOP/s dense in bf16, 3090: 71 (their datasheets). Of 32 layers the slower of the
// two stages takes least with 23 and 9: 23 / 165.2 = 0.139; with 22 and 10 it is 10 / 71 = 0.141,
// with 24 and 8 it is 24 / 165.2 = 0.145.
TEST_CASE("stages on faster GPUs get more layers, unless the plan says how many") {
  Request r = request_for("8b", "1xRTX-4090+1xRTX-3090", {Method::lora});
  r.framework = "megatron-lm";
  const auto plan = complete(r, "pp=2");
  REQUIRE(plan);
  CHECK(plan->layers_per_stage == std::vector<int>{23, 9});
  const auto asked = complete(r, "pp=2,layers=20/12");
  REQUIRE(asked);
  CHECK(asked->layers_per_stage == std::vector<int>{20, 12});
  CHECK(
      complete(request_for("8b", "2xRTX-3090", {Method::lora}), "pp=2")->layers_per_stage.empty());
}

// Chunks are what the interleaved schedule is about, ZB-V and DualPipe have two of them always.
TEST_CASE("model chunks and the schedule follow from one another") {
  struct Case {
    const char *text, *schedule;
    int chunks;
  };
  for (const Case& c :
       {Case{"pp=4,vpp=4", "interleaved", 4}, Case{"pp=4,vpp=1", "1f1b", 1},
        Case{"pp=4", "1f1b", 1}, Case{"pp=4,schedule=zb-v", "zb-v", 2},
        Case{"pp=4,schedule=dualpipe", "dualpipe", 2}, Case{"pp=4,schedule=gpipe", "gpipe", 1},
        Case{"pp=4,schedule=1f1b,vpp=4", "1f1b", 4},  // said: refused by the rules
        Case{"pp=4,schedule=zb-v,vpp=1", "zb-v", 1}}) {
    INFO(c.text);
    const auto plan = parse_plan(c.text);
    REQUIRE(plan);
    CHECK(plan->schedule == c.schedule);
    CHECK(plan->chunks == c.chunks);
    CHECK(parse_plan(to_string(*plan))->schedule ==
          (plan->chunks == 4 ? "interleaved" : c.schedule));
  }
}

TEST_CASE("many stages of as many layers are counted") {
  const auto plan = parse_plan("pp=4,vpp=2,layers=3/6x4/5");
  REQUIRE(plan);
  CHECK(plan->layers_per_stage == std::vector<int>{3, 4, 4, 4, 4, 4, 4, 5});
  CHECK(to_string(*plan).find(",layers=3/6x4/5") != std::string::npos);
  for (const char* kept : {"7/9/9/7", "4/4/4", "20/12", "4x8"})
    CHECK(to_string(*parse_plan(std::string("pp=4,layers=") + kept)).find(kept) !=
          std::string::npos);
  for (const char* wrong : {"x4", "4x", "0x4", "-1x4", "4x4x4", "999999999x1", "70000x1/70000x1"}) {
    INFO(wrong);
    CHECK_FALSE(parse_plan(std::string("pp=4,layers=") + wrong));
  }
}

TEST_CASE("a batch that does not divide is told its neighbours") {
  const auto told = [](int batch) {
    Request r = pretraining("torchtitan");
    r.batch = batch;
    const auto plan = complete(r, "dp=16");
    REQUIRE_FALSE(plan);
    return plan.error().front().what;
  };
  CHECK(told(40).ends_with("the nearest are 32 and 48"));
  CHECK(told(5).ends_with("the least is 16"));
}

TEST_CASE("flags that contradict the plan's text are problems, not overruled") {
  const auto where = [](Request r, const char* text) {
    const auto plan = complete(r, text);
    REQUIRE_FALSE(plan);
    return plan.error().front().where;
  };
  Request r = pretraining("torchtitan");
  r.microbatch = 2;
  CHECK(where(r, "dp=16,mbs=4") == "--microbatch");
  r = pretraining("torchtitan");
  CHECK(where(r, "dp=16,ga=2") == "--batch");   // 16 x 1 x 2 = 32, asked 64
  CHECK(where(r, "dp=16,mbs=3") == "--batch");  // 64 does not divide into rounds of 48
  r.recompute = "none";
  CHECK(where(r, "dp=16,recompute=full") == "--recompute");
  r = pretraining("torchtitan");
  r.offload = Offload{};
  CHECK(where(r, "dp=16,offload=optimizer") == "--offload");
}

TEST_CASE("a completed plan in words is the same plan again in every framework") {
  for (const char* text : {"tp=4,pp=2", "dp=16", "dp=16,zero=0", "tp=8,sp=false", "pp=4", "cp=2",
                           "cp=2,cp-kind=ring", "cp=2,cp-kind=ulysses"}) {
    INFO(text);
    const auto plan = complete(pretraining("torchtitan"), text);
    REQUIRE(plan);
    Request same_batch = pretraining("megatron-lm");
    const auto again = complete(same_batch, whole_text(*plan));
    REQUIRE(again);
    CHECK(*again == *plan);
  }
}

TEST_CASE("absurd sizes reach the plan rules instead of overflowing") {
  for (const char* text : {"dp=2000000000,mbs=2000000000,ga=2000000000", "tp=0", "dp=-3,ga=-1",
                           "tp=2147483647,pp=2147483647,cp=2147483647"}) {
    INFO(text);
    CHECK(complete(pretraining("torchtitan"), text));  // plan_problems() is what refuses them
  }
}

TEST_CASE("a key of a plan is given once") {
  const auto twice = parse_plan("dp=2,tp=2,dp=1");
  REQUIRE_FALSE(twice);
  REQUIRE(twice.error().size() == 1);
  CHECK(twice.error().front().what.find("dp is given twice in dp=2,tp=2,dp=1") == 0);
}

// People write the keys as papers do.
TEST_CASE("a plan's keys are read in either case") {
  const auto plan = parse_plan("TP=4, PP=2,ZeRO=1");
  REQUIRE(plan);
  CHECK(plan->tensor == 4);
  CHECK(plan->pipeline == 2);
  CHECK(plan->zero_stage == 1);
  const auto joined = parse_plan("DP2-tp4pp2");
  REQUIRE_FALSE(joined);
  CHECK(joined.error().front().what.ends_with("; did you mean dp=2,tp=4,pp=2?"));
  CHECK_FALSE(parse_plan("tp=4,TP=4"));
}

TEST_CASE("blanks beside the commas of a plan say nothing") {
  CHECK(*parse_plan(" dp=2, tp=4 ,pp=1") == *parse_plan("dp=2,tp=4,pp=1"));
  CHECK_FALSE(parse_plan("dp =2"));
}

TEST_CASE("fsdp=N is dp=N,zero=3, and no other key says otherwise") {
  for (const char* same : {"fsdp=8", "dp=8,fsdp=8", "fsdp=8,zero=3", "zero=3,fsdp=8,dp=8"}) {
    INFO(same);
    const auto plan = parse_plan(same);
    REQUIRE(plan);
    CHECK(plan->data == 8);
    CHECK(plan->zero_stage == 3);
  }
  for (const char* other : {"dp=4,fsdp=8", "fsdp=8,dp=4", "dp=1,fsdp=8", "fsdp=8,dp=1",
                            "fsdp=8,zero=1", "zero=0,fsdp=8", "fsdp=8,dp=4,zero=1"}) {
    INFO(other);
    const auto plan = parse_plan(other);
    REQUIRE_FALSE(plan);
    REQUIRE(plan.error().size() == 1);
    CHECK(holds(plan.error().front().what, "fsdp=N is dp=N,zero=3"));
  }
}

TEST_CASE("a plan's value that cannot be read comes with what was expected") {
  const auto problem = [](const std::string& plan) {
    const auto read = parse_plan(plan);
    REQUIRE_FALSE(read);
    return read.error().front().what;
  };
  CHECK(problem("dp=two") == "dp must be a whole number, got 'two'");
  CHECK(problem("dp=2,sp=maybe") == "sp must be true or false, got 'maybe'");
  for (const std::string share : {"150%", "0%", "-5%", "0.3"})
    CHECK(holds(problem("dp=2,offload=activations,offload-share=" + share),
                "a share of the activations, 1% to 100%, got '" + share + "'"));
  for (const OffloadChoice& row : offload_choices)
    CHECK(holds(problem("dp=2,offload=disk"), std::string(row.name)));
}

}  // namespace shardwise
