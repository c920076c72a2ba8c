#include "simulator/parameter_state.hpp"

#include <cstdlib>

#include "simulator/tied_tables.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

std::int64_t model_states(const LayerState& s) {
  return s.weights + s.quantization + s.adapters + s.gradients + s.master + s.optimizer;
}

}  // namespace

// ZeRO, arXiv 1910.02054, table 1 and section 5: 7.5B parameters, 64 ranks, K = 12:
//   baseline (2+2+12) P = 120 GB; P_os 31.4 GB; P_os+g 16.6 GB; P_os+g+p 1.9 GB.
TEST_CASE("model states per rank are those of the ZeRO paper", "[parameter_state]") {
  const Workload w = pretraining(gpt(2, 64, 2), 64);
  LayerParameters parameters;
  parameters.linear = 7'500'000'000;
  ParallelPlan plan = plan_of(64);
  const std::int64_t p = parameters.linear;
  const std::int64_t expected[] = {16 * p, 4 * p + 12 * p / 64, 2 * p + 14 * p / 64, 16 * p / 64};
  const double published_gb[] = {120, 31.4, 16.6, 1.9};
  for (int stage = 0; stage <= 3; ++stage) {
    plan.zero_stage = stage;
    const std::int64_t bytes = model_states(layer_state(w, plan, parameters, true));
    CHECK(bytes == expected[stage]);
    CHECK(static_cast<double>(bytes) / 1e9 == Approx(published_gb[stage]).margin(0.05));
  }
}

TEST_CASE("ZeRO-3 rounds every shard up to whole bytes and never loses one", "[parameter_state]") {
  const Workload w = pretraining(gpt(2, 64, 2), 64);
  LayerParameters parameters;
  parameters.linear = 1'000'003;
  ParallelPlan plan = plan_of(7);
  plan.zero_stage = 3;
  CHECK(7 * layer_state(w, plan, parameters, true).weights >= 2 * parameters.linear);
}

// 2 B of 16 bits each, 4 B where fp32 weights are gathered as stored; from one rank DeepSpeed
// alone.
TEST_CASE("what ZeRO-3 gathers of a layer", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  LayerParameters parameters;
  parameters.linear = 1000;
  ParallelPlan plan = plan_of(8);
  plan.zero_stage = 3;
  CHECK(layer_state(w, plan, parameters, true).gathered == 2000);
  plan.data = 1;
  CHECK(layer_state(w, plan, parameters, true).gathered == 0);
  w.framework.update.clones_partition = true;
  CHECK(layer_state(w, plan, parameters, true).gathered == 2000);
  plan.data = 8;
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  CHECK(layer_state(w, plan, parameters, true).gathered == 2000);
  CHECK(layer_state(w, plan, parameters, true).unsharded_gradients == 2000);
  w.framework.sharding.gathers_as_stored = true;
  CHECK(layer_state(w, plan, parameters, true).gathered == 4000);
  CHECK(layer_state(w, plan, parameters, true).unsharded_gradients == 4000);
}

// 65,536 codes of half a byte over 4 ranks, and 4 bytes for every 64 of them. bitsandbytes'
// constants belong to no parameter: whole on every rank, not gathered and not offloaded. torchao's
// are part of the tensor.
TEST_CASE("constants of 4-bit weights stay or move as their library has them",
          "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  w.framework.sharding.quantized = true;
  LayerParameters parameters;
  parameters.linear = 65'536;
  ParallelPlan plan = plan_of(4);
  plan.zero_stage = 3;
  const std::int64_t codes = 65'536 / 2, constants = 65'536 / 64 * 4;
  const LayerState stays = layer_state(w, plan, parameters, false);
  CHECK(stays.weights == codes / 4);
  CHECK(stays.quantization == constants);
  CHECK(stays.gathered == codes);
  CHECK(stays.offloaded(w.framework) == codes / 4);
  CHECK(stays.left_by_offload(w.framework) == constants);
  w.framework.sharding.moves_constants = true;
  const LayerState moves = layer_state(w, plan, parameters, false);
  CHECK(moves.weights == codes / 4);
  CHECK(moves.quantization == constants / 4);
  CHECK(moves.gathered == codes + constants);
  CHECK(moves.offloaded(w.framework) == (codes + constants) / 4);
  CHECK(moves.left_by_offload(w.framework) == 0);
}

