// Published runs that leave something out, or state what cannot be asked as it stands: what stands
// in its place, or why they are skipped.
#include <string>

#include "planner/validation/replay.hpp"
#include "tests/catch.hpp"
#include "tests/planner/asked_runs.hpp"

namespace shardwise {

TEST_CASE("A batch that is no whole number of rounds is replayed nearest, and scaled back") {
  RunRecord run = record("ultrascale-3.57b-n1-dp4-tp1-pp2-z1-mbs2-ga32");
  run.training.global_batch = 260;  // 32.5 rounds of 8: 33, so 264
  const Replay r = asked(run);
  CHECK(r.question.plan.microbatches == 33);
  CHECK(r.step_scale == Approx(260.0 / 264.0));
  CHECK(notes_hold(r, "260"));
}

TEST_CASE("What a record does not tell is why it is skipped") {
  const RunRecord good = record("ultrascale-3.57b-n1-dp4-tp1-pp2-z1-mbs2-ga32");
  RunRecord run = good;
  run.training.sequence.reset();
  CHECK(skip_reason(run) == "no sequence length");
  run = good;
  run.training.global_batch.reset();
  run.training.micro_batch.reset();
  CHECK(skip_reason(run) == "no batch size");
  run = good;
  run.model.layers.reset();
  run.model.name = "a Llama without a size";
  CHECK(skip_reason(run) == "model dimensions not stated");
  run = good;
  run.plan.tp.reset();
  run.plan.pp.reset();
  CHECK(skip_reason(run) == "how the model is split is not stated");
  run = good;
  run.plan.dp.reset();
  run.hardware.gpus.reset();
  CHECK(skip_reason(run) == "number of GPUs not stated");
  run = good;
  run.plan.dp.reset();
  run.plan.tp = 3;  // 8 GPUs over 3 x 2
  CHECK(skip_reason(run) == "the plan does not divide the GPUs");
  run = good;
  run.training.method = "distillation";
  CHECK(skip_reason(run) == "method is not one of ours");
  run = good;
  run.malformed = "why";
  CHECK(skip_reason(run) == "malformed record");
  run = good;
  run.hardware.gpu = "Abacus 9000";
  CHECK(skip_reason(run) == "GPU not in the catalog");
}

TEST_CASE("The framework fills in the batch and the sequence that a record leaves out") {
  RunRecord run = record("swift-tuners-109-lora-p");
  CHECK_FALSE(run.training.micro_batch);
  CHECK_FALSE(run.training.sequence);
  const Replay r = asked(run);
  CHECK(r.question.plan.microbatch == 1);       // ms-swift: batch_size 1,
  CHECK(r.question.workload.sequence == 2048);  // max_length 2048
  CHECK(notes_hold(r, "sequence length not stated: 2048"));
}

TEST_CASE("Without a GPU there is memory and no time") {
  RunRecord run = record("ultrascale-3.57b-n1-dp4-tp1-pp2-z1-mbs2-ga32");
  run.hardware.gpu.reset();
  CHECK_FALSE(asked(run).gpu_known);
  run.hardware.gpu = "not stated (80GB-class A100/H100 in ms-swift docs)";
  CHECK(asked(run).gpu_known);
  CHECK(asked(run).question.cluster.groups.front().gpu.id == "a100-sxm4-80gb");
}

// Llama-3.2-3B, q and v: 28 x ((3,072 + 3,072) + (3,072 + 1,024)) = 286,720 per rank; 9,175,040
// parameters are rank 32.
TEST_CASE("Another low-rank method stands as LoRA with as many parameters") {
  RunRecord run = record("peft-metamath-adamss-llama-3.2-3b-rank32");
  run.training.trainable_params.reset();
  CHECK(notes_hold(asked(run), "its parameters are not stated"));
  run.training.trainable_params = 9175040;
  const Replay r = asked(run);
  CHECK(r.question.workload.method == Method::lora);
  CHECK(r.question.workload.adapter.rank == 32);
}

TEST_CASE("A card without a number format computes in the next one") {
  RunRecord run = record("qwen-1.8b-lora-n1x1-seq256");
  run.hardware.gpu = "T4-16GB";
  run.training.precision.reset();
  CHECK(notes_hold(asked(run), "has no bf16: computed in fp16"));
  run.training.precision = "bf16";  // which was emulated
  CHECK(asked(run).question.workload.compute == DType::bf16);
}

}  // namespace shardwise
