// What torchtitan 0.2.2 is told, and what it stops at though it has keys for it.
#include "planner/answers/launch_answer.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct AskedRun {
  const char *model, *gpus, *plan;
  int sequence = 4096, batch = 64;
  const char* framework = nullptr;  // whose forecast it is; torchtitan's own where none is named
};

// Why nothing is written; empty where something is.
std::string why_not_written(const AskedRun& run) {
  Request r = request_for(run.model, run.gpus, {Method::pretrain});
  r.target = "torchtitan";
  r.plans = {run.plan};
  r.sequence = run.sequence;
  r.batch = run.batch;
  if (run.framework != nullptr) r.framework = run.framework;
  const auto a = launch_answer(r, known_facts());
  std::string all;
  if (!a)
    for (const Problem& p : a.error()) all += p.what + "\n";
  return all;
}

}  // namespace

// Salamandra 7B has Llama 3 8B's type, layers and width, but MLPs of 11,008 instead of 14,336.
TEST_CASE("a model that shares some sizes with one of torchtitan's is another") {
  CHECK(why_not_written({"salamandra-7b", "8xH100-SXM", "dp=8,zero=3"})
            .find("no model with the sizes of salamandra-7b") != std::string::npos);
  for (const char* model : {"llama-3.1-8b", "qwen3-8b", "qwen3-30b-a3b", "deepseek-v2-lite"}) {
    INFO(model);
    CHECK(why_not_written({model, "8xH100-SXM", "dp=8,zero=3"}) == "");
  }
}

TEST_CASE("plans at which torchtitan stops are refused") {
  struct Case {
    AskedRun run;
    const char* why;  // empty: it runs
  };
  const std::vector<Case> cases{
      {{"llama-3.1-8b", "8xH100-SXM", "dp=2,tp=4,sp=true,zero=0"}, "DDP"},
      {{"llama-3.1-8b", "8xH100-SXM", "dp=2,pp=4,zero=0,ga=32"}, "DDP"},
      // Nothing is sharded: forecast and written in fp32, which it would train in.
      {{"llama-3.1-8b", "8xH100-SXM", "dp=1,tp=8,sp=true,zero=0"}, ""},
      {{"llama-3.1-8b", "8xH100-SXM", "dp=1,tp=8,sp=true,zero=0", 4096, 64, "megatron-lm"},
       "mixes precision"},
      {{"llama-3.1-8b", "8xH100-SXM", "dp=2,tp=4,sp=true,zero=2"}, ""},
      // 4 ranks share weights: they cannot hold 8 ranks' experts.
      {{"qwen3-30b-a3b", "8xH100-SXM", "dp=8,ep=8,zero=3,shard=4"}, "experts over 8 ranks"},
      // 32 layers: one for each of 32 stages, and none for the others of 64.
      {{"llama-3.1-8b", "64xH100-SXM", "dp=2,pp=32,zero=2,ga=32"}, ""},
      {{"llama-3.1-8b", "128xH100-SXM", "dp=2,pp=64,zero=2,ga=32"}, "64 stages of 32 layers"},
      {{"qwen3-30b-a3b", "8xH100-SXM", "dp=8,ep=4,zero=3,shard=4"}, ""},
      {{"qwen3-30b-a3b", "8xH100-SXM", "dp=4,tp=2,sp=true,ep=8,etp=1,zero=3"}, ""},
      {{"deepseek-v2-lite", "8xH100-SXM", "dp=4,cp=2,zero=3"}, "FlexAttention"},
      {{"qwen3-8b", "8xH100-SXM", "dp=4,cp=2,zero=3"}, ""},
      // 4,104 tokens are 8 x 513, not a multiple of 16.
      {{"llama-3.1-8b", "8xH100-SXM", "dp=1,tp=8,sp=true,zero=0", 4104}, "2 x tp x cp = 16"},
      {{"qwen3-4b", "8xH100-SXM", "dp=2,pp=4,zero=2,ga=32"}, "tie"},
      {{"qwen3-8b", "8xH100-SXM", "dp=2,pp=4,zero=2,ga=32"}, ""},
      {{"llama-3.1-8b", "8xH100-SXM", "dp=1,pp=8,zero=0,ga=4", 4096, 4}, "a microbatch per stage"},
      {{"llama-3.1-8b", "8xH100-SXM", "dp=1,pp=8,zero=0,ga=8", 4096, 8}, ""}};
  for (const Case& c : cases) {
    INFO(c.run.model << " " << c.run.plan);
    const std::string why = why_not_written(c.run);
    if (*c.why == '\0')
      CHECK(why == "");
    else
      CHECK(why.find(c.why) != std::string::npos);
  }
}

// Its own is one for training from scratch, 8e-4 (job_config.py).
TEST_CASE("torchtitan's files say where no learning rate was named to fine-tune with") {
  const auto told_for = [](Method method, bool named) {
    Request r = request_for("llama-3.1-8b", "8xH100-SXM", {method});
    r.target = "torchtitan";
    r.plans = {"dp=8,zero=3"};
    if (named) r.learning_rate = 2e-5;
    const auto a = launch_answer(r, known_facts());
    REQUIRE(a);
    bool told = false;
    for (const std::string& note : a->files.notes)
      told |= note.find("takes 8e-4") != std::string::npos;
    CHECK((a->files.files.front().text.find("lr = ") != std::string::npos) == named);
    return told;
  };
  CHECK(told_for(Method::full, false));
  CHECK_FALSE(told_for(Method::full, true));
  CHECK_FALSE(told_for(Method::pretrain, false));
}

}  // namespace shardwise