// The recipes of docs/how-it-works.md: bytes per parameter of weight + gradient + master + AdamW.
TEST_CASE("weight recipes store what their frameworks store", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  const auto each = [&](WeightRecipe recipe) {
    w.framework.formats.pretrain_weights = recipe;
    const StoredParameter p = stored_base(w, true, true);
    return p.weight + p.gradient + p.master + p.optimizer;
  };
  w.framework.gradients.dtype = DType::fp32;
  CHECK(each(WeightRecipe::half_with_master) == 18);  // Megatron dist_optimizer.md:16-20
  w.framework.gradients.dtype = DType::bf16;
  CHECK(each(WeightRecipe::half_with_master) == 16);
  CHECK(each(WeightRecipe::fp32_with_half_compute) == 16);
  CHECK(each(WeightRecipe::pure_half) == 8);
  w.framework.gradients.dtype = DType::fp32;  // beside the weights, as picotron accumulates: 2 more
  CHECK(each(WeightRecipe::pure_half) == 10);
}

// FSDP2 reduces in fp32: 16-bit gradients that wait for the last microbatch wait in 4 bytes.
TEST_CASE("a whole gradient waits in the number format of its reduction", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  w.framework.gradients.reduce_dtype = DType::fp32;
  CHECK(stored_base(w, true, true).whole_gradient == 2);
  w.framework.gradients.accumulates_in_reduce_dtype = true;
  CHECK(stored_base(w, true, true).whole_gradient == 4);
  CHECK(stored_base(w, true, true).raw_gradient == 2);
  w.framework.gradients.reduce_dtype = DType::bf16;
  CHECK(stored_base(w, true, true).whole_gradient == 2);
}

// bitsandbytes: NF4 with fp32 absmax per 64 is 0.5625 B per weight, nested 0.515869140625 B.
TEST_CASE("QLoRA stores codes and constants, and nothing for frozen weights beside",
          "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.method = Method::qlora;
  LayerParameters parameters;
  parameters.linear = 64 * 256 * 1024;
  w.adapter.base = Quantization::nf4;
  LayerState s = layer_state(w, plan_of(1), parameters, false);
  CHECK(s.weights == parameters.linear / 2);
  CHECK(s.quantization == parameters.linear / 64 * 4);
  CHECK(s.gradients + s.master + s.optimizer == 0);
  w.adapter.base = Quantization::nf4_double;
  s = layer_state(w, plan_of(1), parameters, false);
  CHECK(s.quantization == parameters.linear / 64 + parameters.linear / (64 * 256) * 4);
  w.adapter.base = Quantization::gptq;  // a fp16 scale and a 4-bit zero per 128
  s = layer_state(w, plan_of(1), parameters, false);
  CHECK(s.weights == parameters.linear / 2);
  CHECK(s.quantization == parameters.linear / 128 * 5 / 2);
}

// 6,400 words of embedding: 4 B once upcast, 2 B where the trainer casts them back.
TEST_CASE("tables beside quantised weights are fp32 unless cast back", "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  LayerParameters table;
  table.other = 6400;
  w.framework.quantized.upcasts_unquantized = true;
  CHECK(layer_state(w, plan_of(1), table, false).weights == 4 * 6400);
  w.framework.quantized.recasts_tables = true;
  CHECK(layer_state(w, plan_of(1), table, false).weights == 2 * 6400);
}

TEST_CASE("quantised weights are sharded only where the framework can", "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  LayerParameters parameters;
  parameters.linear = 1 << 20;
  ParallelPlan plan = plan_of(4);
  plan.zero_stage = 3;
  w.framework.sharding.quantized = false;
  CHECK(layer_state(w, plan, parameters, false).weights == (1 << 20) / 2);
  w.framework.sharding.quantized = true;
  CHECK(layer_state(w, plan, parameters, false).weights == (1 << 20) / 8);
}

