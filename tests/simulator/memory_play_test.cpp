// The memory play: what the allocator's stream of a step depends on beside the plan.
#include "simulator/memory/memory_play.hpp"

#include <numeric>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {
namespace {

std::int64_t logit_bytes(const Workload& w) {
  std::int64_t sum = 0;
  for (const Tensor& t : head_graph(w, plan_of(1), false).tensors)
    if (t.category == MemoryCategory::logits) sum += t.bytes;
  return sum;
}

}  // namespace

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

// 2 B of 16-bit logits, and eagerly 4 B each of their fp32 copy and the log-softmax, per token and
// word; the loss itself has 4 B.
TEST_CASE("A compiled loss keeps the 16-bit logits only", "[memory_play]") {
  Workload w = pretraining(llama(1, 256, 4, 4, 1024, 1000), 64);
  w.framework.loss.kind = LossKind::dense;
  CHECK(logit_bytes(w) == 64 * 1000 * 10 + 4);
  w.framework.layers.kernels = KernelStyle::compiled;
  w.framework.loss.compiled = true;
  CHECK(logit_bytes(w) == 64 * 1000 * 2 + 4);
  w.framework.layers.kernels = KernelStyle::eager;
  CHECK(logit_bytes(w) == 64 * 1000 * 10 + 4);
  w.framework.loss.compiled_alone = true;
  CHECK(logit_bytes(w) == 64 * 1000 * 2 + 4);
}

// While backward makes the 16-bit gradient of the logits, 2 B per token and word, the zeros that
// autograd hands it for the returned logits have as much. A class whose loss ends the graph, where
// it runs, returns them from the graph before. Until PyTorch 2.4 the labels' gradients have 4 B.
TEST_CASE("What is compiled and returns logits takes zeros as their gradient", "[memory_play]") {
  Workload w = pretraining(llama(1, 256, 4, 4, 1024, 1000), 64);
  w.framework.loss.kind = LossKind::dense;
  w.framework.loss.compiled_alone = true;
  const auto in_backward = [&] {
    const LayerGraph head = head_graph(w, plan_of(1), false);
    for (const Operator& op : head.operators)
      if (op.name == "compiled_cross_entropy") return op.backward_temporary;
    return Bytes(-1);
  };
  CHECK(in_backward() == Bytes(0));
  w.framework.loss.returns_logits = true;
  CHECK(in_backward() == Bytes(2 * 64 * 1000 * 2));
  w.model.code.loss_ends_graph = true;
  CHECK(in_backward() == Bytes(2 * 64 * 1000 * 2));
  w.framework.layers.runs_transformers = true;
  CHECK(in_backward() == Bytes(0));
  w.framework.loss.scatters_labels = true;
  CHECK(in_backward() == Bytes(64 * 1000 * 4));
}

