// Published runs whose release, recipe or card decides what a framework keeps.
#include "planner/validation/replay.hpp"
#include "tests/catch.hpp"
#include "tests/planner/asked_runs.hpp"

namespace shardwise {

// NeMo 25.11 has Megatron Core 0.15, whose combined passes drop nothing before they are through.
TEST_CASE("which releases keep what a combined pass has read") {
  const Replay kept = asked("h200x64-qwen3-30b-pp1-mb2-gb2048-job3185");
  CHECK(kept.question.workload.overlaps_experts);
  CHECK(kept.question.workload.framework.experts.overlap_keeps_nodes);
  const Replay later = asked("bridge-26.06.01-pretrain-qwen3-235b-a22b-gb200x256-mxfp8-gbs8192");
  CHECK(later.question.workload.overlaps_experts);
  CHECK_FALSE(later.question.workload.framework.experts.overlap_keeps_nodes);
}

// As much as was counted of a router without an auxiliary loss.
TEST_CASE("a record that says its experts are unbalanced") {
  CHECK(asked("torchtitan-pr1993-dsv3-16b-b200-ep8-lbs8-oom").question.workload.expert_imbalance ==
        1.7);
  CHECK(asked("torchtitan-pr1993-dsv3-16b-b200-ep8-lbs8-oom").question.plan.expert == 8);
}

// One expert on each of eight ranks, of a router that nothing balances; weights that were trained
// before, on eight ranks and as their record says evenly; pretraining that says nothing, and that
// has many steps of expert biases behind it.
TEST_CASE("how much the tokens of a record's experts differ") {
  const auto spread = [](const char* id) { return asked(id).question.workload.expert_spread; };
  CHECK(spread("laer-mixtral-8x7b-e8k2-megatron-c4-aux0.0") == 0.84);
  CHECK(spread("gg-xtuner-deepep-q30-v1-64k-ep8-coupled") == trained_expert_spread);
  CHECK(spread("xorl-qwen3.6-35b-16xh100-u8dp2-mb8") == 0);
  CHECK(spread("bridge-26.04-pretrain-qwen3-30b-a3b-b300x8-mxfp8-gbs512") == 0);
  CHECK(spread("bridge-card-moonlight-h100x16-pretrain") == trained_expert_spread);
}

// Heads of 128 and 64 that turn, kept as 512 numbers of a token.
TEST_CASE("a record that tells latent attention of a model of its own") {
  const auto model = asked("mcore-ci-mlamoe-tp2pp2ep4-8xh100").question.workload.model;
  REQUIRE(model.mla);
  CHECK(model.mla->q_lora_rank == 1536);
  CHECK(model.mla->kv_lora_rank == 512);
  CHECK(model.head_dim == 128 + 64);
  CHECK(model.kv_heads == 32);
}

// Turing has no flash kernel that takes grouped heads; a publisher of runs on it expands them by
// hand, and Hopper has one.
TEST_CASE("where attention of grouped heads is written out") {
  const auto writes = [](const char* id) {
    return asked(id).question.workload.framework.attention.writes_grouped_out;
  };
  CHECK(writes("rtx8000-decompiler-qwen7b-lora-s512-b4-nockpt"));
  CHECK_FALSE(writes("fitcheck-t4-smollm2-135m-lora-sdpa-b1-s4096-r32-2026-09-15"));
  CHECK_FALSE(writes("ruozhiba-qwen3-4b-lora-b32-oom"));
}

// bf16 has no kernel of PyTorch's below compute capability 8.0; elsewhere a record asks for none.
TEST_CASE("where attention has no kernel at all") {
  const auto writes = [](const char* id) {
    return asked(id).question.workload.framework.attention.by_operators;
  };
  CHECK(writes("own88m-4090-bf16-math"));
  CHECK_FALSE(writes("own88m-4090-flash"));
  CHECK(writes("ff-mi100x2-pp2-qwen3-0.6b-b1-ga1-fp32"));
}

// A loop of one's own may run a class of transformers, of which its note tells.
TEST_CASE("what a note says of the model's class") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  CHECK(framework("gpt2xl-t4-1gpu-oom").layers.runs_transformers);
  CHECK_FALSE(framework("soliton-gpt2-124m-fp32-b1").layers.runs_transformers);
}

