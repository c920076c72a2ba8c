// What `launch` answers where nobody says a plan.
#include "planner/answers/launch_answer.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "planner/answers/plan_answer.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct Case {
  const char *model, *gpus;
  Method method;
};

Result<LaunchAnswer> launched(const Case& c, std::string_view target) {
  Request r = request_for(c.model, c.gpus, {c.method});
  r.target = std::string(target);
  return launch_answer(r, known_facts());
}

}  // namespace

// plan assumes another method than launch does: who names none is told by both.
TEST_CASE("a method that nobody named is told where files are written") {
  for (const bool named : {false, true}) {
    Request r = request_for("llama-3.1-8b", "8xH100-SXM");
    if (named) r.methods = {Method::full};
    r.target = "torchtitan";
    const auto a = launch_answer(r, known_facts());
    REQUIRE(a);
    CHECK(std::any_of(a->notes.begin(), a->notes.end(), [](const std::string& note) {
            return note.starts_with("No method named: full fine-tuning");
          }) == !named);
  }
}

// Every one of these models is one that the target knows, so a refusal could only be of a plan.
TEST_CASE("a plan that nobody asked for is one that its target can be told") {
  const std::vector<Case> cases{
      {"qwen2.5-32b", "2xRTX-3090", Method::qlora},  {"qwen2.5-32b", "4xL4", Method::qlora},
      {"llama-3.1-70b", "8xA10G", Method::qlora},    {"llama-3.1-8b", "6xRTX-4090", Method::lora},
      {"llama-3.1-8b", "8xA100-80GB", Method::full}, {"llama-3.1-70b", "8xH100-SXM", Method::full}};
  for (const Case& c : cases)
    for (const LaunchTarget& target : launch_targets()) {
      if (row(c.method).adapter && target.name != "accelerate" && target.name != "deepspeed" &&
          target.name != "axolotl")
        continue;  // trains whole models
      if (std::string_view(c.model) == "qwen2.5-32b" && target.name == "torchtitan") continue;
      INFO(target.name << " " << c.model << " " << c.gpus);
      const auto a = launched(c, target.name);
      REQUIRE(a);
      CHECK(launch_refusals(target, a->job.question) == std::vector<std::string>{});
      CHECK(a->nothing_fits.has_value() == (a->verdict == Verdict::does_not_fit));
      CHECK(a->files.files.empty() == a->nothing_fits.has_value());
    }
}

// `fit` shards over all data ranks; `plan` looks at groups of them as well, which gather over fewer
// nodes. One predictor: the same plan takes the same time in both answers, to the picosecond.
TEST_CASE("a plan that nobody asked for is the first that plan ranks") {
  Request r = request_for("llama-3.1-70b", "512xH100-SXM", {Method::pretrain});
  r.target = "megatron";
  const auto a = launch_answer(r, known_facts());
  REQUIRE(a);
  Request ranked = request_for("llama-3.1-70b", "512xH100-SXM", {Method::pretrain});
  ranked.framework = "megatron-lm";
  PlanWish first;
  first.top = 1;
  const auto best = plan_answer(ranked, first, known_facts());
  REQUIRE(best);
  REQUIRE((**best).result.best.size() == 1);
  CHECK(a->job.question.plan == (**best).result.best.front().plan);
  CHECK(a->forecast.step_time.expected == (**best).result.best.front().forecast.step_time.expected);
  CHECK(a->job.question.plan.shard_group);
  CHECK(std::count_if(a->notes.begin(), a->notes.end(), [](const std::string& note) {
          return note.starts_with("What shardwise plan ranks first, of plans that megatron") &&
                 note.find("shardwise fit keeps to dp=256,tp=2,zero=3,mbs=1") != std::string::npos;
        }) == 1);
}

