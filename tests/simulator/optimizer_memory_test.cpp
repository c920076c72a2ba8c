// What an optimizer step takes, step by step on a bare ledger.
#include "simulator/memory/optimizer_memory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/model_partition.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t mi = 1 << 20;

struct Step {
  Workload workload = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  Framework& framework = workload.framework;
  ParallelPlan plan = plan_of(1);
  LayerState total;
  MemoryLedger ledger{AllocatorSettings{}};
  std::vector<std::vector<LayerHoldings>> layers{1};
  LayerGraph graph;  // of the layer that was added

  // One tensor of 2 Mi elements, with so many bytes of states.
  void add_layer(std::int64_t states) {
    graph.operators.resize(1);
    graph.operators[0].weight_gradient_elements = 2 * mi;
    LayerHoldings layer;
    layer.graph = &graph;
    layer.state.optimizer = total.optimizer = states;
    layers.front().push_back(std::move(layer));
  }
  // Weights of so many elements each, all their states, and freed blocks of 16 MiB for these.
  void add_unit(const std::vector<std::int64_t>& elements, std::int64_t states, int blocks) {
    for (const std::int64_t n : elements)
      graph.operators.emplace_back().weight_gradient_elements = n;
    LayerHoldings layer;
    layer.graph = &graph;
    layer.state.optimizer = total.optimizer = states;
    layers.front().push_back(std::move(layer));
    std::vector<Holding> freed;
    for (int i = 0; i < blocks; ++i)
      freed.push_back(ledger.open(16 * mi, MemoryCategory::activations));
    for (Holding& block : freed) ledger.close(block);
  }
  void run(std::int64_t largest_gradient) {
    OptimizerMemory(workload, plan, ledger).step(layers, total, largest_gradient);
  }
};

}  // namespace

// Eight bytes for each of the largest gradient's elements, four of them for the overflow before; a
// rank that steps fewer elements than that sees a piece of it.
TEST_CASE("Overflow and norm are read off wide copies", "[optimizer_memory]") {
  Step whole, piece, narrow;
  whole.framework.update.wide_gradient_checks = piece.framework.update.wide_gradient_checks = true;
  whole.total.stepped_elements = narrow.total.stepped_elements = 4 * mi;
  piece.total.stepped_elements = 2 * mi;
  for (Step* step : {&whole, &piece, &narrow}) step->run(3 * mi);
  CHECK(whole.ledger.peak().allocated == Bytes(8 * 3 * mi));
  CHECK(piece.ledger.peak().allocated == Bytes(8 * 2 * mi));
  CHECK(narrow.ledger.peak().allocated == Bytes(0));
  CHECK(whole.ledger.allocated() == Bytes(0));
  // The fp32 copy of 12 MiB and the fp64 copy of 24 MiB are blocks of their own.
  CHECK(whole.ledger.peak().reserved == Bytes(36 * mi));
}

// The norm of 2 Mi elements copies them to fp64, 16 MiB; at stage 3 over two ranks half of them.
// Looked at for infinity and NaN they are in fp32 (8 MiB), a byte says NaN, infinity and either
// (2 MiB each), and that is fp32 again (8): 22 MiB, or 14 of gradients that are fp32. Where older
// checks read x.float() alone, 8 and 16 MiB.
TEST_CASE("ZeRO's norm and its search for NaN hold copies of a gradient", "[optimizer_memory]") {
  const auto peak = [](int stage, bool checks, DType format = DType::bf16, bool older = false) {
    Step step;
    step.plan = plan_of(2);
    step.plan.zero_stage = stage;
    step.framework.update.norm_in_double = true;
    step.framework.update.checks_partition = checks;
    step.framework.gradients.dtype = format;
    step.framework.update.wide_gradient_checks = older;
    step.total.stepped_elements = 8 * mi;
    step.run(2 * mi);
    CHECK(step.ledger.allocated() == Bytes(0));
    return step.ledger.peak().allocated;
  };
  CHECK(peak(0, true) == Bytes(0));
  CHECK(peak(1, false) == Bytes(16 * mi));
  CHECK(peak(2, true) == Bytes(22 * mi));
  CHECK(peak(2, true, DType::fp32) == Bytes(16 * mi));
  CHECK(peak(3, true) == Bytes(8 * mi));
  CHECK(peak(2, true, DType::bf16, true) == Bytes(16 * mi));
}

