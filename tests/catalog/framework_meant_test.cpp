// Which framework row the words of a record mean: its name for one, and its note.
#include <filesystem>
#include <map>
#include <string>

#include "catalog/framework.hpp"
#include "catalog/run_record.hpp"
#include "catalog/text_match.hpp"
#include "tests/catalog/framework_rows.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {

TEST_CASE("Every framework that a published run names has a row") {
  auto runs = load_all_runs(std::filesystem::path(source_dir()) / "catalog");
  REQUIRE(runs);
  std::map<std::string, int> unknown;
  for (const RunRecord& run : runs->records)
    if (run.training.framework && meant(*run.training.framework).empty())
      ++unknown[*run.training.framework];
  for (const auto& [text, count] : unknown) {
    INFO(text << " (" << count << " runs)");
    CHECK(false);
  }
}

TEST_CASE("Free text means the row with the longest name in it") {
  CHECK(meant("megatron") == "megatron-lm");
  CHECK(meant("megatron-deepspeed") == "megatron-deepspeed-2022");
  CHECK(meant("atorch (DeepSpeed 3D)") == "megatron-deepspeed-2022");
  CHECK(meant("atorch (FSDP)") == "atorch");
  CHECK(meant("TouchNet (torchtitan-based)") == "torchtitan");
  CHECK(meant("run_fsdp_qlora.py") == "trl-2024");  // TRL's script, not the fsdp_qlora project
  CHECK(meant("fsdp_qlora (PyTorch FSDP1 + bitsandbytes + PEFT)") == "fsdp_qlora");
  CHECK(meant("LLaMA-Factory + Unsloth") == "unsloth-2024");
  CHECK(meant("transformers+deepspeed+peft (Qwen finetune.py)") == "qwen-finetune");
  CHECK(meant("transformers+peft +deepspeed") == "hf-deepspeed");
  CHECK(meant("nemo-automodel") == "nemo-automodel");
  CHECK(meant("Megatron Core in an own loop") == "megatron-core-loop");
  CHECK(meant("Transformer Engine in an own loop") == "pytorch-loop-te");
  CHECK(meant("own loop, loss in checkpointed slices") == "pytorch-loop-checkpointed-loss");
  CHECK(meant("torchtitan-qwen3-2025") == "torchtitan-qwen3-2025");
  CHECK(meant("verl SFT trainer") == "verl-sft");
  CHECK(meant("LLM Foundry") == "llm-foundry");
  CHECK(meant("Megatron Bridge") == "megatron-bridge");
  CHECK(meant("Hugging Face Trainer") == "hf-trainer");
  CHECK(meant("Hugging Face nanotron") == "nanotron");
  CHECK(meant("a framework nobody knows").empty());
}

// An engine's name, or its stage's, may be longer than that of the trainer that runs on it:
// "deepspeed zero" has 14 letters, "llama-factory" 13, "axolotl" 7.
TEST_CASE("A trainer named with what it runs on is the trainer, in any order") {
  CHECK(meant("deepspeed zero") == "deepspeed");
  CHECK(meant("LLaMA-Factory (DeepSpeed ZeRO-3)") == "llama-factory-deepspeed");
  CHECK(meant("DeepSpeed ZeRO-3 under LLaMA-Factory") == "llama-factory-deepspeed");
  CHECK(meant("ms-swift + DeepSpeed") == "ms-swift-deepspeed");
  CHECK(meant("ms-swift megatron") == "megatron-swift");
  CHECK(meant("axolotl, DeepSpeed ZeRO-3") == "axolotl-deepspeed");
  CHECK(meant("OpenRLHF with DeepSpeed ZeRO-3") == "openrlhf");
  CHECK(meant("verl FSDP2") == "verl-sft");
  CHECK(meant("transformers Trainer + PEFT + deepspeed") == "hf-deepspeed");
}

// "accelerate & deepspeed" and "transformers & deepspeed" name two engines, 21 and 23 letters.
TEST_CASE("A trainer named with two engines is the trainer") {
  CHECK(meant("Axolotl with Accelerate and DeepSpeed") == "axolotl-deepspeed");
  CHECK(meant("ms-swift (transformers, deepspeed)") == "ms-swift-deepspeed");
  CHECK(meant("OpenRLHF (transformers, DeepSpeed)") == "openrlhf");
  CHECK(meant("LlamaFactory, transformers, DeepSpeed") == "llama-factory-deepspeed");
  CHECK(meant("Unsloth + TRL + DeepSpeed") == "unsloth");
  CHECK(meant("NeMo RL (DTensor, transformers)") == "nemo-rl-dtensor");
  CHECK(meant("verl, FSDP2 and transformers") == "verl-sft");
  CHECK(meant("Hugging Face Accelerate with Megatron-LM") == "megatron-lm");
  CHECK(meant("GPT-NeoX with DeepSpeed and PyTorch FSDP") == "gpt-neox");
  CHECK(meant("TRL SFTTrainer, transformers, DeepSpeed") == "hf-deepspeed");  // engines alone
  CHECK(meant("TRL with FSDP") == "pytorch-fsdp1");
}

