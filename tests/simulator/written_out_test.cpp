// What frameworks write out in operators of their own: a softmax, an activation, an optimizer,
// copies of what products read; and the experts of a router that nothing balances.
#include <algorithm>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/visited_places.hpp"
#include "simulator/memory/optimizer_memory.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

const Operator& named(const LayerGraph& graph, std::string_view name) {
  const auto found = std::find_if(graph.operators.begin(), graph.operators.end(),
                                  [&](const Operator& op) { return op.name == name; });
  REQUIRE(found != graph.operators.end());
  return *found;
}

std::int64_t size_of(const LayerGraph& graph, TensorIndex t) {
  return graph.tensors[static_cast<std::size_t>(t)].bytes;
}

int count_of(const LayerGraph& graph, std::string_view name) {
  return static_cast<int>(std::count_if(graph.operators.begin(), graph.operators.end(),
                                        [&](const Operator& op) { return op.name == name; }));
}

std::int64_t kept(const LayerGraph& graph, const Operator& op) {
  std::int64_t bytes = 0;
  for (const TensorIndex t : op.saves) bytes += size_of(graph, t);
  return bytes;
}

std::int64_t bytes_moved_by(const std::vector<Kernel>& kernels) {
  std::int64_t bytes = 0;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k)) bytes += m->moved.value;
  return bytes;
}

std::int64_t taken_singly(const std::vector<Kernel>& kernels) {
  std::int64_t elements = 0;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k)) elements += m->singly;
  return elements;
}

// Eight heads over 128 tokens.
Workload eager_recipe(WeightRecipe weights, DType compute) {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.formats.pretrain_weights = weights;
  w.compute = compute;
  return w;
}

}  // namespace

// 8 x 128 x 128 scores. In fp32 the exponentials are kept beside the weights that the product
// reads, 4 bytes more for each; 48 bytes of each move forward and 112 backward, and what attention
// runs beside its scores anyway is the same in both. Forward mask, difference and quotient take it
// alone, backward three quotients, the sum of both and the mask.
TEST_CASE("A softmax of PyTorch's operators keeps its exponentials", "[written_out]") {
  constexpr std::int64_t scores = 8 * 128 * 128;
  Workload w = eager_recipe(WeightRecipe::fp32, DType::fp32);
  const LayerGraph whole = block_graph(w, plan_of(1), {});
  w.framework.attention.plain_softmax = true;
  const LayerGraph parts = block_graph(w, plan_of(1), {});
  const Operator &one = named(whole, "attention"), &many = named(parts, "attention");
  CHECK(kept(parts, many) - kept(whole, one) == 4 * scores);
  CHECK(bytes_moved_by(many.forward) - bytes_moved_by(one.forward) == 48 * scores);
  CHECK(bytes_moved_by(many.backward) - bytes_moved_by(one.backward) == 112 * scores);
  CHECK(taken_singly(many.forward) - taken_singly(one.forward) == 3 * scores);
  CHECK(taken_singly(many.backward) - taken_singly(one.backward) == 5 * scores);
  const auto products_alone = [](const Operator& op) {
    for (const Kernel& k : op.forward)
      if (const auto* a = std::get_if<AttentionWork>(&k)) return a->products_alone;
    return false;
  };
  CHECK(products_alone(many));
  CHECK_FALSE(products_alone(one));
  w.framework.layers.kernels = KernelStyle::compiled;  // which makes one kernel of them
  CHECK_FALSE(products_alone(named(block_graph(w, plan_of(1), {}), "attention")));
}