// Four gradients of 2 Mi elements in 16 bits over two ranks: this one keeps two (8 MiB), flattens
// them (8 MiB) and widens that (16 MiB), which is what it steps: the two have gone by then.
TEST_CASE("ZeRO-1 drops gradients of other ranks before it steps", "[optimizer_memory]") {
  Step step;
  step.plan = plan_of(2);
  step.plan.zero_stage = 1;
  step.framework.update.clones_partition = step.framework.update.fp32_gradient_at_step = true;
  step.total.gradients = 16 * mi;
  step.total.stepped_elements = 4 * mi;
  LayerHoldings layer;
  for (int i = 0; i < 4; ++i)
    layer.unsharded_gradients.push_back(step.ledger.open(4 * mi, MemoryCategory::gradients));
  step.layers.front().push_back(std::move(layer));
  step.run(2 * mi);
  CHECK(step.ledger.allocated() == Bytes(0));
  CHECK(step.ledger.peak().allocated == Bytes(32 * mi));
}

// 1.5e9 elements, of which ZeRO-3 flattens (2 B) and widens (4 B) 1e9 at a time.
TEST_CASE("ZeRO-3 steps by sub-group", "[optimizer_memory]") {
  Step step;
  step.framework.update.clones_partition = step.framework.update.fp32_gradient_at_step = true;
  step.total.stepped_elements = 1'500'000'000;
  step.plan.zero_stage = 2;
  step.run(mi);
  CHECK(gib(step.ledger.peak().allocated) == Approx(9e9 / (1 << 30)).epsilon(0.001));
  step.ledger.reset_peak();
  step.plan.zero_stage = 3;
  step.run(mi);
  CHECK(gib(step.ledger.peak().allocated) == Approx(6e9 / (1 << 30)).epsilon(0.001));
}

