// Published runs as questions: ten of them derived by hand, and how many of all can be asked.
#include "planner/validation/replay.hpp"

#include <map>
#include <string>

#include "tests/catch.hpp"
#include "tests/planner/asked_runs.hpp"

namespace shardwise {
namespace {

constexpr AdapterTargets all_linears{};
constexpr AdapterTargets qkv_only{true, true, true, false, false, false, false, false, false};

}  // namespace

TEST_CASE("At least 85 % of the published runs can be asked") {
  std::map<std::string, int> skips;
  int asked_count = 0;
  for (const RunRecord& run : all_runs()) {
    const ReplayResult result = ask(run);
    if (const auto* skipped = std::get_if<Skipped>(&result))
      ++skips[skipped->reason];
    else
      ++asked_count;
  }
  const double share = static_cast<double>(asked_count) / static_cast<double>(all_runs().size());
  std::string table = std::to_string(asked_count) + " of " + std::to_string(all_runs().size()) +
                      " records (" + std::to_string(100 * share) + " %)\n";
  for (const auto& [reason, count] : skips) table += std::to_string(count) + "  " + reason + "\n";
  WARN(table);
  CHECK(share >= 0.85);
  CHECK(skips.count("malformed record") == 0);
  CHECK(skips.count("GPU not in the catalog") == 0);
}

TEST_CASE("Every question's plan multiplies out to its cluster") {
  for (const RunRecord& run : all_runs()) {
    const ReplayResult result = ask(run);
    const auto* r = std::get_if<Replay>(&result);
    if (r == nullptr) continue;
    const Question& q = r->question;
    INFO(run.id);
    REQUIRE(q.plan.gpus() == q.cluster.gpus());
    REQUIRE(q.workload.optimizer != nullptr);
    REQUIRE(q.plan.microbatches >= 1);
    REQUIRE((q.cluster.nodes() == 1 || q.cluster.network));
    REQUIRE(r->step_scale > 0);
  }
}

// 256 sequences over 4 data ranks and microbatches of 2: 32. ZeRO-1 has no DDP. Stage 0 takes
// layers until it holds over half of 28 x 113,246,208 + 131,072 x 3,072 parameters: the 16th
// passes 1,786,773,504 (15 x 113,246,208 = 1,698,693,120).
TEST_CASE("nanotron, DP x PP with ZeRO-1") {
  const Replay r = asked("ultrascale-3.57b-n1-dp4-tp1-pp2-z1-mbs2-ga32");
  const ParallelPlan& p = r.question.plan;
  CHECK(p.data == 4);
  CHECK(p.pipeline == 2);
  CHECK(p.schedule == "1f1b");
  CHECK(p.zero_stage == 1);
  CHECK(p.microbatch == 2);
  CHECK(p.microbatches == 32);
  CHECK(p.layers_per_stage == std::vector<int>{16, 12});
  CHECK(p.recompute == "none");
  const Workload& w = r.question.workload;
  CHECK(w.framework.id == "nanotron-zero1");
  CHECK(w.compute == DType::bf16);
  CHECK(w.model.vocab == 131072);
  CHECK(w.model.tied_embeddings);
  CHECK(w.framework.attention.kernel == AttentionKernel::flash2);  // flash-attn's own, on H100 too
  CHECK(r.memory_kind == MemoryKind::reserved_at_step);            // not stated: the framework's
  CHECK(r.memory_stage == MemoryStage::first);
  CHECK(r.question.cluster.groups.front().gpu.id == "h100-sxm5-80gb");
  CHECK(r.question.cluster.nodes() == 1);
  CHECK(r.question.cluster.groups.front().node.network == "aws-efa");
  CHECK(r.question.cluster.groups.front().node.nic_count == 32);
}

// Two sequences, one per microbatch, on one data rank: 2 microbatches. Number format, vocabulary,
// network, attention kernel and dropout are those of the row or of the record's prose.
TEST_CASE("vTrain, tensor parallel") {
  const Replay r = asked("vtrain-single-0780-h2048-l24-g2-t2d1p1-mb1-gb2");
  const ParallelPlan& p = r.question.plan;
  CHECK(p.tensor == 2);
  CHECK_FALSE(p.sequence_parallel);
  CHECK(p.microbatches == 2);
  CHECK(p.recompute == "full");
  CHECK(p.zero_stage == 0);
  const Workload& w = r.question.workload;
  CHECK(w.compute == DType::fp16);
  CHECK(w.model.vocab == 50257);
  CHECK(w.model.ffn == 4 * 2048);
  CHECK(w.framework.attention.kernel == AttentionKernel::eager);
  CHECK(w.framework.gradients.dtype == DType::fp16);
  CHECK(w.hidden_dropout);
  CHECK(r.question.cluster.groups.front().gpu.id == "a100-sxm4-80gb");
  CHECK(r.question.cluster.groups.front().gpus_per_node == 2);
}

// 272 sequences over 2 data ranks: 136 microbatches. 12 chunks on each of 8 ranks.
TEST_CASE("Megatron, interleaved with offloaded activations") {
  const Replay r = asked("kwai-fig9-llama-175b-s4096-g64");
  const ParallelPlan& p = r.question.plan;
  CHECK(p.data == 2);
  CHECK(p.tensor == 4);
  CHECK(p.sequence_parallel);
  CHECK(p.pipeline == 8);
  CHECK(p.chunks == 12);
  CHECK(p.schedule == "interleaved");
  CHECK(p.microbatches == 136);
  CHECK(p.offload == Offload{false, false, true});
  CHECK(r.question.cluster.nodes() == 8);
  REQUIRE(r.question.cluster.network);
  CHECK(r.question.cluster.network->id == "roce-100");
  CHECK(r.question.cluster.groups.front().node.nic_bandwidth.value == Approx(12.5e9));
  CHECK_FALSE(r.question.workload.hidden_dropout);  // gated: no GPT
}

// 2,048 sequences over 16 data ranks: 128. Experts have their own layout: EP 32, no TP.
TEST_CASE("Megatron, experts") {
  const Replay r = asked("moe-modelzoo-qwen3-235b-h100x256-tp2pp8ep32-1");
  const ParallelPlan& p = r.question.plan;
  CHECK(p.expert == 32);
  CHECK(p.expert_tensor == 1);
  CHECK(p.chunks == 4);
  CHECK(p.microbatches == 128);
  CHECK(r.question.workload.model.moe->experts == 128);
  CHECK(r.question.workload.model.moe->top_k == 8);
  CHECK(r.question.cluster.groups.front().node.nic_count == 8);
}

// 128 GPUs: TP 4 leaves 32 data ranks, whose experts are on 8 ranks each and cut over 4.
TEST_CASE("Megatron, experts that are cut") {
  const ParallelPlan p = asked("dgxc-25.05-grok1-gb200x128-bf16").question.plan;
  CHECK(p.expert == 8);
  CHECK(p.expert_tensor == 4);
}

// 8 sequences, one at a time, on one data rank of 8 context ranks; ZeRO-3 is xtuner's habit.
TEST_CASE("xtuner, context parallel") {
  const Replay r = asked("xtuner-llama-2-7b-128k-sp8-8xa100");
  const ParallelPlan& p = r.question.plan;
  CHECK(p.data == 1);
  CHECK(p.context == 8);
  CHECK(p.context_kind == ContextKind::ulysses);
  CHECK(p.microbatches == 8);
  CHECK(p.zero_stage == 3);
  CHECK(r.question.workload.sequence == 131072);
}

// 126 layers over 16 x 8 = 128 chunks: the embedding and the head stand for a layer each.
TEST_CASE("Megatron-Bridge, embedding and head as layers") {
  RunRecord run = record("nemo-24.07-vboost-llama3-70b-pretrain-g64-gbs128");
  const Replay even = asked(run);
  CHECK(even.question.plan.layers_per_stage.empty());  // 80 layers, 4 x 5 chunks
  CHECK(even.question.plan.context == 2);
  CHECK(even.question.workload.framework.id == "megatron-bridge");
  CHECK(even.question.workload.compute == DType::fp8);
  CHECK(even.question.plan.microbatches == 128 / 2);
  CHECK(even.question.plan.async_tensor);  // tp_comm_overlap, with sequence parallelism
  run.model.layers = 78;
  run.model.name = "a model nobody knows";
  const Replay ends = asked(run);
  REQUIRE(ends.question.plan.layers_per_stage.size() == 20);
  CHECK(ends.question.plan.layers_per_stage.front() == 3);
  CHECK(ends.question.plan.layers_per_stage[1] == 4);
  CHECK(ends.question.plan.layers_per_stage.back() == 3);
}

// The table of release 25.09 has no column for the number format; its footnote says FP8, and what
// its recipes have for the numbers in parentheses is MXFP8.
TEST_CASE("Megatron-Bridge, a table whose footnote states the number format") {
  const std::string id = "bridge-25.09-pretrain-llama3-8b-gb200x8-none-gbs128";
  CHECK(asked(id).question.workload.compute == DType::fp8);
  CHECK(asked((id + "-alt").c_str()).question.workload.compute == DType::mxfp8);
}

// "q,k,v,gate,up,down" without o; NF4 with constants quantised again; 4 / (2 x 2) = 1 microbatch.
TEST_CASE("fsdp_qlora, 70B on two cards with everything offloaded") {
  const Replay r = asked("fsdp-qlora-llama-2-70b-4090x2-qlora-ctx2048-bs2-cpuoffload");
  const Workload& w = r.question.workload;
  CHECK(w.method == Method::qlora);
  CHECK(w.adapter.rank == 64);
  CHECK(w.adapter.targets ==
        AdapterTargets{true, true, true, false, true, true, true, false, false});
  CHECK(w.adapter.base == Quantization::nf4_double);
  CHECK(w.framework.adapters.dtype == DType::bf16);
  CHECK(w.framework.sharding.quantized);
  CHECK(r.question.plan.zero_stage == 3);
  CHECK(r.question.plan.microbatches == 1);
  CHECK(r.question.plan.offload == Offload{true, true, false});
  CHECK(r.memory_kind == MemoryKind::reserved);
  CHECK(r.question.cluster.groups.front().gpu.id == "rtx-4090");
  CHECK(r.question.cluster.groups.front().node.host_ram == Bytes(std::int64_t{128} << 30));
}

// Its notebooks for one GPU pass a DeepSpeed configuration for Q-LoRA only; the scripts beside them
// do for full-parameter training as well (43.5 GB where the notebook takes 19.6).
TEST_CASE("Qwen's notebooks train all parameters without DeepSpeed") {
  const Replay full = asked("qwen-recipe-a800-1.8b-full");
  CHECK(full.question.workload.framework.id == "qwen-finetune-notebook");
  CHECK(full.question.plan.zero_stage == 0);
  CHECK(asked("qwen-recipe-a800-7b-qlora").question.plan.zero_stage == 2);
  CHECK(asked("qwen-1.8b-full-parameter-n1x1-seq512").question.plan.zero_stage == 3);
}

// c_attn, c_proj, w1 and w2 are all linears of Qwen. One GPU: no DeepSpeed, 8 microbatches.
TEST_CASE("Qwen finetune.py, LoRA on one card") {
  const Replay r = asked("qwen-1.8b-lora-n1x1-seq256");
  const Workload& w = r.question.workload;
  CHECK(w.method == Method::lora);
  CHECK(w.adapter.targets == all_linears);
  CHECK(w.adapter.rank == 64);
  CHECK(w.adapter.dropout == Approx(0.05));
  CHECK(w.framework.id == "qwen-finetune");
  CHECK(w.model.biases.qkv);  // the catalog's qwen-1.8b
  CHECK(r.question.plan.microbatches == 8);
  CHECK(r.question.plan.zero_stage == 0);
  CHECK(r.memory_kind == MemoryKind::device);
  const Replay two = asked("qwen-7b-full-parameter-n1x2-seq512");
  CHECK(two.question.workload.framework.id == "qwen-finetune-deepspeed");
  CHECK(two.question.workload.weights() == WeightRecipe::half_with_master);
}

TEST_CASE("ms-swift, layers dealt to two cards one after the other") {
  const Replay r = asked("swift-maxlen-lora-qwen-72b-chat-2-a100-512");
  const ParallelPlan& p = r.question.plan;
  CHECK(p.layer_split);
  CHECK(p.pipeline == 2);
  CHECK(p.data == 1);
  CHECK(p.microbatches == 16);
  CHECK(r.question.workload.adapter.targets == qkv_only);
}

// Two processes on four cards: each deals the layers to two.
TEST_CASE("ms-swift, layers dealt to the cards of each process") {
  const ParallelPlan p = asked("swift-ex-train-multi-gpu-ddp-device-map-train-0").question.plan;
  CHECK(p.layer_split);
  CHECK(p.pipeline == 2);
  CHECK(p.data == 2);
}

// The notes say that no sample reaches the limit of 2,048 tokens; the longest of the data have 131
// and 607. Sequence parallelism over two ranks pads these to 608; a packed run reaches its limit.
TEST_CASE("A limit that no sample reaches is no length") {
  CHECK(asked("swift-ex-train-tuners-lora-train-0").question.workload.sequence == 131);
  CHECK(asked("swift-ex-megatron-muon-1").question.workload.sequence == 608);
  CHECK(asked("swift-ex-train-liger-sft-1").question.workload.sequence == 8192);
}

// One sample of DPO is a chosen and a rejected answer; 16 samples of a replica are two microbatches
// of 8. The reference model is a copy; SimPO has none. A pack holds both, as padding_free does.
TEST_CASE("Preference training has two sequences to a sample") {
  const Replay dpo = asked("swift-ex-megatron-rlhf-dpo-dense-0");
  CHECK(dpo.question.plan.microbatch == 8);
  CHECK(dpo.question.workload.sequences_per_sample == 2);
  CHECK(dpo.question.plan.microbatches == 2);
  CHECK(dpo.step_scale == 1);
  CHECK(dpo.question.workload.copies_reference());
  const Replay simpo = asked("swift-ex-train-rlhf-simpo-0");
  CHECK(simpo.question.plan.microbatch == 1);
  CHECK(simpo.question.workload.sequences_per_sample == 2);
  CHECK_FALSE(simpo.question.workload.copies_reference());
  for (const char* id : {"swift-ex-train-packing-dpo-0", "swift-ex-train-rlhf-dpo-full-0"}) {
    const Replay packed = asked(id);
    CHECK(packed.question.plan.microbatch == 1);
    CHECK(packed.question.workload.sequences_per_sample == 1);
  }
}

// 2,016 sequences over 8 data ranks and microbatches of 6: 42. The vocabulary is in the prose, and
// BLOOM was trained with ALiBi and without dropout.
TEST_CASE("BLOOM's prequel on Jean Zay") {
  const Replay r = asked("bloom-prequel-l777-181b-g384-t8p6-mb6-gb2016");
  CHECK(r.question.plan.microbatches == 42);
  CHECK(r.question.plan.zero_stage == 1);
  CHECK(r.step_scale == 1);
  const Workload& w = r.question.workload;
  CHECK(w.model.vocab == 250880);
  CHECK(w.model.position == PositionKind::alibi);
  CHECK_FALSE(w.hidden_dropout);
  CHECK(w.compute == DType::fp16);
  CHECK(w.framework.update.fp32_gradient_at_step);
  CHECK(w.blocking_launches);  // CUDA_LAUNCH_BLOCKING=1, says its note
  CHECK(r.question.cluster.nodes() == 48);
  CHECK(r.question.cluster.network->id == "omni-path-100");
  CHECK(r.question.cluster.groups.front().node.nic_count == 4);
}

// Stage 0 in bf16 is the BF16 optimizer, whose states are shared out (stage 1 of the plan), but
// whose gradients are not ZeRO's; stage 1 that is asked for is ZeRO. A log that reads its peak once
// reads the first step's.
TEST_CASE("Megatron-DeepSpeed with its engine's stage 0 and 1") {
  RunRecord run = record("deepspeed-issue5305-7b-32k-tp4");
  run.plan.zero = 0;
  run.measured.mem_kind = "torch-allocated";
  const Replay whole = asked(run);
  CHECK(whole.question.plan.zero_stage == 1);
  CHECK(whole.question.workload.framework.id == "megatron-deepspeed");
  CHECK(whole.memory_kind == MemoryKind::allocated);
  run.plan.zero = 1;
  run.notes += " Memory after the first iteration.";
  const Replay sharded = asked(run);
  CHECK(sharded.question.plan.zero_stage == 1);
  CHECK(sharded.question.workload.framework.id == "megatron-deepspeed-zero");
  CHECK(sharded.memory_kind == MemoryKind::allocated_first);
}

// No expert parallelism in the table, but "TE + DeepEP + FlexAttn": 128 experts and 64 data ranks
// have 64 in common. Presets say what they set: a backend of the flexible dispatcher, or none.
TEST_CASE("what a record says of the way to its experts") {
  const Replay spread = asked("automodel-pretrain-gpt-oss-120b-g64-gbs512-head");
  CHECK(spread.question.plan.expert == 64);
  CHECK(spread.question.workload.framework.experts.dispatches_once);
  CHECK(notes_hold(spread, "expert parallelism not stated, a dispatcher is: 64"));
  const Replay graph = asked("bridge-26.06.01-pretrain-qwen3-235b-a22b-gb200x256-mxfp8-gbs8192");
  CHECK(graph.question.workload.framework.experts.dispatches_once);
  CHECK(graph.question.workload.overlaps_experts);
  CHECK(graph.question.workload.step_is_graph);
  const Replay plain = asked("bridge-26.04.01-pretrain-qwen3-235b-a22b-b200x256-mxfp8-gbs8192");
  CHECK_FALSE(plain.question.workload.framework.experts.dispatches_once);
  CHECK_FALSE(plain.question.workload.overlaps_experts);
  CHECK_FALSE(plain.question.workload.step_is_graph);
}

// Heads are not in this row's table: of the multiples of TP 8 that divide 14,400, 120 is nearest
// to heads of 128 (14,400 / 120 = 120; / 96 = 150).
// One recipe trains one more depth of prediction, and its table says where it did not; the capacity
// of experts is in a label.
TEST_CASE("Recipes that predict further tokens, or pad experts") {
  const auto depths = [](const char* id) { return asked(id).question.workload.prediction_depths; };
  CHECK(depths("bridge-26.04-pretrain-deepseekv3-gb200x256-mxfp8-gbs4096") == 1);
  CHECK(depths("bridge-25.11-pretrain-deepseekv3-w-o-mtp-gb200x256-fp8-mx-gbs4096") == 0);
  CHECK(depths("bridge-26.06-pretrain-nemotron-3-super-gb200x64-mxfp8-gbs512") == 2);
  CHECK(depths("bridge-26.06-pretrain-nemotron-3-nano-gb200x8-mxfp8-gbs512") == 0);
  const auto pads = [](const char* id) { return asked(id).question.workload.pads_experts; };
  CHECK(pads("bridge-25.09-pretrain-deepseekv3-tokendrop-gb200x256-none-gbs2048"));
  CHECK_FALSE(pads("bridge-25.09-pretrain-deepseekv3-dropless-h100x1024-none-gbs8192"));
  CHECK(pads("simumax-b200-deepseekv3-l4-tp1-ep8-pp1-dp8-mbc4-cef"));
}

TEST_CASE("torchao's H100 is its authors' own kind") {
  const auto gpu = [](const char* id) { return asked(id).question.cluster.groups.front().gpu.id; };
  CHECK(gpu("torchao-e2e-llama3-8b-h100x8-tensorwise-with-float8-all-gather") ==
        "h100-sxm5-96gb-hbm2e");
  CHECK(gpu("torchao-e2e-llama3-8b-mi300xx8-none-bfloat16") == "mi300x");
  CHECK(gpu("ao-pr2594-llama3-8b-tensorwise-after") == "h100-sxm5-96gb-hbm2e");
}

// Of a B200's 1,000 W. What a record says itself is kept.
TEST_CASE("A card that its owner holds to less power") {
  const auto watts = [](const RunRecord& run) {
    return asked(run).question.cluster.groups.front().gpu.power_limit_w;
  };
  RunRecord run = record("torchao-e2e-llama3-8b-b200x8-float8-rowwise");
  CHECK(watts(run) == 750);
  run.hardware.power_limit_w = 600;
  CHECK(watts(run) == 600);
}

// What was left to a process of an RTX 4060 Laptop, which offers 7.67 GiB: never more than that.
TEST_CASE("A process that may hold less than its card") {
  const auto usable = [](const RunRecord& run) {
    return asked(run).question.cluster.groups.front().gpu.usable_memory();
  };
  RunRecord run = record("cgfed-4060l-qwen1.5-1.8b-int8-ckpt-b4");
  CHECK(usable(run) == *run.hardware.usable);
  run.hardware.usable.reset();
  const Bytes whole = usable(run);
  run.hardware.usable = Bytes(std::int64_t{16} << 30);
  CHECK(usable(run) == whole);
}

TEST_CASE("Heads that a table leaves out are a multiple of TP") {
  RunRecord run = record("bloom-prequel-l777-181b-g384-t8p6-mb6-gb2016");
  run.model.hidden = 14400;
  run.model.heads.reset();
  const Replay r = asked(run);
  CHECK(r.question.workload.model.heads == 120);
  CHECK(notes_hold(r, "model heads: assumed: 120"));
}

TEST_CASE("torchtitan on its own kind of H100") {
  const Replay r = asked("torchtitan-llama3.1-8b-h100x8-fsdp");
  CHECK(r.question.cluster.groups.front().gpu.id == "h100-sxm5-96gb-hbm2e");
  CHECK(r.question.plan.recompute == "selective-op");
  CHECK(r.question.plan.zero_stage == 3);
  CHECK(r.question.plan.microbatches == 1);
  CHECK(r.memory_kind == MemoryKind::reserved);
  CHECK(r.question.workload.framework.layers.kernels == KernelStyle::eager);  // compile: false
  RunRecord compiled = record("torchtitan-llama3.1-8b-h100x8-fsdp");
  compiled.training.compile = true;
  CHECK(asked(compiled).question.workload.framework.layers.kernels == KernelStyle::compiled);
}

TEST_CASE("A zero-bubble schedule is one with or without chunks") {
  RunRecord run = record("ultrascale-3.57b-n1-dp4-tp1-pp2-z1-mbs2-ga32");
  run.plan.schedule = "zb";
  CHECK(asked(run).question.plan.schedule == "zb-h1");
  run.plan.vpp = 2;
  CHECK(asked(run).question.plan.schedule == "zb-v");
  CHECK(asked(run).question.plan.chunks == 2);
}

TEST_CASE("Layers are dealt to stages as the record says, or as its framework does") {
  RunRecord run = record("ultrascale-3.57b-n1-dp4-tp1-pp2-z1-mbs2-ga32");
  CHECK(asked(run).question.plan.layers_per_stage != std::vector<int>{8, 20});
  run.plan.layers_per_stage = {8, 20};
  CHECK(asked(run).question.plan.layers_per_stage == std::vector<int>{8, 20});
}

TEST_CASE("Adapter targets are read word by word") {
  const Reading& reading = loaded_reading();
  CHECK(targets_meant(reading, "all-linear") == all_linears);
  CHECK(targets_meant(reading, "DEFAULT (c_attn for qwen)") == qkv_only);
  CHECK(targets_meant(reading, "c_attn,c_proj,w1,w2 (all-linear)") == all_linears);
  CHECK_FALSE(targets_meant(reading, "q,k,v,gate,up,down (train.py \"all\")").o);
  CHECK(targets_meant(reading, "q_proj,v_proj") ==
        AdapterTargets{true, false, true, false, false, false, false, false, false});
  CHECK(targets_meant(reading, "x.(mlp|self_attn).(up|down|gate|q|k|v|o)_proj") == all_linears);
  CHECK(targets_meant(reading, "all-linear + trainable embedding and lm_head").lm_head);
  CHECK(targets_meant(reading, "") ==
        AdapterTargets{false, false, false, false, false, false, false, false, false});
}

}  // namespace shardwise