// Of 16-bit scores it moves half of what it does of fp32 ones, 24 and 56 bytes. Autocast has the
// exponential, the sum and the quotient in fp32 between two casts: forward scale 4, mask 4,
// maximum 2, difference 4, cast 6, exponential 8, sum 4, quotient 8, cast 6; backward cast 6,
// quotient 48, sum of both 8, exponential 12, cast 6, difference 4 + 2, maximum 2 + 6, mask 4 and
// scale 4. Forward 7 kernels do that, backward 14, and both casts 2 more, beside 1 and 3 that move
// nothing of a score.
TEST_CASE("A softmax of PyTorch's operators in 16 bits, and under autocast", "[written_out]") {
  constexpr std::int64_t scores = 8 * 128 * 128;
  Workload w = eager_recipe(WeightRecipe::pure_half, DType::bf16);
  const auto launched = [](const std::vector<Kernel>& kernels) {
    int launches = 0;
    for (const Kernel& k : kernels)
      if (const auto* m = std::get_if<MemoryWork>(&k)) launches += m->launches;
    return launches;
  };
  // Bytes of a score and launches, forward and backward.
  const auto more = [&] {
    w.framework.attention.plain_softmax = false;
    const Operator one = named(block_graph(w, plan_of(1), {}), "attention");
    w.framework.attention.plain_softmax = true;
    const Operator many = named(block_graph(w, plan_of(1), {}), "attention");
    return std::vector<std::int64_t>{
        (bytes_moved_by(many.forward) - bytes_moved_by(one.forward)) / scores,
        (bytes_moved_by(many.backward) - bytes_moved_by(one.backward)) / scores,
        launched(many.forward) - launched(one.forward),
        launched(many.backward) - launched(one.backward)};
  };
  CHECK(more() == std::vector<std::int64_t>{24, 56, 8, 17});
  w.framework.formats.autocast = true;
  CHECK(more() == std::vector<std::int64_t>{46, 102, 10, 19});
}

// 128 x 1,000 logits in fp32: ten values of each move forward, two of them taken one by one as
// maximum and sum are one for a row; backward seventeen, one taken so.
TEST_CASE("A log-softmax of PyTorch's operators moves what it writes in between", "[written_out]") {
  constexpr std::int64_t logits = 128 * 1000;
  Workload w = eager_recipe(WeightRecipe::fp32, DType::fp32);
  w.framework.loss.kind = LossKind::dense;
  w.framework.attention.plain_softmax = true;
  const Operator op = named(head_graph(w, plan_of(1), {}), "log_softmax");
  CHECK(bytes_moved_by(op.forward) == 10 * 4 * logits);
  CHECK(bytes_moved_by(op.backward) == 17 * 4 * logits);
  CHECK(taken_singly(op.forward) == 2 * logits);
  CHECK(taken_singly(op.backward) == logits);
}

// Two selections more: torch.where reads and writes a score, 4 + 4 bytes, twice, and a mask of one
// byte once, each way. What the quotient divides is another tensor than the exponentials: 4 bytes.
TEST_CASE("A softmax that lets rows be empty keeps what it selected", "[written_out]") {
  constexpr std::int64_t scores = 8 * 128 * 128;
  Workload w = eager_recipe(WeightRecipe::fp32, DType::fp32);
  w.framework.attention.plain_softmax = true;
  const LayerGraph plain = block_graph(w, plan_of(1), {});
  w.framework.attention.guards_softmax = true;
  const LayerGraph guarded = block_graph(w, plan_of(1), {});
  const Operator &one = named(plain, "attention"), &many = named(guarded, "attention");
  CHECK(kept(guarded, many) - kept(plain, one) == 4 * scores);
  CHECK(bytes_moved_by(many.forward) - bytes_moved_by(one.forward) == 17 * scores);
  CHECK(bytes_moved_by(many.backward) - bytes_moved_by(one.backward) == 17 * scores);
}

// gate, up and silu(gate) are kept by both; written out, the sigmoid as well: 128 x 1408 values of
// 2 bytes. Values moved forward: 2 + 3 + 3 in place of 2 + 3, backward 18 in place of 9.
TEST_CASE("A SiLU that is written out keeps its sigmoid", "[written_out]") {
  constexpr std::int64_t values = 128 * 1408;
  Workload w = eager_recipe(WeightRecipe::pure_half, DType::bf16);
  const auto sums = [&] {
    const LayerGraph g = block_graph(w, plan_of(1), {});
    std::vector<std::int64_t> all(3, 0);
    for (const char* name : {"sigmoid", "silu", "product"})
      for (const Operator& op : g.operators)
        if (op.name == name) {
          all[1] += bytes_moved_by(op.forward);
          all[2] += bytes_moved_by(op.backward);
          for (const TensorIndex t : op.outputs) all[0] += size_of(g, t);
        }
    return all;
  };
  const std::vector<std::int64_t> short_form = sums();
  w.framework.layers.plain_activation = true;
  const std::vector<std::int64_t> long_form = sums();
  CHECK(long_form[0] - short_form[0] == 2 * values);
  CHECK(long_form[1] - short_form[1] == 3 * 2 * values);
  CHECK(long_form[2] - short_form[2] == 9 * 2 * values);
}

