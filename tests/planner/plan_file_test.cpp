// Users' own launch files, as they are found in the wild, read as the plan to judge.
#include <limits>

#include "planner/launch/learning_rate.hpp"
#include "planner/sentence.hpp"
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

// The shape of DeepSpeed's own tutorials and of the Trainer's: "auto" where the Trainer decides.
constexpr const char* zero3_offload = R"({
  "bf16": {"enabled": "auto"},
  "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}},
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "offload_param": {"device": "none"},
    "zero_hpz_partition_size": 8,
    "sub_group_size": 1e9,
    "stage3_max_live_parameters": 1e9
  },
  "gradient_accumulation_steps": 4,
  "train_micro_batch_size_per_gpu": 2,
  "comunication_data_type": "fp32"
})";

}  // namespace

TEST_CASE("a ds_config says what it puts on NVMe") {
  const auto with = [](const char* optimizer, const char* weights) {
    return read_plan(
        "ds.json", sentence(R"({"zero_optimization": {"stage": 3, "offload_optimizer":
      {"device": ")",
                            optimizer, R"("}, "offload_param": {"device": ")", weights, R"("}}})"));
  };
  CHECK(plan_of(with("nvme", "none")) == "zero=3,offload=optimizer,nvme=true");
  // Weights there are not modelled: said, not taken for the host's memory.
  const auto refused = with("cpu", "nvme");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().where == "ds.json:zero_optimization.offload_param.device");
}

// 8 x 100,000 x 100,000 sequences are more than an int holds: the most it does, which the rules of
// plans refuse.
TEST_CASE("a batch that no int holds is told as the most that one does") {
  const auto files = read_plan("ds.json", R"({"train_micro_batch_size_per_gpu": 100000,
                                              "gradient_accumulation_steps": 100000})");
  REQUIRE(files);
  CHECK(plan_of(files) == "zero=0,mbs=100000,ga=100000,offload=none");
  CHECK(files->batch == std::numeric_limits<int>::max());
}

TEST_CASE("a ds_config says stage, offload and batch, and what of it cannot be honoured") {
  const auto files = read_plan("ds.json", zero3_offload);
  REQUIRE(files);
  CHECK(plan_of(files) == "zero=3,mbs=2,ga=4,offload=optimizer");
  CHECK(files->request.framework == "hf-deepspeed");
  CHECK(std::string(files->request.optimizer->name) == "adamw");
  CHECK(files->batch == 64);  // 8 GPUs x 2 x 4
  CHECK_FALSE(files->learning_rate);
  const PlanFileReport& report = files->reports.front();
  CHECK(report.format == "DeepSpeed");
  CHECK(notes(report.not_honoured, "zero_optimization.zero_hpz_partition_size"));
  CHECK(notes(report.not_honoured, "comunication_data_type"));  // unknown: no such key
  CHECK(notes(report.ignored, "bf16.enabled"));
  CHECK(notes(report.ignored, "zero_optimization.sub_group_size"));
}

TEST_CASE("two files that contradict one another are a problem that names both") {
  const auto files = read_as(request_for("llama-3.1-8b", "8xH100-SXM"),
                             {{"ds.json", R"({"train_micro_batch_size_per_gpu": 2})"},
                              {"args.yaml", "per_device_train_batch_size: 4\n"}});
  REQUIRE_FALSE(files);
  const Problem& p = files.error().front();
  CHECK(p.where == "args.yaml:1:per_device_train_batch_size");
  CHECK(p.what == "says mbs = 4, but ds.json:train_micro_batch_size_per_gpu says 2");
}