// FSDP1 steps flat parameters, and DistributedDataParallel cuts what is compiled; what Megatron-LM
// of DeepSpeedExamples makes of fp32 logits is there three times.
TEST_CASE("what rows say of units, graphs and logits") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  CHECK(framework("gg-lite-xl-mb4").sharding.parameters.steps_whole_units);
  CHECK(framework("minerva7b-2xh100-ddp-b8x8-compile").layers.cuts_compiled_graphs);
  CHECK(framework("nn-ds192-gpt2-1.5b-b32-oom").loss.returns_fp32_logits);
  CHECK(framework("dd-miles-k16k-lora-tp1-ck").loss.slice_tokens == 4096);
}

// PyTorch 2.4 makes the labels' gradients of a compiled loss a matrix of its own; a record that
// names no release has today's.
TEST_CASE("what a compiled loss makes of its labels") {
  const auto scatters = [](const char* id) {
    return asked(id).question.workload.framework.loss.scatters_labels;
  };
  CHECK(scatters("gg-nanofs-h100-mb16-compile"));
  CHECK_FALSE(scatters("gg-nanofs-5090x1-comm-accum8"));
}

// PyTorch's compiler pads products since 2.1; nanoGPT's rows of early 2023 had 2.0.
TEST_CASE("whose compiler pads no product") {
  const auto leaves = [](const char* id) {
    return asked(id).question.workload.framework.layers.leaves_odd_lengths;
  };
  CHECK(leaves("nanogpt-issue110-gpt2-a100x8"));
  CHECK_FALSE(leaves("nn-tii-qwen3-1.8b-2xa100"));
}

// What records say of models of one's own, in frameworks that run transformers and that do not.
TEST_CASE("a model of one's own as its record tells it") {
  const auto code = [](const char* id) { return asked(id).question.workload.model.code; };
  CHECK(code("dd-disttrans-pro4000-memstudy-single").heads_apart);
  CHECK(code("dd-disttrans-pro4000-memstudy-single").stated);
  CHECK(code("gg-lite-xl-mb1").mlp == MlpFunction::written_out);
  CHECK(code("rasbt-gpt2-bf16") ==
        ModelCode{.mlp = MlpFunction::written_out, .layer_norm_operators = true, .stated = true});
  CHECK_FALSE(code("rasbt-gpt2-classes").stated);
  CHECK(code("oci-tinygpt236m-zero3-4xa10-2k").half_softmax);
  CHECK(code("gg-opt350m-l40s-b1-s1024-eager").clamps_scores);  // OPT until transformers 4.49
  CHECK(code("nn-dse551-opt1.3b-a100-40-oom").clamps_scores);
  CHECK_FALSE(
      asked("ff-mi100x2-pp2-qwen3-0.6b-b8-ga1-ckpt-bf16").question.workload.framework.loss.upcasts);
}

// A recipe of Megatron-Bridge as it comes keeps fp32 gradients; 24 Mamba-2, 4 attention and 28 MLP
// layers are not 56 blocks of 2.95 billion parameters.
TEST_CASE("a hybrid by a recipe of Megatron-Bridge") {
  const Replay run = asked("baize-2b-p91-tp1-mb1-4096");
  CHECK(run.question.workload.framework.id == "megatron-bridge-recipes");
  CHECK(run.question.workload.model.mamba);
  CHECK(static_cast<double>(parameter_count(run.question.workload.model).total) ==
        Approx(2.22e9).epsilon(0.005));
}

// Megatron-LM casts the whole model; "fp32 weights" of its records are the masters.
TEST_CASE("fp32 weights beside a model in 16 bits are its masters") {
  const Replay run = asked("mtuts-gpt2xl-dp1-gbs15");
  CHECK(run.question.workload.framework.formats.pretrain_weights == WeightRecipe::half_with_master);
  CHECK_FALSE(run.question.workload.framework.formats.autocast);
  const Replay cast = asked("modalities-leo-2.7b-8gpu-mb1-s4096-hsdp");  // FSDP1
  CHECK(cast.question.workload.framework.formats.autocast);
}

// DeepSpeed's engine around an own model with overlap_comm: two buckets of 50 million elements in
// 16 bits, as its configuration says.
TEST_CASE("the buckets of a record's configuration") {
  const Framework f = asked("coms6998-1b-zero2-2xa6000").question.workload.framework;
  CHECK(f.gradients.reduce_buffers == 2);
  CHECK(f.gradient_bucket_at(2) == Bytes(50'000'000 * 2));
}