// 37 fp32 values for each parameter, 16 kernels for each tensor; the largest, 1 Mi elements, has
// five of 4 MiB beside its states of 16 MiB. Other optimizers are not the framework's.
TEST_CASE("A framework's own AdamW goes tensor by tensor", "[written_out]") {
  constexpr std::int64_t mi = 1 << 20;
  Workload w = eager_recipe(WeightRecipe::fp32, DType::fp32);
  w.framework.update.clips_gradients = false;
  w.framework.update.fused = false;
  w.framework.update.written = WrittenOptimizer{16, 37, 5};
  const OptimizerPass pass = optimizer_pass(w);
  CHECK(pass.bytes_each == 4 * 37);
  CHECK(pass.kernels_of_each == 16);
  MemoryLedger ledger{AllocatorSettings{}};
  std::vector<std::vector<LayerHoldings>> layers{1};
  LayerGraph graph;
  graph.operators.resize(1);
  graph.operators[0].weight_gradient_elements = 2 * mi;
  LayerHoldings layer;
  layer.graph = &graph;
  LayerState total;
  layer.state.optimizer = total.optimizer = 16 * mi;
  total.stepped_elements = 2 * mi;
  layers.front().push_back(std::move(layer));
  const ParallelPlan plan = plan_of(1);
  OptimizerMemory(w, plan, ledger).step(layers, total, mi);
  CHECK(ledger.peak().allocated == Bytes((16 + 5 * 4) * mi));
  w.optimizer = optimizer_named("sgd");
  CHECK(optimizer_pass(w).kernels_of_each == 0);
}

// 16-bit weights and gradients, nothing clipped. Foreach AdamW moves 88/28 of one pass over
// gradient, weight and moments of 2 B; SGD reads gradient and weight and writes that in one kernel;
// with momentum 2 + 3 + 3 values.
TEST_CASE("Optimizers read and write what their kernels do", "[written_out]") {
  Workload w = eager_recipe(WeightRecipe::pure_half, DType::bf16);
  w.framework.gradients.dtype = DType::bf16;
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.update.fp32_gradient_at_step = w.framework.update.clips_gradients = false;
  w.framework.update.fused = false;
  const auto pass = [&](const char* name) {
    w.optimizer = optimizer_named(name);
    return optimizer_pass(w);
  };
  CHECK(pass("adamw").bytes_each == (2 + 2 * 2 + 2 * 2 * 2) * (88.0 / 28.0));
  CHECK(pass("sgd").bytes_each == 3 * 2);
  CHECK(pass("sgd-momentum").bytes_each == (2 + 3 + 3) * 2);
}

// 128 tokens by 1,000 logits in fp32. Of one sequence the slice without its last row is contiguous:
// backward fills 4 bytes and copies 8. Of two it is copied first, 8 bytes, into one of its own.
TEST_CASE("a copy of the logits is shifted where sequences are several", "[written_out]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.loss.kind = LossKind::dense;
  const auto log_softmax = [&](int temporaries, int microbatch) {
    w.framework.loss.fp32_temporaries = temporaries;
    ParallelPlan plan = plan_of(1);
    plan.microbatch = microbatch;
    const LayerGraph head = head_graph(w, plan, false);
    return *std::find_if(head.operators.begin(), head.operators.end(),
                         [](const Operator& op) { return op.name == "log_softmax"; });
  };
  const Operator one = log_softmax(1, 1), two = log_softmax(1, 2);
  CHECK(std::get<MemoryWork>(one.backward.back()).moved == Bytes(12 * 128 * 1000));
  CHECK(one.forward.size() == log_softmax(0, 1).forward.size());
  CHECK(one.forward_temporary == log_softmax(0, 1).forward_temporary);
  CHECK(std::get<MemoryWork>(two.backward.back()).moved == Bytes(12 * 256 * 1000));
  CHECK(std::get<MemoryWork>(two.forward.front()).moved == Bytes(8 * 256 * 1000));
  CHECK(two.forward_temporary - log_softmax(0, 2).forward_temporary == Bytes(4 * 256 * 1000));
}

