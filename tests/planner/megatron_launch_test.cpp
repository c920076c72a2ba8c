// What Megatron-LM is told of a model, and what it stops at though it has flags for it.
#include "planner/answers/launch_answer.hpp"
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Result<LaunchAnswer> written_for(const std::string& model, const std::string& gpus,
                                 const std::string& plan, int sequence = 4096, int batch = 64) {
  Request r = request_for(model, gpus, {Method::pretrain});
  r.target = "megatron";
  r.plans = {plan};
  r.sequence = sequence;
  r.batch = batch;
  return launch_answer(r, known_facts());
}

bool says(const LaunchAnswer& a, const std::string& line) {
  REQUIRE_FALSE(a.files.files.empty());
  return ("\n" + a.files.files.front().text).find("\n" + line + "\n") != std::string::npos;
}

// All sentences of a refusal.
std::string refusal(const Result<LaunchAnswer>& a) {
  std::string all;
  if (a) return all;
  for (const Problem& p : a.error()) all += p.what + "\n";
  return all;
}

}  // namespace

// A number N would be short for layers 0, N, 2 N, ... (gpt_layer_specs.py:647), so the layers with
// experts are listed: DeepSeek-V3's first 3 of 61 have none, of Llama 4 Maverick's 48 every second
// one has, beginning with the second. Mixtral's all have, which is the default.
TEST_CASE("Megatron-LM is told which layers have experts") {
  const std::string sharded = "dp=8,ep=8,zero=1,mbs=1,recompute=full";
  const auto deepseek = written_for("deepseek-v3", "8xB200", sharded);
  REQUIRE(deepseek);
  CHECK(says(*deepseek, "--moe-layer-freq [0]*3+[1]*58"));
  const auto maverick = written_for("llama-4-maverick-17b-128e", "8xB200", sharded);
  REQUIRE(maverick);
  CHECK(says(*maverick, "--moe-layer-freq [0,1]*24"));
  const auto mixtral = written_for("mixtral-8x7b", "8xB200", sharded);
  REQUIRE(mixtral);
  CHECK(mixtral->files.files.front().text.find("moe-layer-freq") == std::string::npos);
  const auto gated = written_for("qwen1.5-moe-a2.7b", "8xB200", "dp=8,zero=1,mbs=1,recompute=full");
  REQUIRE(gated);
  CHECK(says(*gated, "--moe-shared-expert-gate"));
}

// EXAONE 4 sees 4,096 tokens, itself and 4,095 before, in three layers of four; sequences of 4,096
// lose nothing by that.
TEST_CASE("Megatron-LM is told of windows that are shorter than sequences") {
  const std::string plan = "dp=8,zero=3,mbs=1,recompute=full";
  const auto longer = written_for("exaone-4-32b", "8xB200", plan, 8192);
  REQUIRE(longer);
  CHECK(says(*longer, "--window-size 4095,0"));
  CHECK(says(*longer, "--window-attn-skip-freq 4"));
  // CWM's first layer of four sees everything, not its last: a list, 1 where a window holds
  const auto first = written_for("cwm-32b", "8xB200", plan, 16384);
  REQUIRE(first);
  CHECK(first->files.files.front().text.find("\n--window-attn-skip-freq [0,1,1,1,0,1,1,1,") !=
        std::string::npos);
  const auto as_long = written_for("exaone-4-32b", "8xB200", plan, 4096);
  REQUIRE(as_long);
  CHECK(as_long->files.files.front().text.find("window") == std::string::npos);
  const std::string ring = "dp=4,cp=2,zero=3,mbs=1,recompute=full";
  CHECK(refusal(written_for("exaone-4-32b", "8xB200", ring, 8192)).find("windows") !=
        std::string::npos);
  CHECK(written_for("exaone-4-32b", "8xB200", ring, 4096));
  // Llama 4's 8,192 tokens start anew, which no flag says; a sequence of 8,192 is one such chunk.
  const std::string sharded = "dp=8,ep=8,zero=1,mbs=1,recompute=full";
  const auto chunked = [&](int sequence) {
    return refusal(written_for("llama-4-maverick-17b-128e", "8xB200", sharded, sequence));
  };
  CHECK(chunked(8192) == "");
  CHECK(chunked(16384).find("chunks") != std::string::npos);
}

// arguments.py:1884 stops at the one flag without the other. Read back, the second is no complaint.
TEST_CASE("Megatron-LM's optimizer on the host comes with the flag that it asks for") {
  const auto a = written_for("llama-3.1-8b", "8xH100-SXM", "dp=8,zero=1,mbs=1,offload=optimizer");
  REQUIRE(a);
  CHECK(says(*a, "--optimizer-cpu-offload"));
  CHECK(says(*a, "--use-precision-aware-optimizer"));
}

TEST_CASE("Megatron-LM is not told a model that it would train as another") {
  const auto why = [](const char* model) {
    return refusal(written_for(model, "8xB200", "dp=8,zero=3,mbs=1,recompute=full"));
  };
  CHECK(why("qwen2.5-vl-7b").find("vision") != std::string::npos);
  CHECK(why("gpt-oss-20b").find("sinks") != std::string::npos);
  CHECK(why("olmo-2-7b").find("norms of queries and keys") != std::string::npos);
  CHECK(why("internlm-7b").find("biases") != std::string::npos);  // of attention, not of the MLP
  CHECK(why("gpt2") == "");                                       // of all linears
  CHECK(why("qwen2-7b") == "");                                   // of queries, keys and values
  CHECK(why("llama-3.1-8b") == "");                               // of none
}

