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
  CHECK(recompute_of("selective_op") == "selective-op");
  CHECK(recompute_of("selective (op)") == "selective-op");
  CHECK(recompute_of("core_attn") == "selective");
  CHECK(recompute_of("every-2-layers") == "one-in-2-layers");
  CHECK(recompute_of("every-4-layers") == "every-4-layers");
  RunRecord run = full_tuning();
  run.training.recompute = "as Tuesday";
  const Replay r = asked(run);
  CHECK(r.question.plan.recompute == "full");  // ms-swift's default
  CHECK(notes_hold(r, "recomputation \"as Tuesday\" is not understood: full"));
}

// ms-swift checkpoints by default, so a denial that is missed would say "full".
TEST_CASE("recomputation that is denied, and words of it that disagree") {
  for (const char* told :
       {"gradient checkpointing disabled", "gradient_checkpointing=False",
        "activation checkpointing off", "gradient checkpointing not used",
        "gradient checkpointing: no", "not using gradient checkpointing",
        "gradient checkpointing (disabled)", "none (no gradient checkpointing)"}) {
    INFO(told);
    CHECK(recompute_of(told) == "none");
  }
  CHECK(recompute_of("gradient checkpointing on (default)") == "full");
  CHECK(recompute_of("selective-op, as published") == "selective-op");  // holds "selective" too
  // "no" is of the offloading, "false" of another switch: which is meant is not told.
  for (const char* told :
       {"full, no offload", "gradient checkpointing; use_reentrant false", "selective or full"}) {
    RunRecord run = full_tuning();
    run.training.recompute = told;
    CHECK(notes_hold(asked(run),
                     "recomputation \"" + std::string(told) + "\" is not understood: full"));
  }
}

// Products are made in the narrowest format that is named.
TEST_CASE("number formats under their other names") {
  CHECK(compute_of("bfloat16") == DType::bf16);
  CHECK(compute_of("BF16") == DType::bf16);
  CHECK(compute_of("float16") == DType::fp16);
  CHECK(compute_of("bf16 with fp8 rowwise products") == DType::fp8);
}

TEST_CASE("formats of gradients under their other names") {
  RunRecord run = full_tuning();
  for (const char* told : {"fp32", "FP32", "float32"}) {
    INFO(told);
    run.training.grad_dtype = told;
    CHECK(asked(run).question.workload.framework.gradients.dtype == DType::fp32);
  }
  run.training.grad_dtype = "bfloat16";
  CHECK(asked(run).question.workload.framework.gradients.dtype == DType::bf16);
}

// A format that is denied is not computed in, and a text that is no row's own is told of.
TEST_CASE("number formats that are denied") {
  for (const char* told : {"bf16, no fp8", "bf16 without fp8", "bf16 not fp8", "bf16 (fp8 off)"}) {
    INFO(told);
    CHECK(compute_of(told) == DType::bf16);
  }
  RunRecord run = full_tuning();
  run.hardware.gpu = "H100-SXM-80GB";
  run.training.precision = "bf16, no fp8";
  CHECK(notes_hold(asked(run), "number format \"bf16, no fp8\" is read as bf16"));
  run.training.precision = "no fp8";
  CHECK(notes_hold(asked(run), "number format \"no fp8\" is not understood: "));
  run.training.precision = "BF16";
  CHECK_FALSE(notes_hold(asked(run), "is read as"));
}

TEST_CASE("methods under their other names") {
  RunRecord run = full_tuning();
  for (const char* told : {"full", "Full fine-tuning", "SFT", "full-parameter"}) {
    run.training.method = told;
    CHECK(asked(run).question.workload.method == Method::full);
  }
  run.training.method = "";
  CHECK(skip_reason(run) == "method not stated");
  run.training.framework = "nanotron";  // has no adapters
  CHECK(asked(run).question.workload.method == Method::pretrain);
  run.training.framework = "ms-swift";
  run.training.lora_rank = 16;
  const Replay r = asked(run);
  CHECK(r.question.workload.method == Method::lora);
  CHECK(notes_hold(r, "method not stated: lora, by what else is"));
}

// SFT names what is learned from. A rank or targets say what is trained, where they are some.
TEST_CASE("a rank or targets tell LoRA, and what stands for none does not") {
  RunRecord run = full_tuning();
  run.training.method = "SFT";
  run.training.lora_targets = "none";
  CHECK(asked(run).question.workload.method == Method::full);
  run.training.lora_targets = "all-linear";
  const Replay r = asked(run);
  CHECK(r.question.workload.method == Method::lora);
  CHECK(notes_hold(r, "method \"SFT\" with a rank or targets of LoRA: lora"));
  run.training.method = "full";  // says what is trained itself
  CHECK(asked(run).question.workload.method == Method::full);
  run.training.method = "";
  for (const char* nothing : {"false", "none", ""}) {
    run.training.lora_targets = nothing;
    CHECK(skip_reason(run) == "method not stated");
  }
}

