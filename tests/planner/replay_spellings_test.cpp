// Records spell their settings as their publishers did: what the same thing is called elsewhere
// asks the same question.
#include "planner/validation/replay.hpp"
#include "tests/catch.hpp"
#include "tests/planner/asked_runs.hpp"

namespace shardwise {
namespace {

RunRecord full_tuning() { return record("swift-ex-train-padding-free-sft-0"); }

std::string recompute_of(const char* told) {
  RunRecord run = full_tuning();
  run.training.recompute = told;
  return asked(run).question.plan.recompute;
}

DType compute_of(const char* told) {
  RunRecord run = full_tuning();
  run.training.precision = told;
  run.hardware.gpu = "H100-SXM-80GB";
  return asked(run).question.workload.compute;
}

}  // namespace

TEST_CASE("recomputation under its other names") {
  CHECK(recompute_of("Full") == "full");
  CHECK(recompute_of("true") == "full");
  CHECK(recompute_of("gradient checkpointing (default)") == "full");
  CHECK(recompute_of("no gradient checkpointing") == "none");
  CHECK(recompute_of("false") == "none");
  CHECK(recompute_of("every-2-layers") == "one-in-2-layers");
  CHECK(recompute_of("every-4-layers") == "every-4-layers");
  RunRecord run = full_tuning();
  run.training.recompute = "as Tuesday";
  const Replay r = asked(run);
  CHECK(r.question.plan.recompute == "full");  // ms-swift's default
  CHECK(notes_hold(r, "recomputation \"as Tuesday\" is not understood: full"));
}

// Products are made in the narrowest format that is named.
TEST_CASE("number formats under their other names") {
  CHECK(compute_of("bfloat16") == DType::bf16);
  CHECK(compute_of("BF16") == DType::bf16);
  CHECK(compute_of("float16") == DType::fp16);
  CHECK(compute_of("bf16 with fp8 rowwise products") == DType::fp8);
}

TEST_CASE("methods under their other names") {
  RunRecord run = full_tuning();
  for (const char* told : {"full", "Full fine-tuning", "SFT", "full-parameter"}) {
    run.training.method = told;
    CHECK(asked(run).question.workload.method == Method::full);
  }
  run.training.method = "";
  CHECK(skip_reason(run) == "method not stated");
  run.training.lora_rank = 16;
  const Replay r = asked(run);
  CHECK(r.question.workload.method == Method::lora);
  CHECK(notes_hold(r, "method not stated: lora, by what else is"));
}

TEST_CASE("a card's name with blanks or underscores") {
  RunRecord run = full_tuning();
  const auto gpu_of = [&](const char* told) {
    run.hardware.gpu = told;
    return asked(run).question.cluster.groups.front().gpu.id;
  };
  CHECK(gpu_of("RTX 4090 24GB") == gpu_of("RTX-4090-24GB"));
  CHECK(gpu_of("A100_SXM_80GB") == gpu_of("A100-SXM-80GB"));
}

// The plan's own key goes before what its script is called.
TEST_CASE("what a script's name tells") {
  RunRecord run = full_tuning();
  run.plan.zero.reset();
  run.script = "examples/train/multi-gpu/fsdp2_lora/train.sh";
  CHECK(asked(run).question.plan.zero_stage == 3);
  run.plan.zero = 1;
  CHECK(asked(run).question.plan.zero_stage == 1);
  run.script = "examples/train/tuners/galore/train_galore.sh";
  CHECK(asked(run).question.workload.optimizer->name == "galore-adamw");
  run.script = "examples/train/tuners/galore/train_qgalore.sh";
  CHECK(asked(run).question.workload.optimizer->name == "galore-adamw8bit");
  run.training.optimizer = "adamw8bit";  // beside GaLore's, in GaLore's repository
  CHECK(asked(run).question.workload.optimizer->name == "adamw8bit");
}

TEST_CASE("a note that takes Liger's kernels back") {
  RunRecord run = full_tuning();
  run.training.liger_kernel = true;
  run.notes = "";
  const LossKind with = asked(run).question.workload.framework.loss;
  run.notes = "Not using use_liger_kernel: 4 * 54GB";
  const LossKind without = asked(run).question.workload.framework.loss;
  CHECK(with == LossKind::fused_linear);
  CHECK(without != LossKind::fused_linear);
}

// Heads that 16 heads of keys divide: 1,024 of 8 x 128 are not, 16 x 64 are.
TEST_CASE("heads that a table leaves out") {
  RunRecord run = record("llmfoundry-mpt-350m-a10040gb-x128-s2048-mb18-gb2304-bf16-fullshard");
  run.model.heads.reset();
  run.model.kv_heads = 16;
  run.model.hidden = 1024;
  CHECK(asked(run).question.workload.model.heads == 16);
}

}  // namespace shardwise