// Of 1 Mi weights in matrices and 1 Mi in experts: 2 B each for the frozen copy, over the ranks
// that share the weights, and 4 B of gradient buffers where the framework makes them. Adapters
// compare with their own base.
TEST_CASE("preference training holds a second model", "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.method = Method::full;
  LayerParameters p;
  p.linear = p.expert = 1 << 20;
  const auto more = [&](const ParallelPlan& plan) {
    Workload compared = w;
    compared.prefer(preference_named("dpo"));
    return layer_state(compared, plan, p, true).weights - layer_state(w, plan, p, true).weights;
  };
  ParallelPlan sharded = plan_of(4);
  sharded.zero_stage = 3;
  CHECK(more(plan_of(4)) == 2 * (2 << 20));
  CHECK(more(sharded) == 2 * (2 << 20) / 4);
  w.framework.gradients.reference_has_gradients = true;
  w.framework.gradients.dtype = DType::fp32;
  CHECK(more(plan_of(4)) == (2 + 4) * (2 << 20));
  w.method = Method::lora;
  CHECK(more(plan_of(4)) == 0);
}

// A matrix of 4096 x 1024 in pure bf16, in bytes:
//   moments of r x 4096 and a projection of r x 1024, for r = 128: 2 (2 r 4096) + 2 r 1024
//   the same with moments of 1 + 4/256 bytes each: 2 (1.015625 r 4096) + 2 r 1024
//   factors: 4 (4096 + 1024)
// apollo-torch 1.0.3, galore-torch 1.0, schedulefree 1.4, lomo-optim 0.1.1, bitsandbytes 0.50 and
// torchao 0.18 come to the same where they step an nn.Linear of other sides (torch 2.15, on a CPU).
TEST_CASE("what each optimizer keeps of a matrix", "[parameter_state]") {
  constexpr std::int64_t n = 4096 * 1024;
  struct Row {
    const char* optimizer;
    std::int64_t matrix, table;  // bytes of as many elements in either
  };
  const Row rows[] = {{"adamw", 4 * n, 4 * n},
                      {"schedule-free-adamw", 4 * n, 4 * n},
                      {"ademamix", 12 * n, 12 * n},
                      {"ademamix8bit", 3 * n + 12 * n / 256, 3 * n + 12 * n / 256},
                      {"adamw4bit", n + 8 * n / 128, n + 8 * n / 128},
                      {"galore-adamw", 4 * 128 * 4096 + 2 * 128 * 1024, 4 * n},
                      {"apollo-adamw", 4 * 128 * 4096 + 2 * 128 * 1024, 4 * n},
                      {"galore-adamw8bit", 2 * 128 * 4096 + 8 * 128 * 4096 / 256 + 2 * 128 * 1024,
                       2 * n + 8 * n / 256},
                      {"apollo-mini", 4 * 4096 + 2 * 1024, 4 * n},
                      {"lomo", 0, 0},
                      {"adafactor", 4 * (4096 + 1024), 0},
                      {"adalomo", 4 * (4096 + 1024), 0}};
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  LayerParameters matrix, table;
  matrix.linear = table.other = n;
  matrix.linear_sides.count(1024, 4096, 1);
  for (const Row& row : rows) {
    INFO(row.optimizer);
    w.step_with(*optimizer_named(row.optimizer));
    const LayerState state = layer_state(w, plan_of(1), matrix, true);
    CHECK(std::abs(state.optimizer - row.matrix) <= 1);
    CHECK(layer_state(w, plan_of(1), table, true).optimizer == row.table);
    CHECK(layer_state(w, plan_of(1), matrix, false).optimizer == 0);
    // Experts are matrices too.
    LayerParameters experts;
    experts.expert = 8 * n;
    experts.expert_sides.count(4096, 1024, 8);
    CHECK(std::abs(layer_state(w, plan_of(1), experts, true).optimizer - 8 * row.matrix) <= 8);
  }
}