// NeMo RL's supervised fine-tuning has dtensor_cfg on and megatron_cfg off (examples/configs/
// sft.yaml).
TEST_CASE("NeMo RL trains by DTensor unless Megatron is named") {
  CHECK(meant("NeMo-RL") == "nemo-rl-dtensor");
  CHECK(meant("NeMo RL, Megatron") == "nemo-rl-megatron");
  CHECK(meant("nemo-rl", "SFT with the Megatron backend") == "nemo-rl-megatron");
  CHECK(meant("NeMo Framework") == "megatron-bridge");
}

TEST_CASE("A note may narrow the row, and only the row that it refines") {
  CHECK(meant("megatron", "Megatron-Bridge, NeMo container 26.04") == "megatron-bridge");
  CHECK(meant("megatron", "NeMo container 24.07") == "megatron-bridge");
  // the longest of the words that fit
  CHECK(meant("megatron", "Megatron-Bridge recipes, 0.1.0rc4") == "megatron-bridge-recipes");
  CHECK(meant("megatron", "Megatron-Kwai") == "megatron-kwai");
  CHECK(meant("megatron", "Megatron-LM of April 2021") == "megatron-lm-2021");
  CHECK(meant("ms-swift", "NeMo container 24.07") == "ms-swift");
  CHECK(meant("torchtitan", "torchtitan v0.2.2, driver 570") == "torchtitan-0.2.2");
  CHECK(meant("torchtitan", "torchtitan of July 2026, eager") == "torchtitan-chunked-loss");
  CHECK(meant("torchtitan", "torchtitan 1690e0ae (May 2026)") == "torchtitan-chunked-loss");
  CHECK(meant("torchtitan", "torchtitan of 2026-12-01") == "torchtitan-chunked-loss");
  CHECK(meant("torchtitan", "commit of 2025-03; read 2026-11-21") == "torchtitan");
  CHECK(meant("torchtitan", "commit of March 2025, published in June 2026") == "torchtitan");
  CHECK(meant("picotron", "scaled_dot_product_attention, eager") == "picotron-sdpa");
}

// Without a wrap policy the whole model is a unit; "one unit per block" is something else.
TEST_CASE("FSDP1 without a wrap policy has a row of its own") {
  CHECK(meant("pytorch fsdp", "FSDP FULL_SHARD in one unit (no wrap policy)") ==
        "pytorch-fsdp1-one-unit");
  CHECK(meant("pytorch fsdp", "FSDP1 FULL_SHARD, one unit per block") == "pytorch-fsdp1");
  CHECK_FALSE(row_of("pytorch-fsdp1-one-unit").sharding.parameters.reshard_after_forward);
}

// deepspeed -> its own model -> that with overlap_comm; TRL of 2024 -> of 2026 -> before 1.13.
TEST_CASE("A note may narrow the row that it has narrowed") {
  CHECK(meant("deepspeed", "own GPT-like model, buckets of 5e7") == "deepspeed-own-model");
  CHECK(meant("deepspeed", "own GPT-like model, overlap_comm true") ==
        "deepspeed-own-model-overlap");
  CHECK(meant("deepspeed", "overlap_comm true") == "deepspeed");
  CHECK(meant("TRL SFTTrainer", "TRL 1.7.1, transformers 5.13.0") == "trl-1.12");
  CHECK(meant("TRL SFTTrainer", "TRL 1.13, October 2026") == "trl");
  CHECK(meant("TRL SFTTrainer") == "trl-2024");
}

// Its pin was bitsandbytes 0.42 until 0.44.0 of December 2024 (LitGPT @d2ed13c3 pyproject.toml).
TEST_CASE("LitGPT's name is that of today, a record of 2024 has the kernels of then") {
  CHECK(meant("litgpt") == "litgpt");
  CHECK_FALSE(row_of("litgpt").quantized.linear_keeps_input);
  CHECK(meant("litgpt", "LitGPT of April to September 2024, bitsandbytes 0.42") == "litgpt-2024");
  CHECK(row_of("litgpt-2024").quantized.linear_keeps_input);
  CHECK(row_of("litgpt-2024").quantized.four_bit_unpacking == LaneLoop::four_bit_branches);
  CHECK(meant("litgpt", "LitGPT commit 8641822 (Oct 2023)") == "litgpt-2023");
}

