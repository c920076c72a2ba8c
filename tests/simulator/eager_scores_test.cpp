#include "simulator/graphs/eager_scores.hpp"

#include <algorithm>
#include <array>
#include <variant>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

struct EagerScores {
  std::int64_t kept = 0, moved = 0;  // bytes beside its inputs; of backward's kernels
};

EagerScores eager_scores(const Workload& w, const ParallelPlan& plan) {
  EagerScores found;
  const LayerGraph graph = block_graph(w, plan, {});
  for (const Operator& op : graph.operators) {
    if (op.name != "attention") continue;
    for (const TensorIndex t : op.saves)
      if (std::find(op.inputs.begin(), op.inputs.end(), t) == op.inputs.end())
        found.kept += graph.tensors[static_cast<std::size_t>(t)].bytes;
    for (const Kernel& k : op.backward)
      if (const auto* m = std::get_if<MemoryWork>(&k)) found.moved += m->moved.value;
  }
  return found;
}

// Of 8 heads x 128 x 128 = 131,072 scores softmax, dropout and a byte of its mask are kept, 2 + 2 +
// 1 bytes; where products are what a checkpoint keeps, the scores are, 2, and 2 + 2 + 1 for the
// mask, 2 + 2 for softmax and 2 + 2 + 1 for dropout are moved once more.
TEST_CASE("a checkpoint that keeps products keeps scores as the first of them made them",
          "[eager_scores]") {
  Workload w = pretraining(gpt(2, 512, 8), 128);
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.attention.softmax_in_fp32 = false;
  w.attention_dropout = true;
  ParallelPlan plan = plan_of(1);
  const EagerScores all = eager_scores(w, plan);
  plan.recompute = "selective-op";
  const EagerScores products = eager_scores(w, plan);
  CHECK(all.kept == 5 * 131'072);
  CHECK(products.kept == 2 * 131'072);
  CHECK(products.moved - all.moved == 14 * 131'072);
}

}  // namespace
}  // namespace shardwise
