// The memory play: what the allocator's stream of a step depends on beside the plan.
#include "simulator/memory/memory_play.hpp"

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {

// Backward through 8 checkpointed layers begins with 8 inputs [tokens, h]; at the last of them 1 is
// left, beside the inputs of 7 that hooks keep and the gradients of 6; that of the seventh is the
// one that comes in, which is there anyhow: 1 + 7 + 6. The re-run takes the same. A small
// vocabulary leaves the peak to the layers.
TEST_CASE("Hooks of frozen units keep what reentrant checkpoints have re-run", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 1024, 64), 2048);
  w.method = Method::lora;
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  plan.recompute = "full";
  const Bytes freed = first_stage(w, plan).steady.allocated;
  w.framework.sharding.frozen_units_keep_inputs = true;
  const Bytes kept = first_stage(w, plan).steady.allocated;
  // By then there are gradients of adapters, too.
  CHECK(gib(kept - freed) == Approx(gib(Bytes((1 + 13 - 8) * 2048 * 512 * 2))).epsilon(0.02));
  plan.zero_stage = 2;  // weights are whole: nothing is resharded
  const Bytes whole = first_stage(w, plan).steady.allocated;
  w.framework.sharding.frozen_units_keep_inputs = false;
  CHECK(whole == first_stage(w, plan).steady.allocated);
}

// A batch of half the length leaves blocks that one of full length cannot use: the fp32 logits of
// 1024 tokens are 1024 x 32000 x 4 B = 125 MiB, those of 2048 tokens twice that. The optimizer's
// states, which would move into what is left, are on the host; small tensors take some of it.
TEST_CASE("Batches of unlike length leave cached blocks behind", "[memory_play]") {
  SmallPlay full(2048, "none"), half(1024, "none");
  full.plan.offload.optimizer = half.plan.offload.optimizer = true;
  const StageMemory alone = full.play();
  const StageMemory after = full.play({{}, {&half.partition}});
  // Blocks whose remainder is at most 1 MiB are handed out whole: that may differ.
  CHECK(gib(after.steady.allocated) == Approx(gib(alone.steady.allocated)).epsilon(0.02));
  CHECK(after.steady.reserved >= alone.steady.reserved + Bytes(100 << 20));
  CHECK(after.steady.reserved <= alone.steady.reserved + half.play().steady.reserved);
}

// The play ends at the first layer or slot after more than L has been allocated. At L = the peak
// nothing exceeds it and every figure is there; one byte below, the play is given up somewhere,
// with a peak that says why and that is no more than the whole play's.
TEST_CASE("A play is given up where tensors exceed what may be asked of them", "[memory_play]") {
  for (const char* recompute : {"none", "full"}) {
    const SmallPlay run(512, recompute);
    const StageMemory whole = run.play();
    const Bytes most = std::max(whole.first_step.allocated, whole.steady.allocated);
    const StageMemory allowed = run.play({{}, {}, most});
    CHECK_FALSE(allowed.given_up);
    CHECK(allowed.steady.reserved == whole.steady.reserved);
    CHECK(allowed.after_step == whole.after_step);
    for (const Bytes less : {most - Bytes(1), Bytes(most.value / 2), Bytes(1)}) {
      const StageMemory given = run.play({{}, {}, less});
      CHECK(given.given_up);
      CHECK(given.peak().allocated > less);
      CHECK(given.peak().allocated <= most);
    }
  }
}

TEST_CASE("One block in two is checkpointed, the first of each pair", "[memory_play]") {
  const SmallPlay run(256, "one-in-2-layers");
  const ModelChunk& chunk = run.partition.stages.front().front();
  REQUIRE(chunk.layers.size() == 6);  // embedding, four blocks, head
  for (std::size_t block = 0; block < 4; ++block)
    CHECK(chunk.layers[1 + block].definition->checkpointed == (block % 2 == 0));
}

// Of a stage's five blocks the first three.
TEST_CASE("So many blocks of a stage are checkpointed, its first ones", "[memory_play]") {
  const Workload w = pretraining(llama(10, 512, 8, 8, 1024, 1000), 256);
  ParallelPlan plan = plan_of(2);
  plan.data = 1;
  plan.pipeline = 2;
  plan.microbatches = 2;
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("blocks-3"));
  for (const auto& stage : partition.stages) {
    std::vector<bool> checkpointed;
    for (const ChunkLayer& layer : stage.front().layers)
      if (layer.definition->role == LayerRole::block)
        checkpointed.push_back(layer.definition->checkpointed);
    CHECK(checkpointed == std::vector<bool>{true, true, true, false, false});
  }
}