TEST_CASE("methods with other hyphens, and fine-tuning whose adapters are told") {
  RunRecord run = full_tuning();
  for (const char* told : {"full_fine_tuning", "Full-Finetune", "full ft", "fine-tuning"}) {
    INFO(told);
    run.training.method = told;
    CHECK(asked(run).question.workload.method == Method::full);
  }
  for (const char* told : {"QLoRA (4-bit)", "qlora_nf4", "4-bit LoRA"}) {
    INFO(told);
    run.training.method = told;
    CHECK(asked(run).question.workload.method == Method::qlora);
  }
  // What is only partly trained is none of these.
  run.training.method = "full (all but first 8 layers frozen)";
  CHECK(skip_reason(run) == "method is not one of ours");
  run.training.method = "fine-tuning";
  run.training.lora_rank = 8;
  CHECK(asked(run).question.workload.method == Method::lora);
  run.training.quantize = "4-bit";
  const Replay r = asked(run);
  CHECK(r.question.workload.method == Method::qlora);
  CHECK(r.question.workload.adapter.base == r.question.workload.framework.quantized.kind);
}

TEST_CASE("optimizers with other hyphens") {
  RunRecord run = full_tuning();
  const auto optimizer_of = [&](const char* told) {
    run.training.optimizer = told;
    return std::string(asked(run).question.workload.optimizer->name);
  };
  CHECK(optimizer_of("paged-adamw-8bit") == "paged-adamw8bit");
  CHECK(optimizer_of("Paged AdamW 8-bit") == "paged-adamw8bit");
  CHECK(optimizer_of("8-bit AdamW (bitsandbytes)") == "adamw8bit");
  CHECK(optimizer_of("adamw 8 bit") == "adamw8bit");
  CHECK(optimizer_of("torch.optim.AdamW") == "adamw");
}

TEST_CASE("offload that is told in a word") {
  RunRecord run = full_tuning();
  run.hardware.gpus = 8;
  run.plan.dp = 8;
  const auto offload_of = [&](const char* told, int stage) {
    run.plan.offload = told;
    run.plan.zero = stage;
    return asked(run).question.plan.offload;
  };
  // DeepSpeed offloads parameters at stage 3 alone, so "cpu" is less at the others.
  CHECK(offload_of("cpu", 3) == Offload{true, true, false});
  CHECK(offload_of("cpu", 2) == Offload{true, false, false});
  CHECK(offload_of("true", 3) == Offload{true, true, false});
  CHECK(offload_of("cpu optimizer", 3) == Offload{true, false, false});
  CHECK(offload_of("no cpu", 3) == Offload{});
}

TEST_CASE("a machine's name or a count tells the card") {
  RunRecord run = full_tuning();
  const auto gpu_of = [&](const char* told) {
    run.hardware.gpu = told;
    return asked(run).question.cluster.groups.front().gpu.id;
  };
  CHECK(gpu_of("8xH100") == "h100-sxm5-80gb");
  CHECK(gpu_of("8 x RTX 4090") == "rtx-4090");
  CHECK(gpu_of("NVIDIA H100-SXM5-64GB") == "h100-sxm5-64gb");
  CHECK(gpu_of("p4de.24xlarge") == "a100-sxm4-80gb");
  CHECK(gpu_of("a2-ultragpu-8g") == "a100-sxm4-80gb");
}

// JAX's compiled programs have no row: torchtitan's is told to resemble MaxText most.
TEST_CASE("a framework without a row behaves like the one that resembles it most") {
  RunRecord run = full_tuning();
  run.plan.tp = run.plan.pp = 1;
  run.training.framework = "MaxText (JAX)";
  const Replay r = asked(run);
  CHECK(notes_hold(r, "framework \"MaxText (JAX)\": behaves like torchtitan"));
  run.training.framework = "own loop of nobody";
  CHECK_FALSE(notes_hold(asked(run), "behaves like torchtitan"));
}

// torchtitan may split layers too, but weights that are sharded over all 8 tell that it does not.
TEST_CASE("a plan that only shards splits no layer") {
  RunRecord run = full_tuning();
  run.training.framework = "torchtitan";
  run.hardware.gpus = 8;
  run.plan = {};
  run.plan.zero = 3;
  const ParallelPlan plan = asked(run).question.plan;
  CHECK(plan.data == 8);
  CHECK(plan.tensor * plan.pipeline == 1);
  run.plan.dp = 4;  // the other two of eight are split somehow
  CHECK(skip_reason(run) == "how the model is split is not stated");
}

