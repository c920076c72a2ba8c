// What plans beside those of files take from the files, and where files' plans go wrong.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "planner/answers/launch_answer.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct WrittenConfig {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("shardwise-beside-" + std::to_string(::getpid()) + ".json");
  explicit WrittenConfig(const char* text) { std::ofstream(path) << text; }
  ~WrittenConfig() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  Request request() const {
    Request r = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
    r.plan_from = {path.string()};
    return r;
  }
};

int microbatches(const Request& request, const char* plan) {
  const ResolvedRequest r = resolved(request);
  const Cluster& cluster = r.clusters.front();
  const auto p =
      complete_plan(r, choose_workload(r, r.methods.front(), cluster, 0).workload, cluster, plan);
  REQUIRE(p);
  return p->microbatches;
}

}  // namespace

// The file's step is 8 x 2 x 4 = 64 sequences. ZeRO-3 with one each takes 64 / 8 = 8 rounds, not
// the two of 16 sequences that fine-tuning has where nothing says more.
TEST_CASE("plans beside a file's are of the same batch") {
  const WrittenConfig config(R"({"train_micro_batch_size_per_gpu": 2,
                                 "gradient_accumulation_steps": 4,
                                 "zero_optimization": {"stage": 1}})");
  CHECK(resolved(config.request()).batch == 64);
  CHECK(microbatches(config.request(), "dp=8,zero=3,mbs=1") == 8);
  Request other = config.request();
  other.batch = 32;
  CHECK(microbatches(other, "dp=8,zero=3,mbs=1") == 4);
}

TEST_CASE("a file's plan that breaks a rule is told by the file's name") {
  const WrittenConfig config(R"({"train_micro_batch_size_per_gpu": 2,
                                 "gradient_accumulation_steps": 4,
                                 "tensor_parallel": {"autotp_size": 2}})");
  Request r = config.request();
  r.target = "deepspeed";
  const auto a = launch_answer(r, known_facts());
  REQUIRE_FALSE(a);
  CHECK(a.error().front().where == config.path.string());
  CHECK(a.error().front().kind == ProblemKind::file);
  // A plan of one's own is one's own.
  r.plan_from.clear();
  r.plans = {"dp=4,tp=2"};
  REQUIRE_FALSE(launch_answer(r, known_facts()));
  CHECK(launch_answer(r, known_facts()).error().front().where == "--plan");
}

// The trainer's file alone says nothing of ZeRO: DeepSpeed's, which it names, says stage 3.
TEST_CASE("a trainer's file brings the file of DeepSpeed that it names") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("shardwise-named-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string trainer = (folder / "sft.yaml").string(), other = (folder / "ds.json").string();
  std::ofstream(trainer) << "per_device_train_batch_size: 2\ngradient_accumulation_steps: 1\n"
                            "deepspeed: 'ds.json'  # beside this file\n";
  Request r = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
  r.plan_from = {trainer};
  CHECK(resolved(r).asked.plans == std::vector<std::string>{"mbs=2,ga=1"});
  std::ofstream(other) << R"({"zero_optimization": {"stage": 3}})";
  const std::vector<std::string> sharded{"zero=3,mbs=2,ga=1,offload=none"};
  CHECK(resolved(r).asked.plans == sharded);
  r.plan_from = {trainer, other};  // read once
  CHECK(resolved(r).asked.plans == sharded);
  // As a flag of a script and as JSON; a line that is commented out names nothing.
  const std::string script = (folder / "sft.sh").string(), json = (folder / "sft.json").string();
  std::ofstream(script) << "trl sft --per_device_train_batch_size 2 \\\n"
                           "  --gradient_accumulation_steps 1 --deepspeed=ds.json\n";
  std::ofstream(json) << R"({"per_device_train_batch_size": 2, "gradient_accumulation_steps": 1,
                             "deepspeed": "ds.json"})";
  for (const std::string& file : {script, json}) {
    INFO(file);
    r.plan_from = {file};
    CHECK(resolved(r).asked.plans == sharded);
  }
  std::ofstream(trainer) << "per_device_train_batch_size: 2\ngradient_accumulation_steps: 1\n"
                            "# deepspeed: ds.json\n";
  r.plan_from = {trainer};
  CHECK(resolved(r).asked.plans == std::vector<std::string>{"mbs=2,ga=1"});
  std::filesystem::remove_all(folder);
}

// A folder may hold several scripts that contradict one another, so none is read unasked; but the
// answer says so.
TEST_CASE("a folder's scripts are passed over aloud") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("shardwise-scripts-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string script = (folder / "pretrain.sh").string();
  std::ofstream(script) << "torchrun pretrain_gpt.py --tensor-model-parallel-size 4 \\\n"
                           "  --pipeline-model-parallel-size 2 --micro-batch-size 1\n";
  std::ofstream(folder / "setup.sh") << "pip install torch\n";
  Request r = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
  r.plan_from = {folder.string()};
  const auto alone = resolve(r, known_facts(), UnnamedMethods::one);
  REQUIRE_FALSE(alone);
  REQUIRE(alone.error().size() == 1);
  CHECK(alone.error().front().kind == ProblemKind::file);
  CHECK(alone.error().front().where == folder.string());
  CHECK(alone.error().front().what ==
        "holds no launch configuration that is known here; a script is read where it is named "
        "itself: --plan-from " +
            script);
  std::ofstream(folder / "ds.json") << R"({"zero_optimization": {"stage": 3}})";
  const ResolvedRequest beside = resolved(r);
  CHECK(beside.asked.plans == std::vector<std::string>{"zero=3,offload=none"});
  REQUIRE(beside.plan_files.size() == 2);
  CHECK(told(beside.plan_files.back()) == script +
                                              " is not read: of a folder, a script is where it is "
                                              "named itself (--plan-from " +
                                              script + ").");
  std::filesystem::remove_all(folder);
}

}  // namespace shardwise
