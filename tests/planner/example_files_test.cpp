// Files as projects publish them among their examples: what they name, leave out and set by habit.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

using LinearWords = std::vector<std::string_view>;

Result<PlanFiles> example_says(const std::string& file, const std::string& text, Request request) {
  return read_as(std::move(request), {{file, text}});
}

Result<PlanFiles> example_says(const std::string& file, const std::string& text) {
  return read_plan(file, text);
}

std::string example_plan(const std::string& file, const std::string& text) {
  const auto files = example_says(file, text);
  return files ? files->request.plans.front() : files.error().front().what;
}

bool tells_of(const std::vector<KeyNote>& notes, const std::string& key) {
  for (const KeyNote& note : notes)
    if (note.key == key) return true;
  return false;
}

struct ExampleFile {
  std::filesystem::path path;
  ExampleFile(const char* name, const char* text)
      : path(std::filesystem::temp_directory_path() /
             ("shardwise-" + std::to_string(::getpid()) + name)) {
    std::ofstream(path) << text;
  }
  ~ExampleFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

Result<ResolvedRequest> resolved_from_files(const std::vector<const ExampleFile*>& files) {
  Request r;
  r.gpus = "8xH100-SXM";
  for (const ExampleFile* file : files) r.plan_from.push_back(file->path.string());
  return resolve(r, known_facts(), UnnamedMethods::one);
}

}  // namespace

// peft/tuners/tuners_utils.py, check_target_module_exists: the end of a module's name, or one
// pattern that takes whole names.
TEST_CASE("adapters' modules are named as PEFT takes them") {
  CHECK(linears_named("self_attn.q_proj").linears == LinearWords{"q"});
  CHECK(linears_named("q_proj,mlp.down_proj").linears == LinearWords{"q", "down"});
  CHECK(linears_named("all").linears == LinearWords{"all-linear"});
  // axolotl's examples of models that see.
  const auto all = linears_named(
      R"(model.language_model.layers.[\d]+.(mlp|self_attn).(up|down|gate|q|k|v|o)_proj)");
  CHECK(all.linears == LinearWords{"q", "k", "v", "o", "gate", "up", "down"});
  CHECK(all.note.empty());
  const auto attention = linears_named(R"(.*self_attn\.(q|v)_proj)");
  CHECK(attention.linears == LinearWords{"q", "v"});
  // Every fourth layer only, as hybrids have it, is none of what is counted.
  const auto some = linears_named(R"(.*\.layers\.(3|7|11)\.self_attn\.(q|k|v|o)_proj)");
  CHECK(some.linears.empty());
  CHECK(some.note.find("some layers") != std::string::npos);
  // One linear of GPT-NeoX, whose adapter is smaller than three: said.
  CHECK(linears_named("query_key_value").linears == LinearWords{"q", "k", "v"});
  CHECK_FALSE(linears_named("query_key_value").note.empty());
  for (const char* none : {"in_proj", "linear_attn.out_proj", "(unclosed", "(?P<name>q_proj)"}) {
    CHECK(linears_named(none).linears.empty());
    CHECK_FALSE(linears_named(none).note.empty());
  }
}

TEST_CASE("modules that are not counted do not hide those that are") {
  const std::string file = "base_model: tiiuae/x\nadapter: lora\nlora_r: 32\n";
  const auto both =
      example_says("a.yaml", file + "lora_target_modules:\n  - q_proj\n  - in_proj\n");
  REQUIRE(both);
  CHECK(both->request.lora_targets == "q");
  CHECK(tells_of(both->reports.front().not_honoured, "lora_target_modules.1"));
  const auto none = example_says("a.yaml", file + "lora_target_modules:\n  - in_proj\n");
  REQUIRE_FALSE(none);
  CHECK(none.error().front().where == "a.yaml:5:lora_target_modules.0");
}