TEST_CASE("an optimizer that steps in backward needs no masters", "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.framework.formats.pretrain_weights = WeightRecipe::half_with_master;
  for (const OptimizerRow& row : optimizer_rows)
    CHECK(row.in_backward ==
          (row.name == "lomo" || row.name == "adalomo" || row.name.ends_with("-layerwise")));
  w.step_with(*optimizer_named("lomo"));
  CHECK(w.framework.gradients.life == GradientLife::in_backward);
  LayerParameters matrix;
  matrix.linear = 1000;
  const LayerState state = layer_state(w, plan_of(1), matrix, true);
  CHECK(state.weights == 2000);
  CHECK(state.master == 0);
  // A rank beyond the shorter side keeps no more than whole moments would take.
  w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  w.step_with(*optimizer_named("galore-adamw"));
  matrix.linear = 100 * 10;
  matrix.linear_sides.count(100, 10, 1);
  CHECK(layer_state(w, plan_of(1), matrix, true).optimizer == 4 * 1000);
}

TEST_CASE("a module trained whole beside adapters is a copy where the framework keeps the first",
          "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.method = Method::lora;
  w.framework.formats.finetune_weights = WeightRecipe::pure_half;
  LayerParameters table;
  table.other = 6400;
  CHECK(layer_state(w, plan_of(1), table, true).weights == 2 * 6400);
  w.framework.adapters.keeps_replaced_modules = true;  // the frozen one in 16 bits as well
  CHECK(layer_state(w, plan_of(1), table, true).weights == 2 * 6400 + 2 * 6400);
  CHECK(layer_state(w, plan_of(1), table, false).weights == 2 * 6400);
}

// Two copies of 2 bytes each, and the table of 2 that both ends had, a half with each of them.
// Where one end is replaced, the other has that table. Of two stages each has one, whole.
TEST_CASE("a tied table that copies replace stays once beside them", "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.method = Method::lora;
  w.framework.formats.finetune_weights = WeightRecipe::pure_half;
  w.framework.adapters.keeps_replaced_modules = true;
  LayerParameters table;
  table.table = 6400;
  w.model.tied_embeddings = true;
  CHECK(shares_table(w));
  w.adapter.targets.lm_head = true;
  CHECK_FALSE(shares_table(w));
  CHECK(layer_state(w, plan_of(1), table, true).weights == 2 * 6400);
  w.adapter.targets.embedding = true;
  CHECK(layer_state(w, plan_of(1), table, true).weights == 2 * 6400 + 6400);
  CHECK(layer_state(w, plan_of(1, 1, 2), table, true).weights == 2 * 6400 + 2 * 6400);
  w.model.tied_embeddings = false;
  CHECK(layer_state(w, plan_of(1), table, true).weights == 2 * 6400 + 2 * 6400);
  w.model.tied_embeddings = true;
  w.framework.adapters.keeps_replaced_modules = false;
  CHECK(shares_table(w));
}

// FSDP2 gathers a table that is a unit again for its backward pass, unless both ends have it.
TEST_CASE("a table is gathered alone where it is not shared", "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.framework.sharding.parameters.embedding_is_unit = true;
  w.framework.sharding.parameters.reshard_after_forward = true;
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  const auto alone = [&] { return embedding_gathers(w, plan).again; };
  w.model.tied_embeddings = false;
  CHECK(alone());
  w.model.tied_embeddings = true;
  CHECK_FALSE(alone());
  w.framework.loading.unties_embeddings = true;
  CHECK(alone());
  w.framework.loading.unties_embeddings = false;
  w.method = Method::lora;
  w.framework.adapters.keeps_replaced_modules = true;
  w.adapter.targets.lm_head = true;
  CHECK(alone());
}