// In fp32: 2 norms of 4 bytes, square, eps, 2 means and 3 scalings of 8, 4 + 12 for the update, 12
// to add it: 8 + 24 + 4 + 12 + 24 + 12 = 84; of 16 bits three copies of 6 more. Fused AdamW changes
// nothing about it. Another class than transformers': one pass over gradient and weight.
TEST_CASE("transformers' Adafactor steps by operators", "[written_out]") {
  Workload w = eager_recipe(WeightRecipe::pure_half, DType::bf16);
  w.framework.gradients.dtype = DType::bf16;
  w.framework.update.fp32_gradient_at_step = w.framework.update.clips_gradients = false;
  w.framework.update.fused = true;
  w.optimizer = optimizer_named("adafactor");
  w.framework.layers.runs_transformers = true;
  CHECK(optimizer_pass(w).bytes_each == 84 + 18);
  CHECK(optimizer_pass(w).kernels_of_each == 27);
  w.framework.layers.runs_transformers = false;
  CHECK(optimizer_pass(w).bytes_each == 2 + 2 * 2);
  w = eager_recipe(WeightRecipe::fp32, DType::fp32);
  w.framework.update.clips_gradients = false;
  w.optimizer = optimizer_named("adafactor");
  w.framework.layers.runs_transformers = true;
  CHECK(optimizer_pass(w).bytes_each == 84);
  CHECK(optimizer_pass(w).kernels_of_each == 24);
}

// 16-bit gradients: AdamW reads 2, 4 + 8 of master and states, writes 4 + 8 and the weight's 2 B;
// clipping reads 2 for the norm, reads and writes 2 to scale. Widened first: 2 + 2 to join them,
// 2 + 4 to widen, AdamW and the scaling find 4 B where there were 2, and the master is read again.
TEST_CASE("Gradients that are widened before the step are read once more", "[written_out]") {
  Workload w = eager_recipe(WeightRecipe::half_with_master, DType::bf16);
  w.framework.gradients.dtype = DType::bf16;
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.update.fused = true;
  w.framework.update.clips_gradients = true;
  w.framework.update.fp32_gradient_at_step = false;
  CHECK(optimizer_pass(w).bytes_each == 28 + 6);
  w.framework.update.fp32_gradient_at_step = true;
  CHECK(optimizer_pass(w).bytes_each == 30 + (2 + 8) + (4 + 6) + 4);
}

// One pass over fp32 gradient, weight and moments is 4 + 2 x 4 + 2 x 8 bytes; a scaled loss has
// each gradient read and written once more.
TEST_CASE("Under autocast in fp16 gradients are divided by the loss's scale", "[written_out]") {
  const auto bytes = [](DType compute, bool autocast) {
    Workload w = eager_recipe(WeightRecipe::fp32_with_half_compute, compute);
    w.framework.formats.autocast = autocast;
    w.framework.gradients.dtype = DType::fp32;
    w.framework.update.fused = true;
    w.framework.update.clips_gradients = false;
    return optimizer_pass(w).bytes_each;
  };
  CHECK(bytes(DType::bf16, true) == 28);
  CHECK(bytes(DType::fp16, true) == 28 + 8);
  CHECK(bytes(DType::fp16, false) == 28);
}

// DeepSpeed copies a 16-bit gradient to fp64 for its norm: 8 bytes written and read, two kernels of
// a tensor. Looked at for infinity and NaN 2 + 4, 4 + 1, 8 and 4 + 1, 1 + 1 + 1, 1 + 4 and 4 bytes
// more in eight kernels, at stages 1 and 2; a scaled fp16 loss is looked at whatever the row says.
TEST_CASE("ZeRO reads what it steps tensor by tensor", "[written_out]") {
  Workload w = eager_recipe(WeightRecipe::half_with_master, DType::bf16);
  w.framework.gradients.dtype = DType::bf16;
  ParallelPlan plan = plan_of(8);
  const auto reads = [&](int stage) {
    plan.zero_stage = stage;
    const PartitionReads found = partition_reads(w, plan);
    return std::pair(found.bytes_each, found.kernels_of_each);
  };
  CHECK(reads(2) == std::pair(0.0, 0));
  w.framework.update.norm_in_double = true;
  CHECK(reads(0) == std::pair(0.0, 0));
  CHECK(reads(2) == std::pair(16.0, 2));
  CHECK(resolved_for(w.framework, Method::pretrain, DType::fp16).update.checks_partition);
  w.framework.update.checks_partition = true;
  CHECK(reads(1) == std::pair(16.0 + 36, 10));
  CHECK(reads(3) == std::pair(16.0, 2));
}