// 1.5e9 elements of two fp32 moments, 12e9 bytes. Stepped tensor by tensor, ZeRO-2 holds root and
// quotient of them all, as long again; ZeRO-3 those of 1e9 at a time, 8e9, or with lists the roots
// alone, 4e9.
TEST_CASE("ZeRO-3 holds the temporaries of a sub-group", "[optimizer_memory]") {
  const auto peak = [](int stage, bool lists) {
    Step step;
    step.framework.update.clones_partition = true;
    step.framework.update.fp32_gradient_at_step = step.framework.update.fused = false;
    step.framework.update.foreach = lists;
    step.framework.sharding.parameters.live_parameters = Bytes(2'000'000'000);
    step.total.stepped_elements = 1'500'000'000;
    step.total.optimizer = 12'000'000'000;
    step.plan.zero_stage = stage;
    step.run(mi);
    return gib(step.ledger.peak().allocated);
  };
  const double gb = 1e9 / (1 << 30);
  CHECK(peak(2, false) == Approx((12 + 12) * gb).epsilon(0.001));
  CHECK(peak(3, false) == Approx((12 + 8) * gb).epsilon(0.001));
  CHECK(peak(3, true) == Approx((12 + 4) * gb).epsilon(0.001));
}

// A layer of two matrices, of 3 and 1 Mi elements: four moments of 12, 12, 4 and 4 MiB, which fit
// into freed blocks of 16 MiB where one of 32 MiB would not.
TEST_CASE("States are made parameter by parameter", "[optimizer_memory]") {
  Step step;
  step.add_unit({3 * mi, mi}, 32 * mi, 2);
  step.run(0);
  CHECK(step.ledger.peak().allocated == Bytes(32 * mi));
  CHECK(step.ledger.peak().reserved == Bytes(32 * mi));
}

// Four matrices of 2 Mi elements, 64 MiB of states: eight moments of 8 MiB fit into freed blocks of
// 16 MiB. As one flat parameter they have two of 32 MiB, for which 64 MiB are new.
TEST_CASE("A unit's flat parameter has one tensor of each state", "[optimizer_memory]") {
  const auto reserved = [](bool whole) {
    Step step;
    step.plan = plan_of(2);
    step.plan.zero_stage = 3;
    step.framework.sharding.parameters.steps_whole_units = whole;
    step.add_unit({2 * mi, 2 * mi, 2 * mi, 2 * mi}, 64 * mi, 4);
    step.run(0);
    return step.ledger.peak().reserved;
  };
  CHECK(reserved(false) == Bytes(64 * mi));  // eight moments of 8 MiB, two in each freed block
  CHECK(reserved(true) == Bytes(128 * mi));
}

// Adafactor takes the largest weight in turn: gradient, weight, square and update in fp32 beside 16
// bits, 4 x 4 x 3 MiB; of fp32 ones the square and the update, 2 x 4 x 3 MiB; a shard of 2 Mi
// elements is all that a rank steps. Lists of temporaries there are none. Whole Trainer steps of
// Llama, Qwen, GPT-2 and Phi took as much (catalog/runs/oracle_transformers.json).
TEST_CASE("What steps tensors one by one widens the largest", "[optimizer_memory]") {
  const auto peak = [](WeightRecipe weights, std::int64_t stepped) {
    Step step;
    step.workload.framework.formats.pretrain_weights = weights;
    step.workload.framework.update.fused = false;
    step.workload.step_with(*optimizer_named("adafactor"));
    step.total.stepped_elements = stepped;
    step.run(3 * mi);
    CHECK(step.ledger.allocated() == Bytes(0));
    return step.ledger.peak().allocated;
  };
  CHECK(peak(WeightRecipe::pure_half, 8 * mi) == Bytes(48 * mi));
  CHECK(peak(WeightRecipe::fp32, 8 * mi) == Bytes(24 * mi));
  CHECK(peak(WeightRecipe::pure_half, 2 * mi) == Bytes(32 * mi));
}

// One momentum of 8 MiB; AdamW would have a list of temporaries beside its two.
TEST_CASE("SGD steps lists of tensors in place", "[optimizer_memory]") {
  Step step;
  step.add_layer(8 * mi);
  step.framework.update.fused = false;
  step.workload.step_with(*optimizer_named("sgd-momentum"));
  step.run(2 * mi);
  CHECK(step.ledger.peak().allocated == Bytes(8 * mi));
}

// Moments of 8 MiB each; beside them the second one's root, of as many elements.
TEST_CASE("foreach kernels hold a root of every second moment", "[optimizer_memory]") {
  Step step;
  step.framework.update.clones_partition = true;
  step.framework.update.fused = false;
  step.total.optimizer = 16 * mi;
  step.run(0);
  CHECK(step.ledger.peak().allocated == Bytes(24 * mi));
  CHECK(step.ledger.allocated() == Bytes(16 * mi));
}

// bitsandbytes has no list of roots: 8-bit moments of 2 Mi elements, 2 MiB each, are all it takes.
TEST_CASE("a kernel for each tensor needs nothing beside states", "[optimizer_memory]") {
  Step step;
  step.framework.update.fused = false;
  step.framework.update.foreach = true;
  step.workload.optimizer = optimizer_named("adamw8bit");
  step.add_layer(4 * mi);
  step.total.stepped_elements = 2 * mi;
  step.run(2 * mi);
  CHECK(step.ledger.peak().allocated == Bytes(4 * mi));
}

// PyTorch 2.0 adds eps out of place: the root's 8 MiB and the sum's.
TEST_CASE("foreach kernels of PyTorch 2.0 hold two lists", "[optimizer_memory]") {
  Step step;
  step.framework.update.clones_partition = true;
  step.framework.update.fused = false;
  step.framework.update.foreach_lists = 2;
  step.total.optimizer = 16 * mi;
  step.run(0);
  CHECK(step.ledger.peak().allocated == Bytes(32 * mi));
  CHECK(step.ledger.allocated() == Bytes(16 * mi));
}

// A block's matrix has one momentum, a table AdamW's two, all in fp32. Tables of 2 Mi elements have
// a list of roots, 8 MiB, beside 1 and 16 MiB of states; a matrix of 4 Mi is stepped alone, by
// 4 + 2 + 2 bytes of each element, 32 MiB beside 16 and 8. Four experts of 1 Mi each are matrices
// of their own, 8 MiB; for PyTorch's grouped product they are one tensor.
TEST_CASE("Muon steps a matrix at a time, and AdamW the tables", "[optimizer_memory]") {
  const auto peak = [](std::int64_t matrix, std::int64_t table, int experts, bool stacked) {
    Step step;
    step.workload.framework.formats.pretrain_weights = WeightRecipe::fp32;
    step.framework.update.fused = false;
    step.workload.step_with(*optimizer_named("muon"));
    LayerGraph tables;
    tables.operators.resize(1);
    tables.operators[0].weight_gradient_elements = table;
    step.graph.operators.resize(1);
    GemmWork product = weight_gradient(512, matrix / experts / 512, 1, DType::bf16, experts);
    product.by_torch = stacked;
    step.graph.operators[0].backward_weight = {product};
    step.graph.operators[0].weight_gradient_elements = matrix;
    for (const bool ends : {false, true}) {
      LayerHoldings layer;
      layer.graph = ends ? &tables : &step.graph;
      if (ends) layer.role = LayerRole::embedding;
      layer.state.optimizer = ends ? 8 * table : 4 * matrix;
      step.total.optimizer += layer.state.optimizer;
      step.layers.front().push_back(std::move(layer));
    }
    step.run(std::max(matrix, table));
    return step.ledger.peak().allocated;
  };
  CHECK(peak(mi / 4, 2 * mi, 1, false) == Bytes((1 + 16 + 8) * mi));
  CHECK(peak(4 * mi, mi, 1, false) == Bytes((16 + 8 + 32) * mi));
  CHECK(peak(4 * mi, mi, 4, false) == Bytes((16 + 8 + 8) * mi));
  CHECK(peak(4 * mi, mi, 4, true) == Bytes((16 + 8 + 32) * mi));
}

// Tables of 10,240 x 128, which no model narrows, beside matrices of 128 x 256 at most: the roots
// of one that is a head too, or of both, 4 bytes for each element, are more than any update.
TEST_CASE("Embedding and head are no matrices for Muon", "[optimizer_memory]") {
  for (const bool tied : {true, false}) {
    Step step;
    Workload& w = step.workload;
    w.model = llama(2, 128, 2, 2, 256, 10'240);
    w.model.tied_embeddings = tied;
    w.framework.formats.pretrain_weights = WeightRecipe::fp32;
    w.framework.update.fused = false;
    w.step_with(*optimizer_named("muon"));
    const ModelPartition parts =
        partition_weights(w, step.plan, *find_pipeline_schedule(step.plan.schedule_row()));
    for (const ChunkLayer& of : parts.stages.front().front().layers) {
      LayerHoldings layer;
      layer.graph = &of.definition->graph;
      layer.role = of.definition->role;
      layer.state = layer_state(w, step.plan, layer.graph->parameters, of.definition->trainable);
      step.total += layer.state;
      step.layers.front().push_back(std::move(layer));
    }
    REQUIRE(step.layers.front().size() == 4);
    step.run(10'240 * 128);
    const Bytes above = step.ledger.peak().allocated - step.ledger.allocated();
    CHECK(gib(above) == Approx(gib(Bytes((tied ? 4 : 8) * 10'240 * 128))).epsilon(0.002));
  }
}

// Moments of 8 MiB each; beside them the root and the quotient of it: of the flat tensor 8 MiB
// each, of the largest of several tensors, 1 Mi elements in fp32, 4 MiB each.
TEST_CASE("A tensor that is stepped alone has two temporaries", "[optimizer_memory]") {
  for (const bool flat : {true, false}) {
    Step step;
    step.add_layer(16 * mi);
    step.framework.update.clones_partition = flat;
    step.framework.update.fused = false;
    step.framework.update.foreach = false;
    step.total.stepped_elements = 2 * mi;
    step.run(1 * mi);
    CHECK(step.ledger.peak().allocated == Bytes((flat ? 32 : 24) * mi));
    CHECK(step.ledger.allocated() == Bytes(16 * mi));
  }
}

// Moments of matrices of 3 and 1 Mi elements over freed blocks of 12 MiB: those of 12 MiB go there,
// those of 4 MiB into a segment of 20 MiB. As one flat tensor they are two of 16 MiB, which find no
// room.
TEST_CASE("A shard that is one flat tensor has states of its size", "[optimizer_memory]") {
  for (const bool flat : {false, true}) {
    Step step;
    step.plan = plan_of(2);
    step.plan.zero_stage = 1;
    step.framework.update.flat_shard = flat;
    step.graph.operators.resize(2);
    step.graph.operators[0].weight_gradient_elements = 3 * mi;
    step.graph.operators[1].weight_gradient_elements = mi;
    LayerHoldings layer;
    layer.graph = &step.graph;
    layer.state.optimizer = step.total.optimizer = 32 * mi;
    step.layers.front().push_back(std::move(layer));
    std::vector<Holding> freed;
    for (int i = 0; i < 2; ++i)
      freed.push_back(step.ledger.open(12 * mi, MemoryCategory::activations));
    for (Holding& h : freed) step.ledger.close(h);
    step.run(0);
    CHECK(step.ledger.peak().allocated == Bytes(32 * mi));
    CHECK(step.ledger.peak().reserved == Bytes((24 + (flat ? 32 : 20)) * mi));
  }
}

}  // namespace shardwise