// DeepSpeed keeps 4-bit weights whole: 70.6e9 x half a byte are 32.9 GiB on every card of 22.3 GiB
// at most, 10.5 GiB too many before anything else. Cards that take turns would do, but DeepSpeed
// knows none.
TEST_CASE("where nothing fits that a target can be told, the least that is missing is told") {
  const auto a = launched({"llama-3.1-70b", "8xA10G", Method::qlora}, "deepspeed");
  REQUIRE(a);
  CHECK(a->verdict == Verdict::does_not_fit);
  CHECK(a->job.question.plan.pipeline == 1);
  CHECK(a->forecast.margin < Bytes(-(std::int64_t{10} << 30)));
  REQUIRE(a->nothing_fits);
  CHECK(a->nothing_fits->find("No plan that deepspeed can be told fits") == 0);
  CHECK(a->nothing_fits->find("GiB per GPU are missing at the least") != std::string::npos);
  // Axolotl's FSDP shards them: 4.1 GiB on each of eight.
  CHECK(launched({"llama-3.1-70b", "8xA10G", Method::qlora}, "axolotl")->verdict !=
        Verdict::does_not_fit);
}

// A plan that was asked for is written whether or not it fits.
TEST_CASE("a plan that was asked for is written though it does not fit") {
  Request r = request_for("llama-3.1-70b", "8xA10G", {Method::qlora});
  r.target = "deepspeed";
  r.plans = {"dp=8,zero=0,mbs=1,ga=2,recompute=full"};
  const auto a = launch_answer(r, known_facts());
  REQUIRE(a);
  CHECK(a->verdict == Verdict::does_not_fit);
  CHECK_FALSE(a->nothing_fits);
  CHECK_FALSE(a->files.files.empty());
}

// torchtune's low-memory recipe steps in backward: of an 8.03 B model it keeps no gradients. The
// Trainer that Accelerate's files run keeps them beside the weights, both in bf16, 2 x 2 x 8.03e9
// bytes = 29.9 GiB above the 23.6 GiB of the card; on one of 80 GB it fits.
TEST_CASE("files are not written where what they run needs more than there is") {
  Request r = request_for("llama-3.1-8b", "1xRTX-4090", {Method::full});
  r.framework = "torchtune-low-memory";
  r.target = "accelerate";
  const auto refused = launch_answer(r, known_facts());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().where == "--framework");
  CHECK(refused.error().front().what.find("--framework hf-trainer") != std::string::npos);
  r.gpus = "1xA100-80GB";
  const auto a = launch_answer(r, known_facts());
  REQUIRE(a);
  CHECK(std::any_of(a->notes.begin(), a->notes.end(), [](const std::string& note) {
    return note.find("as asked; these files run") != std::string::npos &&
           note.find("GiB per GPU") != std::string::npos;
  }));
}

TEST_CASE("no note is told twice") {
  for (const bool searched : {true, false}) {
    Request r = request_for("llama-3.1-8b", "8xA100-80GB", {Method::full});
    r.target = "deepspeed";
    if (!searched) r.plans = {"dp=8,zero=3"};
    const auto a = launch_answer(r, known_facts());
    REQUIRE(a);
    std::vector<std::string> notes = a->notes;
    std::sort(notes.begin(), notes.end());
    CHECK(std::adjacent_find(notes.begin(), notes.end()) == notes.end());
    for (const std::string& note : a->forecast.notes)
      CHECK(std::count(notes.begin(), notes.end(), note) == 1);
  }
}

// What was asked for and cannot be told is refused with the reason.
TEST_CASE("a setting that no plan of a target has is refused by its name") {
  Request r = request_for("llama-3.1-8b", "8xA100-80GB", {Method::full});
  r.target = "deepspeed";
  r.recompute = "selective";
  const auto a = launch_answer(r, known_facts());
  REQUIRE_FALSE(a);
  CHECK(a.error().size() == 1);
  CHECK(a.error().front().what == "the Trainer recomputes none or full, not selective");
}

// Fine-tuning without weights to start from would be pretraining; pretraining starts from none.
TEST_CASE("torchtitan loads weights where it fine-tunes") {
  const auto full = launched({"llama-3.1-8b", "8xH100-SXM", Method::full}, "torchtitan");
  REQUIRE(full);
  const std::string toml = full->files.files.front().text;
  const std::size_t table = toml.find("[checkpoint]");
  REQUIRE(table != std::string::npos);
  for (const char* line :
       {"enable = true", "initial_load_in_hf = true", "initial_load_model_only = true"})
    CHECK(toml.find(line, table) != std::string::npos);
  CHECK(full->files.files.back().text.find("# Weights are loaded from model.hf_assets_path") !=
        std::string::npos);
  const auto pretrain = launched({"llama-3.1-8b", "16xH100-SXM", Method::pretrain}, "torchtitan");
  REQUIRE(pretrain);
  REQUIRE_FALSE(pretrain->files.files.empty());
  CHECK(pretrain->files.files.front().text.find("[checkpoint]") == std::string::npos);
}