// From DeepSpeed 0.17.5 to 0.18.4 the stream that computes waits for each bucket of stages 1 and 2,
// whatever overlap_comm says; those of stage 3 overlap, and so do all of 0.19.
TEST_CASE("the releases of DeepSpeed that overlap no bucket") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  CHECK_FALSE(framework("coms6998-1b-zero2-2xa6000").gradients.overlap_reduce);
  CHECK(framework("coms6998-1b-zero3-2xa6000").gradients.overlap_reduce_at_stage_3);
  CHECK(framework("minitrainbench-small-zero2-ckpt").gradients.overlap_reduce);
}

// transformers 5.15, told fp32 weights under autocast: gradients are as wide, whatever its default.
TEST_CASE("weights that a record states are not as the framework loads them") {
  const Framework f = asked("cpt-preflight-qwen3-1.7b-2xa100-mb1").question.workload.framework;
  CHECK(f.id == "hf-trainer");
  CHECK(f.formats.finetune_weights == WeightRecipe::fp32_with_half_compute);
  CHECK(f.gradients.dtype == DType::fp32);
}

// Accelerate of 2024 around transformers of then: reentrant checkpoints around FSDP's units, which
// are gathered once more; those of FSDP's own plugin lie in the units and are not.
TEST_CASE("where checkpoints lie around FSDP's units") {
  const Framework around =
      asked("benchdc-llama3-70b-fsdp-b1-s512-32xa100").question.workload.framework;
  CHECK(around.id == "accelerate-fsdp-2024");
  CHECK(around.sharding.checkpoints_gather_again);
  CHECK_FALSE(around.recompute.stops_early);
  const Framework inside = asked("oumi-pr213-llama2b-a100x4-hybrid").question.workload.framework;
  CHECK(inside.id == "accelerate-fsdp-2024");
  CHECK_FALSE(inside.sharding.checkpoints_gather_again);
  CHECK(inside.recompute.stops_early);
}

// The same program compiled by torch.compile, which leaves DeepSpeed's hooks around modules (456 us
// of each, host_us_per_sharded_module of that row), and by DeepCompile, which removes them.
TEST_CASE("DeepCompile has no hooks of sharding") {
  const Framework hooked =
      asked("lsaie-llama8b-zero3-compile-4xgh200-2k").question.workload.framework;
  CHECK(hooked.host.us_per_sharded_module == 456);
  CHECK(hooked.host.us_per_reduction > 0);
  const Framework f =
      asked("lsaie-llama8b-zero3-deepcompile-4xgh200-2k").question.workload.framework;
  CHECK(f.id == hooked.id);
  CHECK(f.layers.kernels == KernelStyle::compiled);
  CHECK(f.host.us_per_sharded_module == 0);
  CHECK(f.host.us_per_reduction == 0);
  for (const char* run : {"benchdc-llama3-70b-deepcompile-b1-s1024-32xa100",
                          "dsverify-qwen3-14b-deepcompile-acoff-2k-8xh100"})
    CHECK(asked(run).question.workload.framework.host.us_per_sharded_module == 0);
}

// transformers 5 loads bf16 weights; a record that says so has the same gradients, which DDP
// reduces as they are. torchtitan reduces in fp32 whatever the weights are, and PEFT's adapters
// are fp32.
TEST_CASE("weights in 16 bits are reduced in 16 bits by DDP") {
  const Framework f = asked("scicom-qwen3-0.6b-ddp4-h200").question.workload.framework;
  CHECK(f.id == "hf-trainer-liger-classes");
  CHECK(f.formats.finetune_weights == WeightRecipe::pure_half);
  CHECK(f.gradients.dtype == DType::bf16);
  CHECK(f.gradients.reduce_dtype == DType::bf16);
  const Framework sharded = asked("b200log-qwen3-14b-bf16-fsdp-b4").question.workload.framework;
  CHECK(sharded.gradients.dtype == DType::bf16);
  CHECK(sharded.gradients.reduce_dtype == DType::fp32);
  RunRecord adapted = record("scicom-qwen3-0.6b-ddp4-h200");
  adapted.training.method = "lora";
  adapted.training.lora_rank = 16;
  CHECK(std::get<Replay>(ask(adapted)).question.workload.framework.gradients.reduce_dtype ==
        DType::fp32);
}

}  // namespace shardwise