// Two buffers of 256 tokens, 512 wide, in 16 bits.
TEST_CASE("Buffers that sequences are gathered into stay", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  ParallelPlan plan = plan_of(1, 2);
  plan.sequence_parallel = true;
  const Bytes without = first_stage(w, plan).loaded;
  w.framework.parallel.keeps_gather_buffers = true;
  CHECK(first_stage(w, plan).loaded == without + Bytes(2 * 256 * 512 * 2));
}

// 1024 x 1024 bytes in each of two layers; nothing where the framework does not run the model's
// own code.
TEST_CASE("A model's own code may keep a mask in every layer", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  const Bytes without = first_stage(w, plan_of(1)).loaded;
  w.model.causal_mask_rows = 1024;
  CHECK(first_stage(w, plan_of(1)).loaded == without);
  w.framework.attention.registers_causal_masks = true;
  CHECK(first_stage(w, plan_of(1)).loaded == without + Bytes(2 * 1024 * 1024));
}

// Two microbatches are in flight on the first of two stages when the second forward has ended; each
// has sent 256 x 512 values of 16 bits.
TEST_CASE("What a stage has sent may stay until its backward", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  ParallelPlan plan = plan_of(1, 1, 2);
  plan.microbatches = 4;
  const auto held = [&] {
    std::int64_t sum = 0;
    for (const std::int64_t bytes : first_stage(w, plan).after_forward) sum += bytes;
    return sum;
  };
  const std::int64_t without = held();
  w.framework.parallel.holds_stage_outputs = true;
  CHECK(held() == without + 2 * 256 * 512 * 2);
}

// Of 256 x 512 values of 16 bits: the first of two stages receives gradients only, cut over two
// tensor ranks or not.
TEST_CASE("What a stage receives may have buffers of its own", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  ParallelPlan plan = plan_of(1, 2, 2);
  const Bytes without = first_stage(w, plan).loaded;
  w.framework.parallel.keeps_receive_buffers = true;
  CHECK(first_stage(w, plan).loaded == without + Bytes(256 * 512 * 2 / 2));
  w.framework.parallel.whole_stage_outputs = true;
  CHECK(first_stage(w, plan).loaded == without + Bytes(256 * 512 * 2));
}

// One workspace more, and four where the model has experts.
TEST_CASE("A matmul library of its own keeps workspaces as tensors", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  const ParallelPlan plan = plan_of(1);
  ContextCalibration context;
  context.cublas_workspace = Bytes(1 << 20);
  context.cublas_workspaces = 2;
  const auto workspaces = [&] {
    const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
    const ModelPartition partition =
        partition_model(w, plan, schedule, *recompute_policy(plan.recompute));
    const StageMemory m = play_memory(w, plan, schedule, partition, 0, context, std::nullopt);
    return m.steady.breakdown[static_cast<std::size_t>(MemoryCategory::workspace)] >> 20;
  };
  CHECK(workspaces() == 2);
  w.framework.process.library_workspaces = 1;
  w.framework.process.grouped_workspaces = 4;
  CHECK(workspaces() == 3);
  w.model.moe = MixtureOfExperts{8, 2, 64, 0, false, 0, 1};
  CHECK(workspaces() == 7);
}

// Two fp32 moments of 8 bytes per parameter leave the allocator's sight, and nothing else.
TEST_CASE("Paged optimizer states are not the allocator's", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.formats.pretrain_weights = WeightRecipe::fp32;
  const StageMemory resident = first_stage(w, plan_of(1));
  w.optimizer = optimizer_named("paged-adamw");
  const StageMemory paged = first_stage(w, plan_of(1));
  CHECK(paged.state.optimizer == 0);
  CHECK(paged.state.paged == resident.state.optimizer);
  CHECK(paged.state.paged == 8 * parameter_count(w.model).total);
  CHECK(gib(resident.after_step - paged.after_step) ==
        Approx(gib(Bytes(paged.state.paged))).epsilon(0.01));
}