// q, k, v, gate and up of a block read a copy each, of 128 x 512 values; alone, with sequence
// parallelism and before row-parallel products there is none.
TEST_CASE("Column-parallel products may copy what they read", "[written_out]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.framework.parallel.copies_linear_inputs = true;
  ParallelPlan p = plan_of(1, 2);
  p.sequence_parallel = false;
  const LayerGraph g = block_graph(w, p, {});
  CHECK(count_of(g, "input_copy") == 5);
  CHECK(size_of(g, named(g, "input_copy").outputs.front()) == 2 * 128 * 512);
  CHECK(count_of(block_graph(w, plan_of(2), {}), "input_copy") == 0);
  p.sequence_parallel = true;
  CHECK(count_of(block_graph(w, p, {}), "input_copy") == 0);
}

// 128 x 1000 logits in fp32 once the loss is there: 512,000 bytes.
TEST_CASE("A wrapped forward function copies the logits of a fused loss", "[written_out]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.framework.loss.kind = LossKind::fused_half;
  const auto live = [&] {
    return named(head_graph(w, plan_of(1), false), "fused_cross_entropy").forward_temporary;
  };
  CHECK(live() == Bytes(0));
  w.framework.loss.fp32_temporaries = 1;
  CHECK(live() == Bytes(512'000));
}

// Of 128,000 logits the cast moves 6 bytes each way; the kernel reads 4 twice and writes 4, and
// backward scales them, 8. The 16-bit ones, 256,000 bytes, are the model's output meanwhile. A log
// of 22 bytes each takes five kernels for each of two slices of 64 tokens.
TEST_CASE("A fused loss of an fp32 copy, and what is logged of the logits", "[written_out]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.framework.loss.kind = LossKind::fused_fp32;
  const auto moved = [](const std::vector<Kernel>& kernels, std::size_t i) {
    return std::get<MemoryWork>(kernels.at(i)).moved;
  };
  const LayerGraph plain = head_graph(w, plan_of(1), false);
  const Operator& cast = named(plain, "upcast");
  CHECK(moved(cast.forward, 0) == Bytes(768'000));
  CHECK(moved(cast.backward, 0) == Bytes(768'000));
  const Operator& loss = named(plain, "fused_cross_entropy");
  CHECK(loss.forward.size() == 1);
  CHECK(moved(loss.forward, 0) == Bytes(1'536'000));
  CHECK(moved(loss.backward, 0) == Bytes(1'024'000));
  CHECK(loss.forward_temporary == Bytes(256'000));
  w.framework.loss.logged = {22, 64, 5};
  const LayerGraph logged = head_graph(w, plan_of(1), false);
  const Operator& read = named(logged, "fused_cross_entropy");
  CHECK(moved(read.forward, 1) == Bytes(2'816'000));
  CHECK(std::get<MemoryWork>(read.forward.at(1)).launches == 10);
}

// 128 tokens to two of eight experts: 256 rows for each rank's experts, half as many again where
// the fullest has that.
TEST_CASE("The fullest rank of an unbalanced router has more rows", "[written_out]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 64, 0, false, 0, 1};
  w.expert_imbalance = 1.5;
  BlockKind kind;
  kind.experts = true;
  ParallelPlan p = plan_of(2);
  const auto sent = [&] {
    const LayerGraph g = block_graph(w, p, kind);
    return size_of(g, named(g, "dispatch").outputs.front());
  };
  CHECK(sent() == 256 * 512 * 2);
  p.expert = 2;
  CHECK(sent() == 384 * 512 * 2);
  // Two ranks of four experts each: (2 - 3/8) / (2 + 1/4) = 0.72222, 0.58946 deviations up. The
  // logarithm's variance is ln(1 + 1.2^2 / 4) = 0.30748, its deviation 0.55451, so that the fullest
  // has exp(0.55451 * 0.58946 - 0.15374) = 1.18901 times 256 rows, 304. A larger imbalance stands.
  w.expert_spread = 1.2;
  CHECK(sent() == 384 * 512 * 2);
  w.expert_imbalance = 1;
  CHECK(sent() == 304 * 512 * 2);
  w.pads_experts = true;
  CHECK(sent() == 256 * 512 * 2);
  w.pads_experts = false;
  // Where every token goes to all eight experts no rank can have more: 128 rows for each of eight.
  w.framework.layers.kernels = KernelStyle::eager;
  w.model.code.stated = w.model.code.feeds_all_experts = true;
  CHECK(fullest_rank(w, 2) == 1);
  CHECK(sent() == 1024 * 512 * 2);
}

// Two buckets of 1,000 bytes at stage 2, one at stage 3.
TEST_CASE("ZeRO-3 reduces through one bucket", "[written_out]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.framework.gradients.reduce_buffers = 2;
  w.framework.gradients.bucket = Bytes(1000);
  LayerState total;
  total.unsharded_gradients = 4000;
  ParallelPlan p = plan_of(2);
  p.zero_stage = 2;
  CHECK(pass_buffers(w, p, total) == std::vector<std::int64_t>(2, 1000));
  p.zero_stage = 3;
  CHECK(run_buffers(w, p, total) == std::vector<std::int64_t>(1, 1000));
}

// Eight experts of 512 x 64, gate and up in one product: 8 * 512 * 128 weights of 4 bits are
// written as 16 and read again at the least; one expert's copy lives at a time, or all of them.
TEST_CASE("Quantised experts are made 16 bits before they multiply", "[written_out]") {
  constexpr std::int64_t weights = 8 * 512 * 128;
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 64, 0, false, 0, 1};
  w.method = Method::qlora;
  BlockKind kind;
  kind.experts = true;
  const auto product = [&](Quantization base) {
    w.adapter.base = base;
    return named(block_graph(w, plan_of(1), kind), "expert_up");
  };
  const Operator plain = product(Quantization::none), quantised = product(Quantization::nf4);
  CHECK(bytes_moved_by(quantised.forward) - bytes_moved_by(plain.forward) >= (weights * 5) / 2);
  CHECK(quantised.forward_temporary - plain.forward_temporary == Bytes(2 * weights / 8));
  w.framework.quantized.dequantizes_experts_at_once = true;
  CHECK(product(Quantization::nf4).forward_temporary == Bytes(2 * weights));
  w.framework.quantized.experts = false;
  CHECK(bytes_moved_by(product(Quantization::nf4).forward) == bytes_moved_by(plain.forward));
}

// A program that lays its buffers out has one for each result of each operator, and for what it
// makes on the way (fp32 scores, 8 heads x 128^2 x 4 B, beside their softmax), and as much again
// for gradients; nothing is made while it goes back.
TEST_CASE("results that are laid out at the start are all kept, with their gradients",
          "[layer_graph]") {
  Workload w = eager_recipe(WeightRecipe::fp32, DType::fp32);
  const LayerGraph made = block_graph(w, plan_of(1), {});
  std::int64_t results = 0, scratch = 0;
  for (const Operator& op : made.operators) {
    scratch += op.forward_temporary.value;
    for (const TensorIndex t : op.outputs) results += size_of(made, t);
  }
  CHECK(scratch >= 8 * 128 * 128 * 4);
  w.framework.layers.lays_out_results = true;
  const LayerGraph laid = block_graph(w, plan_of(1), {});
  std::int64_t all = 0, gradients = 0;
  for (const Operator& op : laid.operators) {
    CHECK(op.forward_temporary.value == 0);
    CHECK(op.backward_temporary.value == 0);
    for (const TensorIndex t : op.outputs) {
      // The block's own result is what the block behind keeps.
      CHECK(std::count(op.saves.begin(), op.saves.end(), t) == (t == laid.output ? 0 : 1));
      all += size_of(laid, t);
      gradients += laid.tensors[static_cast<std::size_t>(t)].gradient_bytes;
    }
  }
  CHECK(all == 2 * (results + scratch));
  CHECK(gradients == 0);
}

}  // namespace shardwise