// The written files run in another folder, where a relative path leads nowhere; a config.json has
// no weights, the folder that holds it may.
TEST_CASE("a model asked for by its config.json is loaded from the folder of its weights") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("shardwise-model-" + std::to_string(getpid()));
  fs::create_directory(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
             "vocab_size": 128256, "intermediate_size": 14336, "num_attention_heads": 32,
             "num_key_value_heads": 8})";
  const fs::path from_here = fs::relative(folder);
  const std::string file = (from_here / "config.json").string();
  const auto base_model = [](const std::string& model) {
    const auto a = launched({model.c_str(), "1xRTX-4090", Method::qlora}, "axolotl");
    REQUIRE(a);
    const std::string& script = a->files.files.back().text;
    CHECK((script.find("# Write the folder or Hugging Face id") != std::string::npos) ==
          (a->job.model == model_to_set));
    const std::string quote = a->job.model.starts_with('/') ? "\"" : "";  // as YAML texts go
    CHECK(a->files.files.front().text.find("base_model: " + quote + a->job.model + quote + "\n") !=
          std::string::npos);
    return a->job.model;
  };
  CHECK(base_model(file) == "REPLACE-WITH-YOUR-MODEL");
  std::ofstream(folder / "model.safetensors") << "weights";
  CHECK(base_model(file) == fs::absolute(from_here).lexically_normal().string());
  CHECK(base_model(folder.string()) == folder.string());
  CHECK(base_model("llama-3.1-8b") == "meta-llama/Llama-3.1-8B");
  fs::remove_all(folder);
}

// Accelerate and DeepSpeed shard the layers of an 8B over data ranks; cards in turns are nobody's.
TEST_CASE("some target takes a plan, or none") {
  const ResolvedRequest r = resolved(request_for("llama-3.1-8b", "2xRTX-3090", {Method::lora}));
  Question q;
  q.cluster = r.clusters.front();
  q.workload.model = r.model;
  q.workload.method = Method::lora;
  q.workload.optimizer = optimizer_named("adamw");
  q.plan.data = 2;
  q.plan.zero_stage = 3;
  q.plan.recompute = "full";
  for (const LaunchTarget& target : launch_targets()) {
    INFO(target.name);
    const bool trains_adapters =
        target.name == "accelerate" || target.name == "deepspeed" || target.name == "axolotl";
    CHECK(launch_refusals(target, q).empty() == trains_adapters);
  }
  CHECK(takes_plan(q));
  q.plan = {};
  q.plan.pipeline = 2;
  q.plan.layer_split = true;
  CHECK_FALSE(takes_plan(q));
}

// Ranks that share sequences: the Trainer would compare a total with the samples of 16 GPUs, which
// are those of 8. And other nodes get no variables but those of a file.
TEST_CASE("DeepSpeed's files start beside ranks that share sequences, on several nodes") {
  Request r = request_for("llama-3.1-8b", "16xA100-80GB", {Method::full});
  r.target = "deepspeed";
  r.plans = {"dp=8,cp=2,zero=3,mbs=1,ga=2,cp-kind=ulysses"};
  const auto text_of = [](const LaunchAnswer& a, std::string_view name) {
    for (const LaunchFile& f : a.files.files)
      if (f.name == name) return f.text;
    return std::string();
  };
  const auto shared = launch_answer(r, known_facts());
  REQUIRE(shared);
  CHECK(text_of(*shared, "ds_config.json").find("\"train_batch_size\"") == std::string::npos);
  CHECK(text_of(*shared, ".deepspeed_env").find("PARALLELISM_CONFIG_SP_SIZE=2\n") !=
        std::string::npos);
  r.plans = {"dp=16,zero=3,mbs=1,ga=1"};
  const auto apart = launch_answer(r, known_facts());
  REQUIRE(apart);
  CHECK(text_of(*apart, "ds_config.json").find("\"train_batch_size\": 16") != std::string::npos);
}

}  // namespace shardwise