TEST_CASE("a card's name with blanks or underscores") {
  RunRecord run = full_tuning();
  const auto gpu_of = [&](const char* told) {
    run.hardware.gpu = told;
    return asked(run).question.cluster.groups.front().gpu.id;
  };
  CHECK(gpu_of("RTX 4090 24GB") == gpu_of("RTX-4090-24GB"));
  CHECK(gpu_of("A100_SXM_80GB") == gpu_of("A100-SXM-80GB"));
  // A card's own name is that card, though a shorter row ("h100") fits the same text.
  CHECK(gpu_of("H100-SXM5-64GB") == "h100-sxm5-64gb");
  CHECK(gpu_of("H100-SXM5-96GB") == "h100-sxm5-96gb");
  CHECK(gpu_of("H100 (95 GiB: 30.99GiB=32.62%)") == "h100-sxm5-96gb-hbm2e");
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
  const LossKind with = asked(run).question.workload.framework.loss.kind;
  run.notes = "Not using use_liger_kernel: 4 * 54GB";
  const LossKind without = asked(run).question.workload.framework.loss.kind;
  CHECK(with == LossKind::fused_linear);
  CHECK(without != LossKind::fused_linear);
}

TEST_CASE("a loss that a record names beside Liger's kernels") {
  RunRecord run = full_tuning();
  run.training.liger_kernel = true;
  run.training.plugins = {"Liger cross-entropy"};
  CHECK(asked(run).question.workload.framework.loss.kind == LossKind::fused_fp32);
  run.training.plugins = {"cutcrossentropy"};
  CHECK(asked(run).question.workload.framework.loss.kind == LossKind::cut);
}

// PEFT's row has 16-bit weights; where they are fp32 under autocast, so are their gradients, which
// DDP sends. picotron adds up gradients of 16-bit weights in fp32 whatever these are.
TEST_CASE("gradients as wide as the weights that a record names") {
  RunRecord run = record("dd-smallgpt-5090-b8-a1");
  const Framework loop = asked(run).question.workload.framework;
  CHECK(loop.gradients.dtype == DType::fp32);
  CHECK(loop.gradients.reduce_dtype == DType::fp32);
  run.training.precision = "bf16-true";
  CHECK(asked(run).question.workload.framework.gradients.reduce_dtype == DType::bf16);
  run.training.framework = "picotron";
  CHECK(asked(run).question.workload.framework.gradients.reduce_dtype == DType::fp32);
}

// bf16 autocast around a base whose checkpoint is fp16: a format that is said of weights is theirs,
// and what products are made in is the other.
TEST_CASE("a frozen base of another format than autocast computes in") {
  RunRecord run = record("oo-katheryne-llama2-7b-l40s");
  const Workload w = asked(run).question.workload;
  CHECK(w.compute == DType::bf16);
  CHECK(w.framework.formats.frozen_dtype == DType::fp16);
  CHECK(w.framework.formats.autocast);
  run.training.precision = "bf16";
  CHECK(asked(run).question.workload.framework.formats.frozen_dtype == DType::bf16);
}

// Halo patches classes before it builds a model, TRL's own trainer a model that is there.
TEST_CASE("a toolkit over TRL that its note names") {
  RunRecord run = record("b300-qwen3-4b-s2048-b16-nogc");
  const Framework halo = asked(run).question.workload.framework;
  CHECK(halo.id == "halo");
  CHECK(halo.layers.kernels == KernelStyle::fused);
  CHECK_FALSE(halo.layers.patches_built_model);
  run.training.framework_note = "October 2026, transformers 5";
  CHECK(asked(run).question.workload.framework.layers.patches_built_model);
}

// Heads that 16 heads of keys divide: 1,024 of 8 x 128 are not, 16 x 64 are.
TEST_CASE("heads that a table leaves out") {
  RunRecord run = record("llmfoundry-mpt-350m-a10040gb-x128-s2048-mb18-gb2304-bf16-fullshard");
  run.model.heads.reset();
  run.model.kv_heads = 16;
  run.model.hidden = 1024;
  CHECK(asked(run).question.workload.model.heads == 16);
}

// A g4dn.12xlarge has a port of 50 Gbit/s, 6.25 GB/s. Bits are no bytes, eight ports of 50 GB/s are
// a row's, and 500 GB/s behind "infiniband; pcie-nic:" are not the network's.
TEST_CASE("bytes that a node sends in a second over its network") {
  RunRecord run = record("minicolossal-t4x8-3d-medium-b8");
  const auto node = [&run](const char* told) {
    run.hardware.inter_node = told;
    return asked(run).question.cluster.groups.front().node;
  };
  CHECK(node("AWS g4dn.12xlarge, TCP").nic_bandwidth.value == Approx(6.25e9));
  CHECK(node("AWS g4dn.12xlarge, TCP, 0.6 GB/s").nic_bandwidth.value == Approx(0.6e9));
  CHECK(node("AWS g4dn.12xlarge, TCP, 0.6 GB/s").network == "aws-ena");
  CHECK(node("AWS g4dn.12xlarge, TCP, 0.6 Gb/s").nic_bandwidth.value == Approx(6.25e9));
  CHECK(node("AWS EFA, about 12.5GB/s").nic_count == 1);
  CHECK(node("InfiniBand 8x50 GB/s").nic_count == 8);
  CHECK(node("InfiniBand; PCIe-NIC: 500 GB/s").nic_bandwidth.value == Approx(50e9));
}

}  // namespace shardwise