// 2 B per token and word: while the fp32 copy is the loss's own, the 16-bit logits live through its
// forward, and where the training loop keeps the model's output it is these that last.
TEST_CASE("A loss that makes its own fp32 copy leaves the 16-bit logits alive", "[memory_play]") {
  Workload w = pretraining(llama(1, 256, 4, 4, 1024, 1000), 64);
  w.framework.loss.kind = LossKind::dense;
  const auto beside_softmax = [&] {
    const LayerGraph head = head_graph(w, plan_of(1), false);
    for (const Operator& op : head.operators)
      if (op.name == "log_softmax") return op.forward_temporary;
    return Bytes(-1);
  };
  const auto kept_by_cast = [&] {
    const LayerGraph head = head_graph(w, plan_of(1), false);
    std::int64_t bytes = 0;
    for (const Operator& op : head.operators)
      if (op.name == "upcast")
        for (const TensorIndex t : op.saves)
          bytes += head.tensors[static_cast<std::size_t>(t)].bytes;
    return bytes;
  };
  CHECK(beside_softmax() == Bytes(0));
  w.framework.loss.upcasts_itself = true;
  CHECK(beside_softmax() == Bytes(64 * 1000 * 2));
  w.framework.loss.output_holds_logits = true;
  CHECK(beside_softmax() == Bytes(0));
  CHECK(kept_by_cast() == 64 * 1000 * 2);
  w.framework.loss.upcasts_itself = false;
  CHECK(kept_by_cast() == 64 * 1000 * 4);
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

// fp32 gradients that are reduced in 16 bits: the result has 2 bytes for each of their 4.
TEST_CASE("A reduction's result is a tensor of its own, in its own format", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.gradients.reduce_dtype = DType::fp16;
  const StageMemory without = first_stage(w, plan_of(2));
  w.framework.gradients.bucket_copies = true;
  CHECK(first_stage(w, plan_of(2)).loaded == without.loaded + Bytes(without.state.gradients / 2));
}

// The 16-bit copies of 4-byte gradients have 2 bytes for each of their 4; they are still there when
// the step has ended, where a layer's would have gone with the layer.
TEST_CASE("Copies of gradients may stay until the next backward", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.gradients.copy_while_accumulating = true;
  const StageMemory without = first_stage(w, plan_of(1));
  w.framework.gradients.copy_life = GradientCopyLife::next_backward;
  const StageMemory with = first_stage(w, plan_of(1));
  // Blocks whose remainder is at most 1 MiB are handed out whole.
  CHECK(gib(with.after_step - without.after_step) ==
        Approx(gib(Bytes(without.state.gradients / 2))).epsilon(0.03));
  // The head's matrix, 32000 x 512, is widened to fp32 when all copies are there.
  CHECK(with.steady.allocated >= with.after_step + Bytes(4 * 32000 * 512));
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

// When backward ends all gradients are there, and of the tied table, 32000 x 512 in 16 bits, the
// head's, the embedding's and their sum. 64 tokens leave little else.
TEST_CASE("A tied table's gradients wait for each other", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 32000), 64);
  w.model.tied_embeddings = true;
  const StageMemory tied = first_stage(w, plan_of(1));
  CHECK(gib(tied.steady.allocated - tied.after_step) ==
        Approx(gib(Bytes(tied.state.gradients + 2 * 2 * 32000 * 512))).epsilon(0.02));
  w.framework.gradients.fusion = true;  // each is added as it is made
  CHECK(first_stage(w, plan_of(1)).steady.allocated < tied.steady.allocated);
}

// Two microbatches are in flight on the first of two stages again after the first has gone back and
// has made the gradients: as much as where those are always there.
TEST_CASE("Gradients of a step stand beside all microbatches in flight", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 32000), 2048);
  ParallelPlan plan = plan_of(1, 1, 2);
  plan.microbatches = 4;
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.fusion = true;
  const double always = gib(first_stage(w, plan).steady.allocated);
  w.framework.gradients.life = GradientLife::per_step;
  CHECK(gib(first_stage(w, plan).steady.allocated) == Approx(always).epsilon(0.02));
}

// At the end of a step all gradients stand beside weights and states; stepped as they are made, one
// at a time does. Without them little is left of 64 tokens: 64 x 32000 logits in 14 bytes are 27
// MiB, the largest gradient is 31 MiB, all of them are 93 MiB.
TEST_CASE("Gradients that are stepped in backward never stand together", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 32000), 64);
  const StageMemory kept = first_stage(w, plan_of(1));
  w.framework.gradients.life = GradientLife::in_backward;
  const StageMemory stepped = first_stage(w, plan_of(1));
  CHECK(stepped.after_step == kept.after_step);
  CHECK(kept.steady.allocated >= kept.after_step + Bytes(kept.state.gradients));
  CHECK(stepped.steady.allocated < stepped.after_step + Bytes(kept.state.gradients * 3 / 4));
}

// LOMO widens a gradient and its weight when the next gradient is there: 4 + 4 bytes for each
// element of the largest weight, a head of 32000 x 512, and AdaLomo a third such tensor. The head
// is stepped first, beside the weights and what 64 tokens keep of two layers (a few MiB).
TEST_CASE("Optimizers that step in backward widen one tensor at a time", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 64);
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  const auto played = [&](const char* optimizer) {
    w.step_with(*optimizer_named(optimizer));
    return first_stage(w, plan_of(1));
  };
  const std::int64_t table = 32000 * 512;
  const StageMemory lomo = played("lomo");
  CHECK(lomo.state.optimizer == 0);
  const std::int64_t few = 8 << 20;
  const auto beside = [](const StageMemory& m) {
    return (m.steady.allocated - m.after_step).value;
  };
  CHECK(beside(lomo) >= 8 * table);
  CHECK(beside(lomo) < 8 * table + few);
  const StageMemory adalomo = played("adalomo");
  CHECK(beside(adalomo) >= 12 * table);
  CHECK(beside(adalomo) < 12 * table + few);
  CHECK(adalomo.state.optimizer > 0);
  CHECK(gib(Bytes(adalomo.state.optimizer)) < 0.001);
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

