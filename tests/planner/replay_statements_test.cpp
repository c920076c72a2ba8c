// What records say in prose, or do not say at all.
#include <string>

#include "catalog/find.hpp"
#include "tests/catch.hpp"
#include "tests/planner/asked_runs.hpp"

namespace shardwise {

// Two stages, no batch: two microbatches fill them, and how long a step takes hangs on the rest.
TEST_CASE("A pipeline whose batch is not told has no step time") {
  RunRecord run = record("ultrascale-3.57b-n1-dp4-tp1-pp2-z1-mbs2-ga32");
  CHECK(std::get<Replay>(ask(run)).batch_told);
  run.training.global_batch.reset();
  run.training.grad_accum.reset();
  const Replay r = std::get<Replay>(ask(run));
  CHECK_FALSE(r.batch_told);
  CHECK(r.question.plan.microbatches == 2);
  CHECK(notes_hold(r, "number of microbatches not stated: no step time"));
}

// "fp8-rowwise scaling", "fp8-tensorwise scaling"; "use_fused_rms_norm=True" in a strategy.
TEST_CASE("What a record says of scales and of norms") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  const std::string run = "torchtitan-asynctp-llama3.1-70b-h100x256-fp8-";
  CHECK(framework((run + "rowwise-vanilla").c_str()).narrow.scales_rows);
  const Framework one_scale = framework((run + "tensorwise-vanilla").c_str());
  CHECK_FALSE(one_scale.narrow.scales_rows);
  CHECK(one_scale.narrow.gathers_sequence);
  CHECK(one_scale.narrow.weight_cast == WeightCast::each_pass);
  const std::string ao = "torchao-e2e-llama3-8b-h100x8-tensorwise-with-float8-all-gather";
  CHECK(framework(ao.c_str()).narrow.weight_cast == WeightCast::gathered);
  CHECK(framework("flagperf-llama-7b-paddle-a100-80g-x8-tp2pp1sh1sp4").layers.fused_norms);
  CHECK_FALSE(framework("flagperf-llama-7b-paddle-a100-40g-x8-tp2pp1sh1sp4").layers.fused_norms);
}

// "--model.attn flash_attention_3" on Hopper, for which cuDNN's kernel stands; "attention: flash
// (FA2)" in Megatron-LM, which takes cuDNN's by itself; "defer_fsdp_grad_sync: False",
// "sync_each_batch"; a script that sets no PYTORCH_CUDA_ALLOC_CONF, where those of later months do.
TEST_CASE("What a record says of attention, of its allocator and of each microbatch's gradients") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  CHECK(framework("primerl-sft-0.6b-1xh100-8k-fa3").attention.kernel == AttentionKernel::cudnn);
  CHECK(framework("swift-ex-fa3-qwen2.5-7b-4xh20-fa3").attention.kernel == AttentionKernel::cudnn);
  CHECK(framework("swift-ex-fa3-qwen2.5-7b-4xh20-fa2").attention.kernel == AttentionKernel::flash);
  CHECK(framework("gipfel-zx-32b-2n-mbs2-fa2").attention.kernel == AttentionKernel::flash2);
  CHECK(framework("scimt-glm4.5-air-full-8192-8xh200-ga2").gradients.reduces_every_microbatch);
  CHECK_FALSE(
      framework("scimt-gemma3-27b-full-8192-8xh200-mb1").gradients.reduces_every_microbatch);
  CHECK_FALSE(framework("swift-ex-megatron-long-text-0").process.expandable_segments);
  CHECK(framework("cc-minitrain-2xt4-tp2-1200m").parallel.whole_tables);
  CHECK(framework("forgather-peak-fused").gradients.life == GradientLife::in_backward);
  const Workload low = asked("torchtune-2024-04-llama2-7b-full-4090x1").question.workload;
  CHECK(low.framework.gradients.life == GradientLife::in_backward);  // 7B_full_low_memory
  CHECK(low.optimizer->name == "paged-adamw");
  CHECK_FALSE(framework("nano30b-8g-upstream-bench").loss.upcasts);  // "fp32_upcast false"
}

// The timed work that a page lists has no clipping, and others say so in so many words; rows clip.
TEST_CASE("A run that does not clip is replayed so") {
  const auto clips = [](const char* id) {
    return asked(id).question.workload.framework.update.clips_gradients;
  };
  CHECK_FALSE(clips("dd-te-gb300-bf16-b8"));
  CHECK(clips("transformerbench-8b-llama-gb300"));  // "clipping at 1.0", by the same row
  CHECK_FALSE(clips("dd-a30-gpt125m-ddp2-fp16"));
}