// An engine that keeps fp32 masters (DeepSpeed, Megatron) keeps them for 16-bit adapters as well:
// 2 weight + 2 gradient + 4 master + 8 of Adam. Elsewhere Adam follows the parameter: 2 + 2 + 4.
TEST_CASE("16-bit adapters have a master where the engine has one", "[parameter_state]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.method = Method::lora;
  w.framework.adapters.dtype = DType::bf16;
  w.framework.gradients.dtype = DType::bf16;
  w.framework.formats.finetune_weights = WeightRecipe::half_with_master;
  const auto each = [&] {
    const StoredParameter p = stored_adapter(w);
    return p.weight + p.gradient + p.master + p.optimizer;
  };
  CHECK(each() == 16);
  w.framework.formats.finetune_weights = WeightRecipe::pure_half;
  CHECK(each() == 8);
  w.framework.adapters.dtype = DType::fp32;  // 4 + 4 + 8
  CHECK(each() == 16);
}

// 1,024 frozen weights of experts and as many of a dense layer: nf4 takes half a byte each and a
// constant of four bytes per 64; what bitsandbytes passes over 2 bytes, or 4 where PEFT widens it.
TEST_CASE("Experts that bitsandbytes passes over are kept as they are", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  w.model.moe.emplace();
  w.framework.quantized.upcasts_unquantized = false;
  LayerParameters parameters;
  parameters.linear = parameters.expert = 1024;
  CHECK(layer_state(w, plan_of(1), parameters, false).weights == 2 * 512);
  w.framework.quantized.experts = false;
  LayerState state = layer_state(w, plan_of(1), parameters, false);
  CHECK(state.weights == 512 + 2 * 1024);
  CHECK(state.quantization == 1024 / 64 * 4);
  w.framework.quantized.upcasts_unquantized = true;
  w.framework.quantized.recasts_tables = false;
  CHECK(layer_state(w, plan_of(1), parameters, false).weights == 512 + 4 * 1024);
  w.adapter.base = Quantization::gptq;  // as its checkpoint has them
  CHECK(layer_state(w, plan_of(1), parameters, false).weights == 2 * 512);
}

// fp32 masters 4 B, moments 8 or in 16 bits 4; the lower half of a master beside its bf16 weight 2.
TEST_CASE("masters beside 16-bit moments may lack what the weights have", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  LayerParameters parameters;
  parameters.linear = 1000;
  const auto state = [&] { return layer_state(w, plan_of(1), parameters, true); };
  w.framework.update.keeps_remainders = true;
  CHECK(state().master == 4000);
  w.optimizer = optimizer_named("adamw-bf16-states");
  CHECK(state().master == 2000);
  CHECK(state().optimizer == 4000);
  w.framework.update.keeps_remainders = false;
  CHECK(state().master == 4000);
}

// 16-bit weights 2 B without masters, whose moments follow them, 4, or are fp32 all the same, 8.
TEST_CASE("moments may be wider than the weights that they step", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  LayerParameters parameters;
  parameters.linear = 1000;
  const auto state = [&] { return layer_state(w, plan_of(1), parameters, true); };
  CHECK(state().optimizer == 4000);
  w.optimizer = optimizer_named("adamw-fp32-states");
  CHECK(state().weights == 2000);
  CHECK(state().master == 0);
  CHECK(state().optimizer == 8000);
}

// AdamW reads gradient, weight and two moments and writes the last three back: 7 values in a pass,
// 20 as PyTorch's loop over CPU tensors. Clipped gradients are read for their norm, read and
// written; DeepSpeed reads and writes each, and writes a 16-bit copy of the stepped weight.
TEST_CASE("what an offloaded optimizer moves in host memory", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  Framework& f = w.framework;
  f.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  f.update.clips_gradients = false;
  f.update.fused = true;
  CHECK(host_optimizer_bytes(w) == Approx(7 * 4));
  f.update.fused = false;
  CHECK(host_optimizer_bytes(w) == Approx(20 * 4));
  f.update.clips_gradients = true;
  CHECK(host_optimizer_bytes(w) == Approx((20 + 3) * 4));
  f.formats.pretrain_weights = WeightRecipe::pure_half;
  CHECK(host_optimizer_bytes(w) == Approx((20 + 3) * 2));
  f.formats.pretrain_weights = WeightRecipe::half_with_master;
  f.update.cpu_adam = true;
  CHECK(host_optimizer_bytes(w) == Approx(7 * 4 + 2 + 2 * 4));
}