// 12 microbatches on 8 stages leave a last round of 4, at which schedules.py stops; PyTorch takes
// all 12 as one round. Each of Mixtral's experts has 64 / 8 = 8 copies, which 16 instances of the
// optimizer (64 / 4) do not divide and 8 do.
TEST_CASE("what no argument is written for is refused") {
  const auto sparse = written_for("glm-5", "64xB200", "dp=64,ep=64,zero=1,mbs=1,recompute=full");
  CHECK(refusal(sparse).find("indexer") != std::string::npos);
}

TEST_CASE("plans at which Megatron-LM stops are refused") {
  const auto why = [](const char* model, const char* gpus, const char* plan, int batch) {
    return refusal(written_for(model, gpus, plan, 4096, batch));
  };
  CHECK(why("llama-3.1-8b", "8xH100-SXM", "dp=1,pp=8,vpp=2,schedule=interleaved,mbs=1,ga=12", 12)
            .find("multiple of 8 microbatches") != std::string::npos);
  CHECK(why("llama-3.1-8b", "8xH100-SXM", "dp=1,pp=8,vpp=2,schedule=interleaved,mbs=1,ga=16", 16) ==
        "");
  CHECK(why("mixtral-8x7b", "64xH100-SXM", "dp=64,ep=8,zero=1,shard=4,mbs=1,ga=1", 64)
            .find("16 instances") != std::string::npos);
  CHECK(why("mixtral-8x7b", "64xH100-SXM", "dp=64,ep=8,zero=1,shard=8,mbs=1,ga=1", 64) == "");
  CHECK(why("mixtral-8x7b", "8xH100-SXM", "dp=4,tp=2,sp=false,ep=2,zero=1,mbs=1,ga=16", 64)
            .find("sp=true") != std::string::npos);
  CHECK(why("mixtral-8x7b", "8xH100-SXM", "dp=4,tp=2,sp=true,ep=2,zero=1,mbs=1,ga=16", 64) == "");
}

// Megatron-LM's own examples write layouts with parentheses (pipeline_parallel_layer_layout.py):
// 7 + 6 x 8 + 6 = 61 layers on 8 stages. In a script they stand in quotes, in a file of bare
// arguments, which a shell splits at spaces, they do not. An array's own parentheses end it.
TEST_CASE("a layout with parentheses is read from bare arguments and from a script") {
  const Request request = request_for("deepseek-v3", "512xH100-SXM");
  const ResolvedRequest r = resolved(request);
  const std::string common = " --pipeline-model-parallel-size 8 --micro-batch-size 1";
  for (const std::string& text :
       {"--pipeline-model-parallel-layout Et*7|(t*8|)*6t*6L" + common,
        "ARGS=(\n--pipeline-model-parallel-layout \"Et*7|(t*8|)*6t*6L\"" + common +
            ")\ntorchrun $(which x) pretrain_gpt.py ${ARGS[@]}\n"}) {
    INFO(text);
    const auto files = with_plan_texts(
        request, {&r.model, &r.clusters.front(), &known_facts().catalog}, {{"x.args", text}});
    REQUIRE(files);
    CHECK(files->request.plans.front().find("layers=7/8/8/8/8/8/8/6") != std::string::npos);
    CHECK(files->request.plans.front().find("mbs=1") != std::string::npos);
  }
}

// Megatron-FSDP has Adam and SGD (arguments.py, "Optimizer compatibility check").
TEST_CASE("Megatron-LM's Muon is not sharded by FSDP") {
  Request r = request_for("llama-3.1-8b", "8xH100-SXM", {Method::pretrain});
  r.target = "megatron";
  r.optimizer = optimizer_named("muon");
  REQUIRE(r.optimizer);
  r.plans = {"dp=8,zero=2,mbs=1"};
  CHECK(refusal(launch_answer(r, known_facts())).find("Megatron-FSDP") != std::string::npos);
  r.plans = {"dp=8,zero=1,mbs=1"};
  CHECK(refusal(launch_answer(r, known_facts())) == "");
}

// DeepSeek's q_a_layernorm and kv_a_layernorm are in the layer spec with this flag only
// (gpt_layer_specs.py @d98e8a64dd); Llama 3 has no norm of queries and keys.
TEST_CASE("Megatron-LM is told of the norms of latent attention") {
  const auto latent = written_for("deepseek-v2-lite", "8xB200", "dp=8,ep=8,zero=1,mbs=1");
  REQUIRE(latent);
  CHECK(says(*latent, "--multi-latent-attention"));
  CHECK(says(*latent, "--qk-layernorm"));
  const auto plain = written_for("llama-3.1-8b", "8xB200", "dp=8,zero=1,mbs=1");
  REQUIRE(plain);
  CHECK_FALSE(says(*plain, "--qk-layernorm"));
}

}  // namespace shardwise
