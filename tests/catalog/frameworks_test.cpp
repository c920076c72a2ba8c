// The framework rows: they load, and they change with method and number format as their sources
// say.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "catalog/framework.hpp"
#include "catalog/optimizer.hpp"
#include "tests/catalog/framework_rows.hpp"
#include "tests/catch.hpp"

namespace shardwise {

TEST_CASE("Every framework row says where it was read") {
  REQUIRE(framework_rows().size() >= 40);
  for (const Framework& f : framework_rows()) {
    INFO(f.id);
    CHECK_FALSE(f.match.empty());
    CHECK_FALSE(f.provenance.source.empty());
    for (const FieldSource& field : f.provenance.fields) CHECK_FALSE(field.source.empty());
    CHECK(optimizer_named(f.defaults.optimizer) != nullptr);
    for (const std::string& word : f.match) CHECK(meant(word) == f.id);
  }
}

TEST_CASE("The frameworks that the catalog must have are there") {
  const std::set<std::string> wanted{
      "torchtitan", "pytorch-fsdp2", "pytorch-ddp",    "hf-trainer",      "peft",
      "trl",        "deepspeed",     "megatron-lm",    "megatron-bridge", "megatron-deepspeed",
      "nanotron",   "torchtune",     "llm-foundry",    "litgpt",          "fsdp_qlora",
      "axolotl",    "ms-swift",      "megatron-swift", "llama-factory",   "unsloth",
      "internevo",  "galvatron",     "nemo-automodel", "colossalai",      "xtuner",
      "llm.c",      "llama-recipes", "oneflow",        "paddle",          "kempnerforge",
      "fms-fsdp",   "olmo",          "olmo-core",      "gpt-neox",        "nanogpt",
      "nanochat",   "picotron"};
  for (const std::string& id : wanted) {
    INFO(id);
    CHECK(row_of(id).id == id);
  }
}

// Megatron's table (docs/user-guide/features/dist_optimizer.md:16-20): bf16 keeps fp32 gradients;
// fp16 keeps 16-bit ones and makes an fp32 copy while stepping.
TEST_CASE("A row is resolved for its number format") {
  const Framework& megatron = row_of("megatron-lm");
  const Framework bf16 = resolved_for(megatron, Method::pretrain, DType::bf16);
  CHECK(bf16.gradients.dtype == DType::fp32);
  CHECK_FALSE(bf16.update.fp32_gradient_at_step);
  const Framework fp16 = resolved_for(megatron, Method::pretrain, DType::fp16);
  CHECK(fp16.gradients.dtype == DType::fp16);
  CHECK(fp16.gradients.reduce_dtype == DType::fp16);
  CHECK(fp16.update.fp32_gradient_at_step);
  // DeepSpeed's pipelines: BF16_Optimizer's fp32 gradients stay; ZeRO's are made anew every step.
  const Framework& deepspeed = row_of("megatron-deepspeed-2022");
  const Framework kept = resolved_for(deepspeed, Method::pretrain, DType::bf16);
  CHECK(kept.gradients.life == GradientLife::persistent);
  CHECK_FALSE(kept.update.wide_gradient_checks);
  const Framework remade = resolved_for(deepspeed, Method::pretrain, DType::fp16);
  CHECK(remade.gradients.life == GradientLife::per_step);
  CHECK(remade.update.wide_gradient_checks);
  const Framework fp32 = resolved_for(megatron, Method::full, DType::fp32);
  CHECK(fp32.formats.pretrain_weights == WeightRecipe::fp32);
  CHECK(fp32.formats.finetune_weights == WeightRecipe::fp32);
  CHECK(fp32.formats.frozen_dtype == DType::fp32);
}

// trl/trainer/sft_trainer.py:1123-1130: adapters beside 4-bit weights are bf16, others PEFT's fp32.
TEST_CASE("A row is resolved for its method") {
  const Framework& trl = row_of("trl");
  CHECK(resolved_for(trl, Method::lora, DType::bf16).adapters.dtype == DType::fp32);
  CHECK(resolved_for(trl, Method::qlora, DType::bf16).adapters.dtype == DType::bf16);
}

// Of every row: what it lists it runs, and of the rest it says what it has instead.
TEST_CASE("A method that a framework has not is refused with those that it has") {
  for (const Framework& f : loaded_catalog().frameworks) {
    INFO(f.id);
    CHECK(f.runs(Method::full));
    for (const MethodRow& m : method_rows) {
      const bool listed =
          f.supports.methods.empty() ||
          std::count(f.supports.methods.begin(), f.supports.methods.end(), m.method) == 1;
      const auto refusal = method_refusal(f, m.method);
      CHECK(refusal.has_value() == !listed);
      if (!refusal) continue;
      CHECK(refusal->find(f.name) == 0);
      CHECK(refusal->find(m.name) != std::string::npos);
      CHECK(refusal->find("it has pretrain") != std::string::npos);
    }
  }
  CHECK_FALSE(row_of("nanogpt").runs(Method::qlora));
  CHECK(method_refusal(row_of("litgpt"), Method::dora) ==
        "LitGPT has no dora; it has pretrain, full, lora and qlora");
  CHECK(row_of("trl").runs(Method::dora));
}

TEST_CASE("What the sources say about memory is what the rows say") {
  CHECK(row_of("nanotron").gradients.life == GradientLife::persistent);
  CHECK(row_of("nanotron").reports.stage == MemoryStage::first);
  CHECK(row_of("nanotron").with_zero == "nanotron-zero1");
  CHECK_FALSE(row_of("nanotron-zero1").gradients.overlap_reduce);
  CHECK(row_of("torchtitan").formats.pretrain_weights == WeightRecipe::fp32_with_half_compute);
  CHECK(row_of("torchtitan").recompute.pretrain == "selective-op");
  CHECK(row_of("torchtitan").process.expandable_segments);
  CHECK_FALSE(row_of("torchtitan").sharding.parameters.reshard_with_pipeline);
  CHECK_FALSE(row_of("torchtitan").recompute.selective_op_omits_all_to_all);
  CHECK(row_of("torchtitan-qwen3-2025").recompute.selective_op_omits_all_to_all);
  CHECK_FALSE(
      row_of("torchtitan").parallel.regathers_sequence);  // calibrate/count_sequence_gathers.py
  CHECK(row_of("megatron-lm").parallel.regathers_sequence);
  for (const char* fsdp : {"torchtitan", "pytorch-fsdp1", "pytorch-fsdp2", "litgpt-thunder"})
    CHECK(row_of(fsdp).sharding.stage_2_gathers);
  CHECK_FALSE(row_of("deepspeed").sharding.stage_2_gathers);
  CHECK_FALSE(row_of("nemo-automodel").gradients.reduces_every_microbatch);  // defer_fsdp_grad_sync
  // PEFT's preparation of a quantised model switches recomputation on.
  const auto recomputes = [](const char* id, Method method) {
    return resolved_for(row_of(id), method, DType::bf16).recompute.finetune;
  };
  CHECK(recomputes("peft", Method::qlora) == "full");
  CHECK(recomputes("peft", Method::lora) == "none");
  CHECK(recomputes("trl-2024", Method::qlora) == row_of("trl-2024").recompute.finetune);
  CHECK(row_of("torchtune").formats.finetune_weights == WeightRecipe::pure_half);
  CHECK(row_of("torchtune").loss.kind == LossKind::chunked);
  CHECK(row_of("axolotl").process.roundup_power2_divisions == 16);
  CHECK(row_of("deepspeed").sharding.parameters.live_parameters == Bytes(2'000'000'000));
  CHECK(row_of("llama-factory").formats.finetune_weights == WeightRecipe::fp32_with_half_compute);
}

// calibrate/measure_sharding_hooks.py: with 0.19 a module takes 19.4 operators of 19.7 us a pass,
// until 0.17 it took 13, which the 330 us of a GPU hold: 330 + 6.4 x 19.7 = 456.
TEST_CASE("DeepSpeed's hooks take what its release takes") {
  CHECK(meant("deepspeed", "DeepSpeed 0.17.5, torch 2.8.0") == "deepspeed-0.17");
  CHECK(meant("transformers+deepspeed", "under DeepSpeed 0.16.2+30504941") == "hf-deepspeed-0.17");
  CHECK(meant("deepspeed", "DeepSpeed 0.18.3") == "deepspeed");
  CHECK(meant("deepspeed", "DeepSpeed 0.19.4 around an own GPT") == "deepspeed-own-model");
  for (const char* id : {"deepspeed", "hf-deepspeed", "deepspeed-own-model"})
    CHECK(row_of(id).host.us_per_sharded_module == Approx(330 + 6.4 * 19.7).epsilon(0.002));
  for (const char* id : {"deepspeed-0.17", "hf-deepspeed-0.17"})
    CHECK(row_of(id).host.us_per_sharded_module == 330);
}

// calibrate/measure_sharding_hooks.py: for each tensor that a rank steps at stages 1 and 2 it takes
// 3.4 operators of 19.7 us, 67; at stage 3, of its parts, 2.1 to 3.1: 2.6 x 19.7 = 51. Whoever
// takes the norm in fp64 takes them.
TEST_CASE("A norm tensor by tensor takes the CPU for each") {
  CHECK(row_of("deepspeed").host.us_per_read_tensor == Approx(3.4 * 19.7).epsilon(0.005));
  CHECK(row_of("deepspeed").host.us_per_read_tensor_stage_3 == Approx(2.6 * 19.7).epsilon(0.005));
  for (const Framework& f : framework_rows()) {
    if (!f.update.norm_in_double) continue;
    INFO(f.id);
    CHECK(f.host.us_per_read_tensor > 0);
    CHECK(f.host.us_per_read_tensor_stage_3 > 0);
    CHECK(f.host.us_per_checked_tensor > 0);
  }
}

// FSDP2 copies units out of what it gathers, FSDP1 joins their gradients; no framework does both.
TEST_CASE("A unit of FSDP is copied out or its gradients are joined") {
  CHECK(row_of("torchtitan").sharding.parameters.copy_out);
  CHECK(row_of("llm-foundry").sharding.parameters.joins_gradients);
  for (const Framework& f : framework_rows()) {
    INFO(f.id);
    CHECK_FALSE((f.sharding.parameters.copy_out && f.sharding.parameters.joins_gradients));
    if (f.sharding.parameters.joins_gradients) CHECK(f.host.us_per_sharded_unit > 0);
  }
}

// Until transformers 4.57.6 experts are modules of nn.Linear that Python calls in turn, which
// bitsandbytes replaces one by one; since 5.0.0 a layer has one tensor, and one product, of all.
TEST_CASE("Experts that are called in turn are quantised one by one") {
  for (const Framework& f : framework_rows()) {
    if (!f.experts.loops) continue;
    INFO(f.id);
    CHECK(f.quantized.experts);
    CHECK_FALSE(f.experts.torch_grouped_products);
  }
  CHECK(row_of("trl-2025-12").quantized.experts);  // TRL 0.26.2, December 2025
  for (const char* id :
       {"llama-factory-deepspeed-2024", "hf-deepspeed-0.17", "fastchat", "axolotl-deepspeed-2025",
        "fms-acceleration-bnb", "fms-acceleration-bnb-2025", "qwen-finetune",
        "qwen-finetune-notebook", "qwen-finetune-deepspeed"})
    CHECK(row_of(id).experts.loops);
}

// Transformers 5 multiplies experts by PyTorch's grouped product, in rows of whichever trainer.
TEST_CASE("Rows of transformers 5 multiply experts by PyTorch's grouped product") {
  for (const char* id : {"hf-trainer", "hf-trainer-one-length", "trl", "trl-1.12", "llama-factory",
                         "openrlhf", "axolotl", "axolotl-deepspeed", "axolotl-whole-experts"})
    CHECK(row_of(id).experts.torch_grouped_products);
}

// pytorch/torchtitan ab5ed59f8, 4 March 2026; version 0.2.2 is of February.
TEST_CASE("torchtitan's router is one of fp32 since March 2026") {
  CHECK(row_of("torchtitan-chunked-loss").experts.routes_in_fp32);
  CHECK(row_of("torchtitan-dense-loss").experts.routes_in_fp32);
  CHECK_FALSE(row_of("torchtitan-0.2.2").experts.routes_in_fp32);
  CHECK_FALSE(row_of("torchtitan").experts.routes_in_fp32);
  CHECK(row_of("xtuner-v1").experts.routes_in_fp32);
}

// A row that stands for another's trainer with one thing changed has its engine's facts.
TEST_CASE("Rows made of another have its experts and its 8-bit weights") {
  const std::map<std::string, std::string> made_of = {
      {"pytorch-fsdp1-one-unit", "pytorch-fsdp1"},
      {"peft-autocast-sliced-loss", "peft-autocast"},
      {"axolotl-whole-experts", "axolotl"},
      {"miles", "megatron-lm"},
      {"nemo-rl-megatron", "megatron-lm"}};
  for (const auto& [copy, original] : made_of) {
    INFO(copy);
    CHECK(row_of(copy).experts.torch_grouped_products ==
          row_of(original).experts.torch_grouped_products);
    CHECK(row_of(copy).narrow.weights == row_of(original).narrow.weights);
  }
}

// What a file of TRL that trains a whole model is read as.
TEST_CASE("The Trainer handed fp32 weights is that of transformers 5 otherwise") {
  const Framework& f = row_of("hf-trainer-fp32");
  CHECK(f.formats.finetune_weights == WeightRecipe::fp32_with_half_compute);
  CHECK_FALSE(f.experts.loops);
  CHECK(f.experts.torch_grouped_products);
  CHECK_FALSE(f.quantized.experts);
  CHECK(f.with_zero == row_of("hf-trainer").with_zero);
  CHECK(resolved_for(f, Method::full, DType::bf16).gradients.dtype == DType::fp32);
}

// What dates a Trainer's row is of the release, not of how many GPUs share the weights.
TEST_CASE("Under FSDP the dated Trainers stay of their release") {
  for (const char* id : {"hf-trainer-4", "hf-trainer-2024"}) {
    const Framework &whole = row_of(id), &sharded = row_of(whole.with_zero);
    CHECK(sharded.id != "accelerate-fsdp");
    CHECK(sharded.experts.loops);
    CHECK(sharded.quantized.experts);
    CHECK(sharded.update.fused == whole.update.fused);
    CHECK(sharded.match_note == whole.match_note);
  }
  CHECK(meant("accelerate fsdp", "transformers 4.57.1") == "accelerate-fsdp-4");
  CHECK(meant("accelerate fsdp", "transformers 4.31") == "accelerate-fsdp-2024");
  CHECK(meant("accelerate fsdp") == "accelerate-fsdp");
  CHECK(meant("fairscale", "March 2021") == "fairscale");
}

// _pre_forward of FSDP1 gathers in the pass that a reentrant checkpoint runs again, and only there;
// frozen units keep inputs under these alone.
TEST_CASE("What reentrant checkpoints do around FSDP1's units goes together") {
  int around = 0;
  for (const Framework& f : framework_rows()) {
    INFO(f.id);
    if (f.sharding.checkpoints_gather_again) CHECK(f.recompute.reentrant);
    if (f.sharding.frozen_units_keep_inputs) CHECK(f.sharding.checkpoints_gather_again);
    around += f.sharding.checkpoints_gather_again;
  }
  CHECK(around >= 7);
  // Inside of units transformers checkpoints since 4.52 and 4.53 (GradientCheckpointingLayer).
  for (const char* id : {"accelerate-fsdp-4", "trl-2025-10", "trl-2025-12", "llama-factory"})
    CHECK_FALSE(row_of(id).sharding.checkpoints_gather_again);
  // use_reentrant is True where nothing is said until transformers 4.57.6 (modeling_utils.py:3692),
  // False since 5.0.0 (:3099).
  for (const char* id : {"hf-trainer-2024", "hf-trainer-4", "accelerate-fsdp-2024",
                         "accelerate-fsdp-4", "trl-2024", "trl-2025", "trl-2025-12", "fastchat"})
    CHECK_FALSE(row_of(id).recompute.stops_early);
  for (const char* id :
       {"hf-trainer", "hf-trainer-one-length", "accelerate-fsdp", "trl", "trl-1.12"})
    CHECK(row_of(id).recompute.stops_early);
}

// FSDP shards gradients with the states: a search offers no ZeRO-1 of it. A row that refines one
// runs its code unless it is of another family: NeMo RL's other engine is Megatron's.
TEST_CASE("Rows of FSDP alone have no ZeRO-1") {
  for (const Framework& f : framework_rows())
    if (!f.refines.empty() && (f.family == f.id || f.family == row_of(f.refines).family)) {
      INFO(f.id);
      CHECK(f.supports.least_zero_stage == row_of(f.refines).supports.least_zero_stage);
    }
  CHECK(row_of("nemo-rl-megatron").supports.least_zero_stage == 1);
  for (const char* id : {"litgpt-2024", "thunder-benchmark", "kempnerforge", "fastchat", "yafsdp"})
    CHECK(row_of(id).supports.least_zero_stage == 2);
}

// Megatron-Bridge's presets put tensor parallelism's collectives behind kernels in dense models,
// but in no mixture and not in NVFP4; Megatron-LM does so nowhere, whatever the model.
TEST_CASE("Collectives of tensor parallelism behind kernels") {
  const Framework& bridge = row_of("megatron-bridge");
  CHECK(bridge.parallel.overlaps_tensor(false, DType::mxfp8));
  CHECK_FALSE(bridge.parallel.overlaps_tensor(false, DType::nvfp4));
  CHECK_FALSE(bridge.parallel.overlaps_tensor(true, DType::bf16));
  CHECK(row_of("nemo-mlperf").parallel.overlaps_tensor(true, DType::nvfp4));
  CHECK_FALSE(row_of("megatron-lm").parallel.overlaps_tensor(false, DType::bf16));
}

}  // namespace shardwise
