#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

struct Beside {
  double forward = 0, backward = 0;
  bool products_alone = false;
};

double bytes_moved(const std::vector<Kernel>& kernels) {
  double bytes = 0;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k)) bytes += static_cast<double>(m->moved.value);
  return bytes;
}

Beside beside_scores(const Workload& w, const ParallelPlan& plan) {
  for (const Operator& op : block_graph(w, plan, {}).operators) {
    if (op.kind != OperatorKind::attention) continue;
    Beside out{bytes_moved(op.forward), bytes_moved(op.backward)};
    for (const Kernel& k : op.forward)
      if (const auto* a = std::get_if<AttentionWork>(&k)) out.products_alone = a->products_alone;
    return out;
  }
  return {};
}

}  // namespace

// Eight heads over four ranks are two for each: with one sequence no multiple of four, with two
// sequences four. Scores of 128 tokens: 1 x 2 x 128 x 128 = 32,768, 29 bytes each forward (6 + 9 +
// 8 + 6) and 33 backward (6 + 12 + 9 + 6).
TEST_CASE("scores in other numbers than the fused softmax takes go by PyTorch's operators") {
  Workload w = pretraining(llama(1, 512, 8, 4, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.attention.kernel = AttentionKernel::eager;
  ParallelPlan plan = plan_of(1, 4);
  const Beside fused = beside_scores(w, plan);
  CHECK_FALSE(fused.products_alone);
  w.framework.attention.softmax_batches = 4;
  const Beside left = beside_scores(w, plan);
  CHECK(left.products_alone);
  CHECK(left.forward - fused.forward == 29 * 32768);
  CHECK(left.backward - fused.backward == 33 * 32768);
  plan.microbatch = 2;
  CHECK_FALSE(beside_scores(w, plan).products_alone);
}

// 8 x 128 x 128 = 131,072 scores, none widened: mask in place 2 + 2 and its byte, softmax 2 + 2,
// where the fused one has nothing beside its kernel; backward softmax 2 + 2 + 2, the mask again.
TEST_CASE("scores of a model that is cast stay in 16 bits") {
  Workload w = pretraining(llama(1, 512, 8, 8, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.attention.kernel = AttentionKernel::eager;
  const ParallelPlan plan = plan_of(1);
  const auto kept = [&] {
    for (const Operator& op : block_graph(w, plan, {}).operators)
      if (op.kind == OperatorKind::attention) return op.saves.size();
    return std::size_t{0};
  };
  const Beside fused = beside_scores(w, plan);
  const std::size_t of_fused = kept();
  w.framework.attention.half_softmax = true;
  const Beside half = beside_scores(w, plan);
  CHECK(half.products_alone);
  CHECK(half.forward - fused.forward == (5 + 4) * 131072);
  CHECK(half.backward - fused.backward == (6 + 5) * 131072);
  CHECK(kept() == of_fused);  // no softmax in fp32
}

// GPT's three biases that follow a product, of width h, 4 h and h: read and written, 4 B of each,
// beside what was there. Nothing more is kept.
TEST_CASE("biases that linears leave to others are kernels of their own") {
  Workload w = pretraining(gpt(4, 1024, 16), 512);
  w.framework.layers.kernels = KernelStyle::fused;
  struct Block {
    double moved = 0;
    std::size_t saves = 0;
  };
  const auto block = [&] {
    Block sum;
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators) {
      sum.moved += bytes_moved(op.forward);
      sum.saves += op.saves.size();
    }
    return sum;
  };
  const Block fused = block();
  w.framework.layers.adds_bias_apart = true;
  const Block apart = block();
  CHECK(apart.moved - fused.moved == 512 * 1024 * 4 * (1 + 4 + 1));
  CHECK(apart.saves == fused.saves);
}