TEST_CASE("a flag that contradicts a file is a problem; another batch is accumulated") {
  Request r = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
  r.sequence = 2048;
  const auto wrong =
      read_as(r, {{"sft.yaml", "per_device_train_batch_size: 1\nmax_length: 4096\n"}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().front().where == "--seq");
  CHECK(wrong.error().front().what == "2048 contradicts sft.yaml:2:max_length, which says 4096");

  Request other = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
  other.batch = 128;
  const auto files = read_as(other, {{"ds.json", zero3_offload}});
  CHECK(plan_of(files) == "zero=3,mbs=2,offload=optimizer");  // ga follows from the 128
  CHECK(files->batch == 64);
}

TEST_CASE("a wrong value names file, key, value and what was expected") {
  struct Case {
    const char *file, *text, *where, *what;
  };
  const std::vector<Case> cases{
      {"ds.json", R"({"zero_optimization": {"stage": 4}})", "ds.json:zero_optimization.stage",
       "expected a whole number from 0 to 3, found 4"},
      {"ds.json", R"({"train_micro_batch_size_per_gpu": "two"})",
       "ds.json:train_micro_batch_size_per_gpu", "expected a whole number from 1, found \"two\""},
      {"ds.json", R"({"train_batch_size": 2.5})", "ds.json:train_batch_size",
       "expected a whole number from 1, found 2.5"},
      {"a.yaml", "distributed_type: FSPD\n", "a.yaml:1:distributed_type",
       "expected NO, MULTI_GPU, FSDP or DEEPSPEED, found \"FSPD\""},
      {"a.yaml", "distributed_type: FSDP\nnum_processes: 4\n", "a.yaml:2:num_processes",
       "starts 4 processes, the GPUs asked for are 8"},
      {"t.toml", "[training]\nlocal_batch_size = 0\n", "t.toml:2:training.local_batch_size",
       "expected a whole number from 1, found 0"},
      {"t.toml", "[parallelism]\ntensor_parallel_degree = 3\n[training]\nlocal_batch_size=1\n",
       "t.toml", "lays out a multiple of 3 GPUs, asked for are 8"},
      {"m.sh", "python pretrain_gpt.py --tensor-model-parallel-size $TP --num-layers 32\n",
       "m.sh:1:tensor-model-parallel-size", "expected a whole number from 1, found \"$TP\""},
      {"x.yaml", "base_model: a\ngradient_checkpointing: maybe\n",
       "x.yaml:2:gradient_checkpointing",
       "expected true, false, offload or offload_disk, found \"maybe\""},
      {"x.yaml", "base_model: a\nload_in_4bit: true\n", "x.yaml:2:load_in_4bit",
       "quantised weights cannot be trained; expected an adapter beside them"}};
  for (const Case& c : cases) {
    INFO(c.text);
    const auto files = read_plan(c.file, c.text);
    REQUIRE_FALSE(files);
    CHECK(files.error().front().kind == ProblemKind::file);
    CHECK(files.error().front().where == c.where);
    CHECK(files.error().front().what == c.what);
  }
}

TEST_CASE("a file that says no plan is refused with the formats that are known") {
  const auto files = read_plan("config.json", R"({"model_type": "llama"})");
  REQUIRE_FALSE(files);
  for (const PlanFileFormat& format : plan_file_formats())
    CHECK(files.error().front().what.find(format.name) != std::string::npos);
}

TEST_CASE("every key of every format can be asked for, and reasons are given") {
  for (const PlanFileFormat& format : plan_file_formats())
    for (const PlanKey& key : format.keys) {
      INFO(format.name << ": " << key.path);
      CHECK_FALSE(key.path.empty());
      CHECK((key.use == KeyUse::says ? key.note.empty() : !key.note.empty()));
      CHECK((key.use != KeyUse::says || !key.word.empty()));
      CHECK((key.kind != KeyKind::choice || !key.meanings.empty()));
      for (const PlanKey& other : format.keys) CHECK((&other == &key || other.path != key.path));
    }
}

// The Trainer's file would say them; with it the same file is fine.
TEST_CASE("a DeepSpeed file of nothing but auto is told what is missing") {
  const std::string deepspeed =
      R"({"train_batch_size": "auto", "zero_optimization": {"stage": "auto"}})";
  const auto alone = read_plan("ds.json", deepspeed);
  REQUIRE_FALSE(alone);
  CHECK(alone.error().front().where == "ds.json");
  CHECK(alone.error().front().what.find("train_batch_size, zero_optimization.stage leave it") !=
        std::string::npos);
  CHECK(read_as(request_for("llama-3.1-8b", "8xH100-SXM"),
                {{"ds.json", deepspeed}, {"sft.yaml", "per_device_train_batch_size: 1\n"}}));
}

TEST_CASE("axolotl's QLoRA example reads as QLoRA over FSDP") {
  const auto files =
      read_plan("qlora.yaml",
                "base_model: meta-llama/Meta-Llama-3-70B\nload_in_4bit: true\n"
                "adapter: qlora\nlora_r: 8\nlora_target_linear: true\n"
                "sequence_len: 512\nmicro_batch_size: 1\n"
                "gradient_accumulation_steps: 4\noptimizer: adamw_torch_fused\n"
                "learning_rate: 0.00001\ngradient_checkpointing: true\nbf16: auto\n"
                "fsdp:\n  - full_shard\n  - auto_wrap\nfsdp_version: 2\n"
                "fsdp_config:\n  offload_params: true\n  reshard_after_forward: true\n",
                "2xRTX-3090", "llama-3-70b");
  CHECK(plan_of(files) == "zero=3,mbs=1,ga=4,recompute=full,offload=params+optimizer");
  REQUIRE(files);
  CHECK(files->request.methods == std::vector<Method>{Method::qlora});
  CHECK(files->request.quantization == Quantization::nf4);
  CHECK(files->request.lora_rank == 8);
  CHECK(files->request.lora_targets == "all-linear");
  CHECK(files->learning_rate == 1e-5);
  CHECK(files->batch == 8);  // 2 x 1 x 4
  CHECK(files->request.preference == nullptr);
}

TEST_CASE("axolotl's rl reads as preference training") {
  const auto files = read_plan("orpo.yaml", "base_model: m\nmicro_batch_size: 1\nrl: orpo\n");
  REQUIRE(files);
  CHECK(files->request.preference == preference_named("orpo"));
  CHECK_FALSE(read_plan("grpo.yaml", "base_model: m\nmicro_batch_size: 1\nrl: grpo\n"));
}

TEST_CASE("Liger's fused loss is understood, and its other kernels are told of") {
  const auto all =
      read_plan("args.yaml", "per_device_train_batch_size: 4\nuse_liger_kernel: true\n");
  REQUIRE(all);
  CHECK(all->request.fused_loss);
  CHECK(notes(all->reports.front().not_honoured, "use_liger_kernel"));
  const auto loss_only = read_plan("args.yaml",
                                   "use_liger_kernel: true\nper_device_train_batch_size: 4\n"
                                   "liger_kernel_config:\n  rope: false\n  rms_norm: false\n"
                                   "  layer_norm: false\n  swiglu: false\n  geglu: false\n");
  REQUIRE(loss_only);
  CHECK(loss_only->request.fused_loss);
  CHECK(loss_only->reports.front().not_honoured.empty());
  const auto no_loss = read_plan("args.yaml",
                                 "use_liger_kernel: true\nper_device_train_batch_size: 4\n"
                                 "liger_kernel_config:\n  fused_linear_cross_entropy: false\n");
  REQUIRE(no_loss);
  CHECK_FALSE(no_loss->request.fused_loss);
}

TEST_CASE("the Trainer's own FSDP is FSDP1 through Accelerate") {
  const auto files = read_plan(
      "args.yaml", "per_device_train_batch_size: 2\nfsdp: full_shard auto_wrap offload\n");
  CHECK(plan_of(files) == "zero=3,mbs=2,offload=params+optimizer");
  REQUIRE(files);
  CHECK(files->request.framework == "accelerate-fsdp");
}

// Adapters without a word on the loss are TRL's, on its chunked loss; on whole logits, the
// Trainer's. TRL loads a whole model in fp32 unless told (trl @f2cd57710 model_config.py:89),
// the Trainer of transformers 5 what is stored; experts are those of transformers 5 either way.
TEST_CASE("arguments are TRL's or the Trainer's") {
  const auto framework = [](const std::string& more) {
    const auto files = read_plan("args.yaml", "per_device_train_batch_size: 2\n" + more);
    REQUIRE(files);
    return files->request.framework.value_or("");
  };
  CHECK(framework("use_peft: true\n") == "trl");
  CHECK(framework("use_peft: true\nloss_type: chunked_nll\n") == "trl");
  CHECK(framework("use_peft: true\nloss_type: nll\n") == "hf-trainer");
  CHECK(framework("") == "hf-trainer-fp32");
  CHECK(framework("dtype: float32\n") == "hf-trainer-fp32");
  CHECK(framework("dtype: bfloat16\n") == "hf-trainer");
  CHECK(framework("torch_dtype: auto\n") == "hf-trainer");
}

TEST_CASE("TRL's losses say what is learned from") {
  const auto dpo = read_plan("args.yaml", "per_device_train_batch_size: 4\nloss_type: [sigmoid]\n");
  REQUIRE(dpo);
  CHECK(dpo->request.preference == preference_named("dpo"));
  const auto reward =
      read_plan("args.yaml", "per_device_train_batch_size: 4\ncenter_rewards_coefficient: 0.01\n");
  REQUIRE(reward);
  CHECK(reward->request.preference == preference_named("reward"));
  const auto sft = read_plan("args.yaml", "per_device_train_batch_size: 4\nloss_type: nll\n");
  REQUIRE(sft);
  CHECK(sft->request.preference == nullptr);
}

TEST_CASE("the learning rate scales with the batch, and only with it") {
  // 3e-4 at 64 sequences is 3e-4 x 256 / 64 = 1.2e-3 at 256.
  CHECK(*learning_rate_for(3e-4, 64, 256).value == Approx(1.2e-3));
  CHECK(learning_rate_for(3e-4, 64, 256).notes.size() == 1);
  CHECK(*learning_rate_for(3e-4, 64, 64).value == 3e-4);
  CHECK(learning_rate_for(3e-4, 64, 64).notes.empty());
  CHECK(*learning_rate_for(3e-4, std::nullopt, 256).value == 3e-4);
  const LearningRate unknown = learning_rate_for(std::nullopt, 64, 32);
  CHECK_FALSE(unknown.value);
  REQUIRE(unknown.notes.size() == 1);
  CHECK(unknown.notes.front().find("by 0.5") != std::string::npos);
}

// Both programs pretrain unless told otherwise; of the two only Megatron-LM can be told, by
// --finetune. A flag says otherwise for either.
TEST_CASE("torchtitan's and Megatron's files mean pretraining") {
  const std::string toml =
      "[training]\nlocal_batch_size = 1\n[activation_checkpoint]\nmode='full'\n";
  const std::string args = "--num-layers 32\n--micro-batch-size 1\n";
  const auto methods = [](const Result<PlanFiles>& files) {
    REQUIRE(files);
    return files->request.methods;
  };
  CHECK(methods(read_plan("t.toml", toml)) == std::vector<Method>{Method::pretrain});
  CHECK(methods(read_plan("m.args", args)) == std::vector<Method>{Method::pretrain});
  CHECK(methods(read_plan("m.args", args + "--finetune\n")) == std::vector<Method>{Method::full});
  const Request full = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
  CHECK(methods(read_as(full, {{"t.toml", toml}})) == std::vector<Method>{Method::full});
  CHECK(methods(read_as(full, {{"m.args", args}})) == std::vector<Method>{Method::full});
  const auto told_of = read_plan("t.toml", toml);
  CHECK(told(told_of->reports.front()).find("method pretrain and sequence 2048") !=
        std::string::npos);
}

// The Trainer's file has no word for it: the heading says pretraining, unless an adapter was put in
// since.
TEST_CASE("the heading of a written file says whether whole models are pretrained") {
  const std::string heading =
      "# Written by shardwise launch: a/b, pretrain, 4096 tokens per sequence, 8 sequences\n";
  const std::string yaml = "per_device_train_batch_size: 1\n";
  CHECK(read_plan("sft.yaml", heading + yaml)->request.methods ==
        std::vector<Method>{Method::pretrain});
  CHECK(read_plan("sft.yaml", yaml)->request.methods.empty());
  CHECK(read_plan("sft.yaml", heading + yaml + "use_peft: true\n")->request.methods ==
        std::vector<Method>{Method::lora});
}

TEST_CASE("the allocator's settings of a run.sh that was written here hold") {
  const PlanText yaml{"sft.yaml", "per_device_train_batch_size: 1\n"};
  const std::string script =
      "#!/usr/bin/env bash\n# Written by shardwise launch: a/b, lora, 4096 tokens per sequence\n";
  const Request plain = request_for("llama-3.1-8b", "8xH100-SXM");
  constexpr auto written = PlanText::Role::run_script;
  const auto grown = read_as(
      plain,
      {yaml, {"run.sh", script + "export PYTORCH_ALLOC_CONF=expandable_segments:True\n", written}});
  CHECK(grown->request.expandable_segments);
  CHECK(grown->reports.size() == 2);
  const auto other = read_as(plain, {yaml, {"run.sh", script + "true\n", written}});
  CHECK_FALSE(other->request.expandable_segments);
  CHECK(other->reports.size() == 1);
}

TEST_CASE(
    "a file that names another model than was asked for is told so, and is read all the same") {
  struct Case {
    const char *file, *text, *key, *why;
  };
  const Case cases[] = {
      {"a.yaml", "base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: 1\n", "base_model",
       "names llama-3.2-1b; the forecast is of llama-3.1-8b, as asked"},
      {"a.yaml", "per_device_train_batch_size: 1\nmodel_name_or_path: gpt2\n", "model_name_or_path",
       "names gpt2; the forecast is of llama-3.1-8b, as asked"},
      {"t.toml", "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size=1\n",
       "model.flavor", "names llama3 70B; the forecast is of llama-3.1-8b, as asked"},
      {"m.sh", "python pretrain_gpt.py --micro-batch-size 1 --num-layers 80\n", "num-layers",
       "says 80, not 32; the forecast is of llama-3.1-8b, as asked"}};
  for (const Case& c : cases) {
    INFO(c.text);
    const auto files = read_plan(c.file, c.text);
    REQUIRE(files);
    const PlanFileReport& report = files->reports.front();
    REQUIRE(report.not_honoured.size() == 1);
    CHECK(report.not_honoured.front().key == c.key);
    CHECK(report.not_honoured.front().why == c.why);
    CHECK_FALSE(notes(report.ignored, c.key));
  }
  // Of the same shape, by the same name, and by one that nobody knows.
  for (const char* same : {"meta-llama/Llama-3.1-8B-Instruct", "llama-3-8b", "./my-model"}) {
    INFO(same);
    const auto files =
        read_plan("a.yaml", sentence("base_model: ", same, "\nmicro_batch_size: 1\n"));
    REQUIRE(files);
    CHECK(files->reports.front().not_honoured.empty());
    CHECK(notes(files->reports.front().ignored, "base_model"));
  }
}

}  // namespace shardwise