// examples/archived/falcon/config-7b.yml, examples/alst/llama3-8b-fsdp2-alst.yaml and others.
TEST_CASE("axolotl's examples: a rank without adapter, grouped digits, newer optimizers") {
  const auto full =
      example_says("a.yaml",
                   "base_model: tiiuae/falcon-7b\nadapter:\nlora_r: 64\nmicro_batch_size: 2\n"
                   "sequence_len: 500_000\noptimizer: adamw_torch_8bit\ntorchdistx_path:\n"
                   "gradient_checkpointing: offload\n");
  REQUIRE(full);
  CHECK(full->request.methods == std::vector<Method>{Method::full});
  CHECK_FALSE(full->request.lora_rank);
  CHECK(full->request.sequence == 500'000);
  CHECK(full->request.optimizer == optimizer_named("adamw8bit"));
  CHECK(full->request.plans.front() == "zero=0,mbs=2,recompute=full");
  const PlanFileReport& report = full->reports.front();
  CHECK(tells_of(report.not_honoured, "lora_r"));
  CHECK(tells_of(report.not_honoured, "gradient_checkpointing"));
  CHECK(tells_of(report.ignored, "torchdistx_path"));  // it says nothing
  const auto muon = example_says("a.yaml", "base_model: x\noptimizer: muon\n");
  REQUIRE(muon);
  CHECK(muon->request.optimizer == optimizer_named("muon"));
}

// deepspeedai/DeepSpeed @029f12b3c6 runtime/config.py, _set_batch_related_parameters: 256 sequences
// over 8 ranks and one round are microbatches of 32; over two rounds, of 16.
TEST_CASE("a DeepSpeed batch without a microbatch leaves what DeepSpeed leaves") {
  CHECK(
      example_plan("ds.json", R"({"train_batch_size": 256, "zero_optimization": {"stage": 1}})") ==
      "zero=1,mbs=32,ga=1,offload=none");
  CHECK(example_plan("ds.json", R"({"train_batch_size": 256, "gradient_accumulation_steps": 2})") ==
        "zero=0,mbs=16,ga=2,offload=none");
  CHECK(example_plan("ds.json", R"({"train_batch_size": 12})").find("does not divide") !=
        std::string::npos);
  // Another batch is asked for: its microbatch is open again.
  Request other = request_for("llama-3.1-8b", "8xH100-SXM");
  other.batch = 64;
  const auto files = example_says("ds.json", R"({"train_batch_size": 256})", other);
  REQUIRE(files);
  CHECK(files->request.plans.front() == "zero=0,offload=none");
  // So it is where a microbatch is asked for, and the batch stays.
  Request smaller = request_for("llama-3.1-8b", "8xH100-SXM");
  smaller.microbatch = 4;
  const auto fewer = example_says("ds.json", R"({"train_batch_size": 256})", smaller);
  REQUIRE(fewer);
  CHECK(fewer->request.plans.front() == "zero=0,offload=none");
  CHECK(fewer->request.batch == 256);
}

// examples/mixtral/train_mixtral_8x7b_distributed.sh and DeepSpeed-Domino's pretrain_gpt3_2.7b.sh.
TEST_CASE("shell scripts compute their sizes") {
  CHECK(example_plan("train.sh",
                     "GPUS_PER_NODE=8\nNNODES=${SLURM_NNODES:-\"1\"}\n"
                     "WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))\nTP=${TP:-${SIZE:-4}}\n"
                     "ARGS=\"\n  --tensor-model-parallel-size $TP --micro-batch-size 1 \\\n"
                     "  --global-batch-size $((2 * (WORLD_SIZE + 8)))\"\n")
            .find("tp=4") != std::string::npos);
  const auto files =
      example_says("train.sh",
                   "N=8\nARGS=\"\n  --tensor-model-parallel-size 1 --micro-batch-size 1 \\\n"
                   "  --global-batch-size $((2 * (N + 8)))\"\n");
  REQUIRE(files);
  CHECK(files->batch == 32);  // 2 x (8 + 8)
  // Nothing is made of what is no whole number.
  CHECK_FALSE(
      example_says("train.sh", "--tensor-model-parallel-size $((N / 0)) --micro-batch-size 1\n"));
}

TEST_CASE("a file of LLaMA-Factory's v1 trainer is not taken for one of the trainer before") {
  const auto files = example_says("v1.yaml",
                                  "model: Qwen/Qwen3-0.6B\nmodel_class: llm\ncutoff_len: 2048\n"
                                  "dist_config:\n  name: fsdp2\nmicro_batch_size: 1\n");
  REQUIRE_FALSE(files);
  CHECK(files.error().front().where == "v1.yaml:2:model_class");
}

TEST_CASE("the model may be the one that a file names") {
  const ExampleFile axolotl("a.yaml", "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 2\n");
  const ExampleFile trainer(
      "t.yaml", "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 1\n");
  const ExampleFile unknown("u.yaml", "base_model: nobody/knows-this\nmicro_batch_size: 2\n");
  const ExampleFile zero("z.json", R"({"zero_optimization": {"stage": 1}})");
  const auto named = resolved_from_files({&axolotl, &zero});
  REQUIRE(named);
  CHECK(named->model.id == "llama-3.1-8b");
  CHECK(named->notes.front().find("a.yaml:1:base_model") != std::string::npos);
  const auto two = resolved_from_files({&axolotl, &trainer});
  REQUIRE_FALSE(two);
  CHECK(two.error().front().what.find("MODEL") != std::string::npos);
  const auto none = resolved_from_files({&unknown});
  REQUIRE_FALSE(none);
  CHECK(none.error().front().kind == ProblemKind::file);
  CHECK(none.error().front().where == unknown.path.string() + ":1:base_model");
  const ExampleFile elsewhere("e.yaml", "base_model: ./outputs/merged\nmicro_batch_size: 2\n");
  const auto gone = resolved_from_files({&elsewhere});
  REQUIRE_FALSE(gone);
  CHECK(gone.error().front().where == elsewhere.path.string() + ":1:base_model");
  const auto silent = resolved_from_files({&zero});
  REQUIRE_FALSE(silent);
  CHECK(silent.error().front().where == "MODEL");
}

}  // namespace shardwise