// Megatron-LM looks for NaN in gradients unless told not to, NVIDIA's performance scripts do not
// since mid-2025; where an fp16 loss is scaled NaN is no error.
TEST_CASE("A run that looks for NaN in its gradients is replayed so") {
  const auto checks = [](const char* id) {
    return asked(id).question.workload.framework.update.checks_gradients;
  };
  CHECK(checks("megatron-core-h100-weak-7.1b-g96"));
  CHECK_FALSE(checks("cc-gptoss20b-mi355x8-mbs4-c3"));       // "check_for_nan off"
  CHECK_FALSE(checks("dgxc-25.02-llama31-8b-h100x8-bf16"));  // NeMo 24.12
  CHECK(checks("dgxc-25.05-llama31-405b-gb200x128-bf16"));   // NeMo 25.04
  const Framework& row = **find_framework(loaded_catalog(), "megatron-lm");
  CHECK(resolved_for(row, Method::pretrain, DType::bf16).update.checks_gradients);
  CHECK_FALSE(resolved_for(row, Method::pretrain, DType::fp16).update.checks_gradients);
}

// prime-rl's benchmark asks for compile in both; its adapters end the graph inside a checkpoint.
TEST_CASE("Layers whose adapters break the compiler's graph are replayed eager") {
  const auto kernels = [](const char* id) {
    return asked(id).question.workload.framework.layers.kernels;
  };
  CHECK(kernels("primerl-full-30b-a3b-8xh200-64k-fa3") == KernelStyle::compiled);
  CHECK(kernels("primerl-lora-30b-a3b-8xh200-64k-fa3") == KernelStyle::eager);
  CHECK(kernels("primerl-lora-4b-1xh100-16k-fa3") == KernelStyle::eager);
}

// Until April 2026 torchtitan computed in bf16 under fully_shard, or on one device under autocast;
// weights that are bf16 themselves need neither.
TEST_CASE("What only FSDP computes in 16 bits is fp32 where nothing shards") {
  const auto format = [](const RunRecord& run) { return asked(run).question.workload.compute; };
  CHECK(format(record("ff-ccl-titan-llama-8b-a100x16-tp4-pp2-dp2-b4")) == DType::bf16);
  RunRecord run = record("ff-ccl-titan-llama-8b-a100x16-tp4-pp4-dp1-b4");
  run.training.precision = "bf16-mixed (fp32 weights)";  // what its configuration says
  CHECK(format(run) == DType::fp32);
  CHECK(notes_hold(asked(run),
                   "lowers precision by FSDP, which this plan has none of: trained in fp32"));
  run.training.framework_note = "torchtitan of May 2026";
  CHECK(format(run) == DType::bf16);
  run.training.framework_note.reset();
  run.training.precision = "bf16-true";
  CHECK(format(run) == DType::bf16);
}

// fms-fsdp's benchmark script compiles; half of its published table does not.
TEST_CASE("A record that was not compiled is replayed eager") {
  const auto kernels = [](const char* id) {
    return asked(id).question.workload.framework.layers.kernels;
  };
  CHECK(kernels("fms-fsdp-2024-05-7b-h100x96-hsdp-bs2-compile") == KernelStyle::compiled);
  CHECK(kernels("fms-fsdp-2024-03-7b-h100x96-hsdp-bs2") == KernelStyle::eager);
}

// "compile.components is the model alone" of a framework that compiles its loss with the model.
TEST_CASE("A loss that was not compiled is replayed eager beside compiled kernels") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  CHECK(framework("titan-b200-gpt-oss-20b-bs20").loss.compiled);
  const Framework eager = framework("b200log-qwen3-14b-bf16-compile-eagerloss-b5-oom");
  CHECK(eager.layers.kernels == KernelStyle::compiled);
  CHECK_FALSE(eager.loss.compiled);
  CHECK_FALSE(eager.loss.compiled_alone);
}

// A block of MiniGPT and its three linears of over a million elements.
TEST_CASE("A record says what FSDP wraps inside a block") {
  const auto units = [](const char* id) {
    return asked(id).question.workload.framework.sharding.parameters.units_per_block;
  };
  CHECK(units("dd-minillm-4090-fsdp") == 4);
  CHECK(units("dd-4090x2-qwen0.6b-fsdp") == 1);
}

