// What the loss and the model's output keep in a play of memory: logits, their copies and
// gradients, keys and values.
#include <numeric>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/memory/memory_play.hpp"
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

}  // namespace shardwise