// from_pretrained without a dtype: fp32 until transformers 4.57.6 (modeling_utils.py:4628), since
// 5.0.0 (26 January 2026) as stored (:3934-3935).
TEST_CASE("The Trainer's name is that of transformers 5, what is dated is not") {
  CHECK(meant("transformers") == "hf-trainer");
  CHECK(meant("transformers DDP", "transformers 5.15.1, torch 2.11.0") == "hf-trainer");
  CHECK(meant("transformers", "transformers 4.57.1, torch 2.8.0") == "hf-trainer-4");
  CHECK(meant("transformers", "torch 2.4.1, transformers 4.45.2") == "hf-trainer-2024");
  CHECK(meant("accelerate DDP", "the post is of June 2022") == "hf-trainer-2024");
  CHECK(meant("LLaMA-Factory", "LLaMA-Factory 0.8.4.dev0, transformers 4.43.4") ==
        "llama-factory-2024");
  CHECK(meant("LLaMA-Factory", "December 2025") == "llama-factory");
  CHECK(row_of("hf-trainer-2024").formats.finetune_weights == WeightRecipe::fp32_with_half_compute);
  // The weights' own format, and so their gradients', which DDP sends.
  const Framework whole = resolved_for(row_of("hf-trainer"), Method::full, DType::bf16);
  CHECK(whole.formats.finetune_weights == WeightRecipe::pure_half);
  CHECK(whole.gradients.dtype == DType::bf16);
  CHECK(whole.gradients.reduce_dtype == DType::bf16);
  CHECK(resolved_for(row_of("hf-trainer"), Method::lora, DType::bf16).gradients.reduce_dtype ==
        DType::fp32);
  CHECK(resolved_for(row_of("hf-trainer"), Method::pretrain, DType::bf16).gradients.dtype ==
        DType::fp32);
  // torch/amp/grad_scaler.py:275 refuses 16-bit gradients.
  const Framework scaled = resolved_for(row_of("hf-trainer"), Method::full, DType::fp16);
  CHECK(scaled.formats.finetune_weights == WeightRecipe::fp32_with_half_compute);
  CHECK(scaled.gradients.dtype == DType::fp32);
}

// Records that say no more are of 2021 and 2022; who names the framework today has the later code.
TEST_CASE("Megatron-DeepSpeed of August 2023 on is another row") {
  CHECK(meant("megatron-deepspeed", "DeepSpeed 0.12.6, torch 2.2.1") == "megatron-deepspeed");
  CHECK(meant("megatron-deepspeed", "of March 2024") == "megatron-deepspeed");
  CHECK(meant("megatron-deepspeed", "July 2023 sync") == "megatron-deepspeed");
  CHECK(meant("megatron-deepspeed", "BigScience fork") == "megatron-deepspeed-2022");
  CHECK(meant("megatron-deepspeed", "Megatron-LM and DeepSpeed, 2021") ==
        "megatron-deepspeed-2022");
  // Without ZeRO bf16 goes through the BF16 optimizer, whose gradients are fp32 and stay; with it
  // they have the model's format and are released (DeepSpeed 0.12.6 runtime/engine.py:879-883).
  const Framework& whole = row_of("megatron-deepspeed");
  const Framework& sharded = row_of(whole.with_zero);
  CHECK(whole.gradients.dtype == DType::fp32);
  CHECK(whole.gradients.life == GradientLife::persistent);
  CHECK(whole.gradients.copy_life == GradientCopyLife::run);
  CHECK(sharded.gradients.dtype == DType::bf16);
  CHECK(sharded.gradients.life == GradientLife::per_step);
}

TEST_CASE("Words match whole and whatever their case") {
  CHECK(holds_words("RTX-4090", "rtx-4090"));
  CHECK(holds_words("A100-SXM4-80GB", "a100"));
  CHECK_FALSE(holds_words("L40S-48GB", "l40"));
  CHECK_FALSE(holds_words("A100", "a10"));
  CHECK(holds_words("a10 a100", "a100"));
  CHECK_FALSE(holds_words("anything", ""));
  CHECK_FALSE(holds_words("", "a"));
}

}  // namespace shardwise