// A loop over get_gpt_layer_local_spec has TransformerConfig's defaults, not the script's.
TEST_CASE("Megatron Core's local layers in a loop of one's own fuse nothing") {
  const Framework f = asked("coms6998-1b-single-1xa6000").question.workload.framework;
  CHECK(f.id == "megatron-core-defaults");
  CHECK(f.layers.adds_bias_apart);
  CHECK(f.attention.half_softmax);
  CHECK_FALSE(f.gradients.fusion);
}

// Liger before 0.8.5 leaves the norms of Qwen3's heads where it patches a model that is built, as
// transformers' Trainer has it do.
TEST_CASE("Liger leaves the norms of heads to the model's own code") {
  RunRecord run = record("b300-qwen3-4b-s2048-b16-nogc");
  CHECK_FALSE(
      asked(run).question.workload.framework.layers.patches_built_model);  // Halo: the classes
  run.training.framework_note = "transformers 5, Liger";
  const Workload qwen3 = asked(run).question.workload;
  CHECK(qwen3.framework.layers.kernels == KernelStyle::fused);
  CHECK(qwen3.framework.layers.patches_built_model);
  CHECK(qwen3.model.code.keeps_head_norms);
  run.training.framework = "axolotl";  // patches the class
  CHECK_FALSE(asked(run).question.workload.framework.layers.patches_built_model);
}

// A row of FSDP2 copies what it gathers out of one buffer, one of FSDP1 joins gradients instead.
TEST_CASE("A run of the other generation of FSDP than its row's says so") {
  RunRecord run = record("torchtitan-asynctp-llama3.1-70b-h100x256-fp8-rowwise-vanilla");
  REQUIRE(asked(run.id.c_str()).question.workload.framework.sharding.parameters.copy_out);
  run.plan.fsdp_version = 2;
  CHECK_FALSE(notes_hold(std::get<Replay>(ask(run)), "FSDP1 is replayed as FSDP2"));
  run.plan.fsdp_version = 1;
  CHECK(notes_hold(std::get<Replay>(ask(run)), "FSDP1 is replayed as FSDP2"));
}

// axolotl's row stands for DeepSpeed too, which has no such hooks, and neither has FSDP2.
TEST_CASE("axolotl's frozen units keep inputs under FSDP1 alone") {
  RunRecord run = record("axolotl-pr1428-llama2-70b-2x24-14gb");
  const auto keeps = [&] {
    return std::get<Replay>(ask(run)).question.workload.framework.sharding.frozen_units_keep_inputs;
  };
  CHECK(keeps());
  run.plan.fsdp_version = 2;
  CHECK_FALSE(keeps());
  run.plan.fsdp_version.reset();
  CHECK_FALSE(keeps());
}

// TRL of 2026 adapts a quantised model as it was loaded; a program that calls PEFT's preparation
// first has what is not quantised in fp32.
TEST_CASE("A program that prepares a quantised model is replayed so") {
  const auto upcasts = [](const char* id) {
    return asked(id).question.workload.framework.quantized.upcasts_unquantized;
  };
  CHECK_FALSE(upcasts("alignlab-qwen2.5-1.5b-qlora-a6000"));
  CHECK(upcasts("backpropagate-qwen2.5-14b-5090-1003-allocated"));
}

// The configuration says stage 0, and the log "Creating BF16 optimizer", which shards over the data
// ranks: what two ranks hold shows it, 47.7 GiB where 32 of them hold 32.6.
TEST_CASE("DeepSpeed's stage 0 in bf16 shards states all the same") {
  CHECK(record("lumi-175b-tp8pp8-128gcd").plan.zero == 0);
  CHECK(asked("lumi-175b-tp8pp8-128gcd").question.plan.zero_stage == 1);
  RunRecord other = record("lumi-175b-tp8pp8-128gcd");
  other.training.precision = "fp16";
  CHECK(std::get<Replay>(ask(other)).question.plan.zero_stage == 0);
}

// A trainer over FSDP that has experts and contexts of its own.
TEST_CASE("A framework can do what a run of it says that it did") {
  const Framework& f = asked("xorl-qwen3.6-35b-16xh100-u8dp2-mb1").question.workload.framework;
  CHECK(f.supports.expert);
  CHECK(f.supports.context);
}

// nanoGPT has no adapters; who publishes a run of it with some has built them.
TEST_CASE("A method that a framework has not is replayed where a run says it") {
  RunRecord run = record("nanogpt-pr225-gpt2-4090");
  run.training.method = "lora";
  const Replay r = std::get<Replay>(ask(run));
  CHECK(r.question.workload.framework.id.find("nanogpt") == 0);
  CHECK(r.question.workload.method == Method::lora);
  CHECK(r.question.workload.framework.runs(Method::lora));
}