// A bucket of 1 GiB is 1 GiB from ZeRO-2 on, with one GPU as well; before, it is as long as the
// gradients that it takes. It stands in backward passes alone, whose end is the peak then: half of
// it takes half a GiB less.
TEST_CASE("Buckets are as long as configured from ZeRO-2 on", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.gradients.bucket = Bytes(1 << 30);
  ParallelPlan one = plan_of(1), two = plan_of(2);
  one.zero_stage = 2;
  two.zero_stage = 1;
  const StageMemory alone = first_stage(w, one), apart = first_stage(w, two);
  w.framework.gradients.reduce_buffers = 1;
  const std::vector<std::int64_t> all{apart.state.unsharded_gradients};
  CHECK(pass_buffers(w, two, apart.state) == all);
  const StageMemory whole = first_stage(w, one);
  CHECK(whole.loaded == alone.loaded);
  w.framework.gradients.bucket_stage_2 = Bytes(1 << 29);
  CHECK(whole.steady.allocated - first_stage(w, one).steady.allocated == Bytes(1 << 29));
  CHECK(pass_buffers(w, two, apart.state) == all);
}

// Of two layers, the keys and values of 256 tokens: 2 x 2 x 256 x 512 x 2 B = 2 MiB. Checkpoints
// keep none of them; a model's output that holds them has them when forward has ended, those of the
// microbatch before no more.
TEST_CASE("A model's output may hold the keys and values of all layers", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  ParallelPlan plan = plan_of(1);
  plan.recompute = "full";
  plan.microbatches = 2;
  const auto after_forward = [&] {
    const MemoryBreakdown held = first_stage(w, plan).after_forward;
    return std::accumulate(held.begin(), held.end(), std::int64_t{0});
  };
  w.framework.loss.kind = LossKind::dense;
  const std::int64_t without = after_forward();
  w.framework.loss.output_holds_keys = true;
  w.framework.loss.output_life = OutputLife::next_loss;
  CHECK(after_forward() == without + 2 * 2 * 256 * 512 * 2);
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

// The fp32 logits of a microbatch, 256 x 32000 x 4 B = 31.25 MiB in a block of 32 that is too small
// to be split, are there until those of the next one have been made, in the next step if it was the
// last.
TEST_CASE("A training loop may hold the logits until it has others", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.loss.kind = LossKind::dense;
  w.framework.loss.output_holds_logits = true;
  ParallelPlan plan = plan_of(1);
  plan.microbatches = 2;
  const Bytes once = first_stage(w, plan).after_step;
  w.framework.loss.output_life = OutputLife::next_output;
  CHECK(first_stage(w, plan).after_step == once + Bytes(32 << 20));
}

// 64 tokens of 1,000 words: in 16 tokens at a time the gradients of 16 are there, 2 B and 4 B. Of
// adapters alone: litgpt's other scripts take the head as a whole.
TEST_CASE("Where head and loss go by slices, one slice has a gradient", "[memory_play]") {
  Workload w = pretraining(llama(1, 256, 4, 4, 1024, 1000), 64);
  w.framework.loss.kind = LossKind::dense;
  w.framework.loss.head_slice = 16;
  const auto gradients = [&] {
    std::int64_t bytes = 0;
    for (const Tensor& t : head_graph(w, plan_of(1), false).tensors)
      if (t.category == MemoryCategory::logits && t.bytes > 4) bytes += t.gradient_bytes;
    return bytes;
  };
  CHECK(logit_bytes(w) == 64 * 1000 * 10 + 4);
  CHECK(gradients() == 64 * 1000 * 10);
  w.method = Method::lora;
  CHECK(gradients() == 16 * 1000 * 10);
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