// A thousand weights kept beside the 16-bit ones: a byte each by rows and, where products ask for
// it, another by columns; MXFP8 two bytes and two scales of 32 elements, 2 x (1 + 1/32) rounded up;
// NVFP4 two half bytes and two scales of 16, 2 x (1/2 + 1/16). Nothing where products are of 16
// bits, and no copy of weights that are sharded.
TEST_CASE("weights of narrow products kept beside wide ones", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.framework.narrow.weights = NarrowWeights::beside;
  LayerParameters parameters;
  parameters.linear = 1000;
  ParallelPlan plan = plan_of(8);
  const auto copies = [&] { return layer_state(w, plan, parameters, true).narrow_copies; };
  CHECK(copies() == 0);
  w.compute = DType::fp8;
  CHECK(copies() == 2000);
  CHECK(layer_state(w, plan, parameters, true).weights == 2000);
  w.framework.narrow.weights_twice = false;
  CHECK(copies() == 1000);
  w.compute = DType::mxfp8;
  CHECK(copies() == 2063);
  w.compute = DType::nvfp4;
  CHECK(copies() == 1125);
  plan.zero_stage = 3;
  CHECK(copies() == 0);
}

// A thousand frozen weights in four bits: two codes of half a byte and two scales for sixteen, and
// no copy beside them.
TEST_CASE("frozen weights in NVFP4 lie by rows and by columns", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.method = Method::qlora;
  w.compute = DType::nvfp4;
  w.adapter.base = Quantization::nvfp4;
  w.framework.narrow.weights = NarrowWeights::stored;
  LayerParameters parameters;
  parameters.linear = 1000;
  const LayerState state = layer_state(w, plan_of(8), parameters, false);
  CHECK(state.weights + state.quantization == 1125);
  CHECK(state.narrow_copies == 0);
}

// A byte each, two where the transposed copy stays and products want it.
TEST_CASE("frozen 8-bit weights keep their transposed copies", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.method = Method::qlora;
  w.compute = DType::fp8;
  w.adapter.base = Quantization::fp8;
  LayerParameters parameters;
  parameters.linear = 1000;
  const auto weights = [&] { return layer_state(w, plan_of(8), parameters, false).weights; };
  CHECK(weights() == 1000);
  w.framework.narrow.keeps_frozen_twice = true;
  CHECK(weights() == 2000);
  w.framework.narrow.weights_twice = false;  // products that read either way, as Blackwell's
  CHECK(weights() == 1000);
}

// In place of the 16-bit ones 1 or 2 bytes each; of 4 bits nobody stores weights, so that they are
// kept beside 2,000 bytes.
TEST_CASE("weights stored in the format of narrow products", "[parameter_state]") {
  Workload w = pretraining(gpt(2, 64, 2), 64);
  w.framework.narrow.weights = NarrowWeights::stored;
  w.compute = DType::fp8;
  LayerParameters parameters;
  parameters.linear = 1000;
  const LayerState twice = layer_state(w, plan_of(8), parameters, true);
  CHECK(twice.weights == 2000);
  CHECK(twice.narrow_copies == 0);
  w.framework.narrow.weights_twice = false;
  CHECK(layer_state(w, plan_of(8), parameters, true).weights == 1000);
  CHECK(layer_state(w, plan_of(8), parameters, true).master == twice.master);
  w.compute = DType::nvfp4;
  const LayerState four = layer_state(w, plan_of(8), parameters, true);
  CHECK(four.weights == 2000);
  CHECK(four.narrow_copies == 1125);
}