TEST_CASE("What notes say of offloaded activations, recomputation and release is replayed") {
  RunRecord run = record("kwai-llama65b-s8k-256gpu-h800-mem-ours-alpha0.30");
  const Replay r = asked(run);
  CHECK(r.question.plan.offload.activations);
  CHECK(r.question.plan.offloaded_share == 0.3);
  CHECK(r.question.plan.recompute == "norms-and-activations");
  run.notes = "torchtitan 0.0.2";
  CHECK(asked(run).question.workload.framework.id == "torchtitan-2024");
}

// The loop kept its logits through backward until pytorch/torchtitan#391 of 12 June 2024.
TEST_CASE("torchtitan of 2024 is told by its month") {
  RunRecord run = record("torchtitan-pr165-llama2-7b-fsdp2-full-compile");
  const auto row = [&] { return asked(run).question.workload.framework; };
  CHECK(row().id == "torchtitan-2024-06");
  CHECK(row().loss.output_holds_logits);
  run.training.framework_note = "torchtitan of July 2024";
  CHECK(row().id == "torchtitan-2024");
  CHECK_FALSE(row().loss.output_holds_logits);
  run.training.framework_note = "torchtitan of July 2025";
  CHECK(row().id == "torchtitan");
}

// use_reentrant was True until transformers 5 where nothing was said.
TEST_CASE("PEFT over transformers 4 has reentrant checkpoints") {
  const auto row = [](const char* id) { return asked(id).question.workload.framework; };
  CHECK(row("baize-llama-7b-int8-lora").recompute.reentrant);
  CHECK_FALSE(row("cgfed-4060l-qwen1.5-1.8b-int8-ckpt-b1").recompute.reentrant);
}

// A preset that offloads 20 of 80 layers.
TEST_CASE("Layers whose activations are offloaded are replayed as their share") {
  const RunRecord run = record("bridge-26.04-pretrain-llama3-70b-gb300x64-fp8-gbs256");
  const Replay r = asked(run);
  CHECK(r.question.plan.offload.activations);
  CHECK(r.question.plan.offloaded_share == 20.0 / 80);
}

// "every-2-layers" is torchtitan's word for one checkpointed layer in two.
TEST_CASE("Recompute words that a framework means otherwise are translated") {
  const RunRecord run = record("torchao-f8nocompile-h100x8-every-2-layers-bfloat16-eager");
  CHECK(asked(run).question.plan.recompute == "one-in-2-layers");
}

// Its plan's key says 3; gathered weights that stay for backward are stage 2.
TEST_CASE("A run that does not reshard after forward is replayed at stage 2") {
  const auto stage = [](const char* id) { return asked(id).question.plan.zero_stage; };
  CHECK(stage("b200log-qwen3-14b-bf16-noreshard-b4-oom") == 2);
  CHECK(stage("b200log-qwen3-14b-bf16-fsdp-b4") == 3);
}

// Presets list scopes or one, prose names them; a list without an implementation does nothing.
TEST_CASE("what a record says of CUDA graphs") {
  const auto scopes = [](const char* id) { return asked(id).question.workload.graph_scopes; };
  using S = GraphScope;
  CHECK(scopes("bridge-26.06-pretrain-nemotron-3-super-b300x64-mxfp8-gbs512") ==
        GraphScopes{S::attn, S::mamba, S::moe_router, S::moe_preprocess});
  CHECK(scopes("bridge-26.06-sft-llama3-70b-h100x32-fp8-gbs32") == GraphScopes{S::mlp});
  CHECK(scopes("bridge-26.06-pretrain-nemotron-3-nano-h100x16-fp8-gbs1024") ==
        GraphScopes{S::mamba});
  CHECK(scopes("bridge-card-lightning-gb200x8-performance-bf16") ==
        GraphScopes{S::attn, S::mamba, S::moe_router, S::moe_preprocess});
  CHECK(scopes("bridge-skill-qwen3-30b-16xh100-alltoall-smoke") ==
        GraphScopes{S::moe_router, S::moe_preprocess});
  CHECK(scopes("h200x64-qwen3-30b-pp2-mb2-gb2048-job3149-oom") == GraphScopes{S::attn});
  CHECK(scopes("h200x64-qwen3-30b-pp1-mb2-gb2048-job3188") == GraphScopes{S::moe_router});
  CHECK_FALSE(scopes("h200x64-qwen3-30b-pp1-mb4-gb2048-job3179-oom").any());
  CHECK(scopes("mcore-moe-recipe-qwen3-30b-gb200-mxfp8-16gpu-tp1pp1ep16-partial-cg") ==
        GraphScopes{S::attn, S::moe_router, S::moe_preprocess});
  CHECK_FALSE(scopes("bridge-26.04.01-pretrain-nemotron-3-super-b200x64-mxfp8-gbs512").any());
  const auto whole = [](const char* id) { return asked(id).question.workload.step_is_graph; };
  CHECK(whole("bridge-25.11-pretrain-llama3-8b-gb200x8-fp8-mx-gbs128"));
  CHECK_FALSE(whole("bridge-26.04-pretrain-llama3-70b-gb300x64-nvfp4-gbs256"));
}