// Two blocks of 4 x 512^2 + 3 x 512 x 2048 + 2 x 512 weights in 16 bits, whole on every rank until
// backward is through with them.
TEST_CASE("Autograd may keep the gathered weights", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  ParallelPlan plan = plan_of(4);
  plan.zero_stage = 3;
  const auto gathered = [&] {
    return first_stage(w, plan)
        .after_forward[static_cast<std::size_t>(MemoryCategory::gathered_parameters)];
  };
  const std::int64_t usual = gathered();
  w.framework.sharding.parameters.saved_for_backward = true;
  const std::int64_t block = 4 * 512 * 512 + 3 * 512 * 2048 + 2 * 512;
  CHECK(gathered() - usual == 2 * block * 2);
}

// LoRA on fp32 weights: their 16-bit copies, 2 B of 4 x 512^2 + 3 x 512 x 2048 in each of two
// blocks, are on the graph until backward. A checkpointed block has no graph, and autocast caches
// copies of trained weights alone (adapters are the two hundredths).
TEST_CASE("Autocast caches no copies of frozen weights", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.method = Method::lora;
  w.framework.formats.autocast = w.framework.formats.autocast_caches_weights = true;
  w.framework.formats.frozen_dtype = DType::fp32;
  ParallelPlan plan = plan_of(1);
  const auto copies = [&] {
    return first_stage(w, plan)
        .after_forward[static_cast<std::size_t>(MemoryCategory::gathered_parameters)];
  };
  const std::int64_t on_graph = copies();
  plan.recompute = "full";
  const double block = 4 * 512 * 512 + 3 * 512 * 2048;
  CHECK(static_cast<double>(on_graph - copies()) == Approx(2 * block * 2).epsilon(0.03));
}

// Adam's moments in 16 bits, 4 B of each of P parameters; a step has them in fp32 beside, 8 P. With
// one token there are no activations, so the step is the peak.
TEST_CASE("Moments may go to fp32 for a step", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 1);
  w.optimizer = optimizer_named("adamw-bf16-states");
  const StageMemory without = first_stage(w, plan_of(1));
  w.framework.update.widens_moments = true;
  const StageMemory with = first_stage(w, plan_of(1));
  const auto parameters = without.state.stepped_elements;
  CHECK(with.state.optimizer == 4 * parameters);
  CHECK(gib(with.steady.allocated - without.steady.allocated) ==
        Approx(gib(Bytes(8 * parameters))).epsilon(0.1));
  CHECK(with.after_step == without.after_step);
}

// Under tensor parallelism without sequence parallelism two tensors [tokens, h] of a layer are
// summed in place forward. While the GPU is behind, what is marked so and freed cannot be used: the
// allocator takes more; where each layer waits for the GPU it takes as much as without marks.
TEST_CASE("Sums in place are marked, and a wait in each layer frees them", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 1000), 4096);
  ParallelPlan plan = plan_of(1, 2);
  plan.recompute = "full";
  const auto reserved = [&] {
    const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
    const ModelPartition partition =
        partition_model(w, plan, schedule, *recompute_policy(plan.recompute));
    PlayVariation behind;
    behind.lead = {0.0, 100'000};
    return play_memory(w, plan, schedule, partition, 0, {}, std::nullopt, behind).steady.reserved;
  };
  const Bytes plain = reserved();
  w.framework.process.records_streams = true;
  const Bytes marked = reserved();
  CHECK(marked >= plain + Bytes(2 * 7 * 4096 * 512 * 2));
  w.framework.attention.reads_lengths = true;
  CHECK(reserved() < marked);
}

// The first of four stages has four microbatches in flight as soon as four are played, a forward
// and a backward slot each. Where blocks wait for the GPU four times as many are, or the step.
TEST_CASE("More microbatches are played where blocks wait for the GPU", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 1000), 128);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.copy_while_accumulating = false;
  ParallelPlan plan = plan_of(1);
  plan.pipeline = 4;
  const auto slots = [&](int microbatches) {
    plan.microbatches = microbatches;
    return slots_of_step(w, plan, *find_pipeline_schedule("1f1b"), 0).size();
  };
  CHECK(slots(64) == 2 * 4);
  w.framework.process.records_streams = true;
  CHECK(slots(64) == 2 * 4 * 4);
  CHECK(slots(6) == 2 * 6);
}

}  // namespace shardwise