// GPT-2's class writes its GELU out, operator by operator; a config of the run's own names one
// kernel. A program that exchanges heads for tokens stands in for the ring of its framework. And a
// compiler fuses what a plugin's kernels leave between them.
TEST_CASE("What a record says of activations, of heads and of a compiled plugin") {
  const auto activation = [](const char* id) { return asked(id).question.workload.model.code.mlp; };
  CHECK(activation("cc-gpt2-h200x2-b128-gelu-new-24cpu") == MlpFunction::written_out);
  CHECK(activation("cc-gpt2-h200x2-b128-gelu-tanh") == MlpFunction::keeps_input);
  const auto context = [](const char* id) { return asked(id).question.plan.context_kind; };
  CHECK(context("cc-picotron-cp2-ring-8k") == ContextKind::ring);
  CHECK(context("cc-picotron-cp2-ulysses-8k") == ContextKind::ulysses);
  const auto kernels = [](const char* id) {
    return asked(id).question.workload.framework.layers.kernels;
  };
  CHECK(kernels("cc-b300kit-qwen3-30b-ep2-liger") == KernelStyle::fused);
  CHECK(kernels("cc-b300kit-qwen3-30b-ep2-liger-compile") == KernelStyle::compiled);
}

// Liger's kernels write gradients over gate and up. Those of fms-acceleration leave an MLP without
// adapters as it is: LoRA of queries, keys, values and results adapts none of its linears.
TEST_CASE("What a plugin's kernels do with gate and up") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  CHECK(framework("cc-b300kit-qwen3-30b-ep2-liger").layers.overwrites_gate_and_up);
  CHECK_FALSE(framework("cc-b300kit-qwen3-30b-ep2-liger").layers.eager_activation);
  CHECK(framework("fms-llama3-8b-lora-foak-fast-kernels-liger-x1-mb4").layers.eager_activation);
}

// Four A6000 below one switch, NCCL_P2P_LEVEL=NVL; a desktop's two slots have eight lanes each, but
// this record says sixteen, so the board is one that has them.
TEST_CASE("Lanes and peer access that a record tells") {
  RunRecord run = record("coms6998-1b-zero2-2xa6000");
  const auto group = [&run] { return asked(run).question.cluster.groups.front(); };
  CHECK(group().gpu.peer_over_pcie == PeerAccess::no);
  CHECK(group().node.intra_link == IntraLink::pcie_switch);
  CHECK(group().node.pcie_lanes_per_gpu.value_or(16) == 16);
  run.hardware.intra_node = "PCIe";
  run.hardware.peer_access.reset();
  CHECK(group().gpu.peer_over_pcie == PeerAccess::yes);
  CHECK(group().node.intra_link == IntraLink::pcie_host);
  CHECK(group().node.pcie_lanes_per_gpu == 8);
  // The card has NVLink and no board of switches: bridges, which are what its text means.
  run.hardware.intra_node = "NVLink (NV4)";
  CHECK(group().node.intra_link == IntraLink::nvlink_pairs);
  run.hardware.intra_node = "NVLink3";
  CHECK(group().node.intra_link == IntraLink::nvlink_pairs);
  run.hardware.intra_node = "4-way NVLink bridge";
  CHECK(group().node.intra_link == IntraLink::nvlink_fours);
  run.hardware.intra_node = "PCIe, without NVLink";
  CHECK(group().node.intra_link == IntraLink::pcie_host);
  run.hardware.intra_node = "PCIe, no NVLink";
  CHECK(group().node.intra_link == IntraLink::pcie_host);
}

}  // namespace shardwise
