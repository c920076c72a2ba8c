// The indexer of sparse attention (DeepSeek-V3.2, GLM-5): weights, what lives while it scores, and
// what attention keeps of its choice.
#include <algorithm>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// 8 heads of 32 + 16 values, queries through 128, keys and values through 64; 4 heads of 32 choose
// 64 of 256 tokens.
Workload choosing_tokens() {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 256);
  w.model.head_dim = 48;
  w.model.mla = LatentAttention{128, 64, 32, 16, 32};
  w.model.indexer = TokenIndexer{4, 32, 64, {}};
  return w;
}

const Operator& operator_called(const LayerGraph& graph, std::string_view name) {
  const auto found = std::find_if(graph.operators.begin(), graph.operators.end(),
                                  [&](const Operator& op) { return op.name == name; });
  REQUIRE(found != graph.operators.end());
  return *found;
}

BlockKind with_indexer() {
  BlockKind kind;
  kind.indexes_tokens = true;
  return kind;
}

}  // namespace

// 128 x 4 x 32 for its queries, 512 x 32 for its key with a norm of 2 x 32, 512 x 4 for the weights
// of its heads.
TEST_CASE("an indexer has weights and no gradients", "[layer_graph]") {
  const Workload w = choosing_tokens();
  const LayerGraph with = block_graph(w, plan_of(1), with_indexer());
  const LayerGraph without = block_graph(w, plan_of(1), {});
  CHECK(with.parameters.base() - without.parameters.base() ==
        128 * 128 + 512 * 32 + 2 * 32 + 512 * 4);
  for (const Operator& op : with.operators) {
    if (!op.name.starts_with("index_")) continue;
    INFO(op.name);
    CHECK(op.saves.empty());
    CHECK(op.backward.empty());
    CHECK(op.backward_weight.empty());
    CHECK(op.weight_gradient_elements == 0);
  }
}

// Queries in fp32, 256 x 128 x 4 bytes, and twice 256 x 256 scores of 4 heads in fp32; of two
// sequences the keys, 32 values for each pair of 2 x 256 x 256, beside scores once. autocast's
// products have half of that but for the queries.
TEST_CASE("scores live twice, or beside copies of the keys", "[layer_graph]") {
  Workload w = choosing_tokens();
  const std::int64_t asked = 256 * 128 * 4, scores = 256 * 256 * 4 * 4;
  CHECK(operator_called(block_graph(w, plan_of(1), with_indexer()), "index_scores")
            .forward_temporary == Bytes(asked + 2 * scores));
  ParallelPlan two = plan_of(1);
  two.microbatch = 2;
  CHECK(operator_called(block_graph(w, two, with_indexer()), "index_scores").forward_temporary ==
        Bytes(2 * asked + 2 * scores + 2 * 256 * 256 * 32 * 4));
  w.framework.formats.autocast = true;
  CHECK(operator_called(block_graph(w, plan_of(1), with_indexer()), "index_scores")
            .forward_temporary == Bytes(asked + scores));
}

// What is chosen reaches attention as a mask of its own for each sequence, two bytes a pair, which
// keeps it from the flash kernel; a layer that takes over a choice has the mask alone.
TEST_CASE("attention keeps the mask of what was chosen", "[layer_graph]") {
  const Workload w = choosing_tokens();
  for (const bool own : {true, false}) {
    BlockKind kind;
    kind.indexes_tokens = own;
    const LayerGraph graph = block_graph(w, plan_of(1), kind);
    const Operator& attention = operator_called(graph, "attention");
    const auto mask = std::find_if(graph.tensors.begin(), graph.tensors.end(),
                                   [](const Tensor& t) { return t.name == "mask"; });
    REQUIRE(mask != graph.tensors.end());
    CHECK(mask->bytes == 256 * 256 * 2);
    for (const Kernel& kernel : attention.forward)
      if (const auto* work = std::get_if<AttentionWork>(&kernel)) {
        CHECK(work->masked);
        CHECK(work->kernel == AttentionKernel::memory_efficient);
        CHECK(work->keys == 256);
      }
  }
}

// 256 queries by kernels of its own, 100 a slice. Chosen numbers are
// 256 x 64 of 4 bytes; beside them all slices' before they are put together, and of one slice 100 x
// 256 fp32 scores and the best 64 of each query, 4 + 8 bytes.
TEST_CASE("an indexer with a slice scores so many queries at a time", "[layer_graph]") {
  Workload w = choosing_tokens();
  w.framework.attention.indexer_slice = 100;
  const LayerGraph graph = block_graph(w, plan_of(1), with_indexer());
  const Operator& choice = operator_called(graph, "index_choice");
  const std::int64_t chosen = 4 * 256 * 64;
  CHECK(choice.forward_temporary == Bytes(chosen + 100 * (4 * 256 + 12 * 64)));
  const Tensor& numbers = graph.tensors[static_cast<std::size_t>(choice.outputs.front())];
  CHECK(numbers.bytes == chosen);
  CHECK_FALSE(numbers.outlives);
  w.model.indexer->layers = "os";  // the second layer takes what the first has chosen
  const LayerGraph lends = block_graph(w, plan_of(1), with_indexer());
  const Operator& lent = operator_called(lends, "index_choice");
  CHECK(lends.tensors[static_cast<std::size_t>(lent.outputs.front())].outlives);
}

// Kept of 256 tokens with 8 heads: queries of 64 + 16 values and outputs of 64, one key of 64 + 16,
// in 16 bits; 64 numbers of 4 bytes; a log-sum-exp of 4 bytes a head. No mask, no key of each head.
// Over two ranks a rank has 128 queries and the keys of all 256 tokens.
TEST_CASE("sparse attention's kernel keeps latents and numbers of tokens", "[layer_graph]") {
  Workload w = choosing_tokens();
  w.framework.attention.indexer_slice = 100;
  for (const int ranks : {1, 2}) {
    ParallelPlan plan = plan_of(1);
    plan.context = ranks;
    const std::int64_t rows = 256 / ranks;
    for (const bool own : {true, false}) {
      BlockKind kind;
      kind.indexes_tokens = own;
      const LayerGraph graph = block_graph(w, plan, kind);
      const Operator& attention = operator_called(graph, "attention");
      std::int64_t kept = 0;
      for (const TensorIndex t : attention.saves)
        kept += graph.tensors[static_cast<std::size_t>(t)].bytes;
      CHECK(kept == 2 * rows * 8 * (80 + 64) + 2 * 256 * 80 + 4 * rows * 64 + 4 * rows * 8);
      for (const Tensor& t : graph.tensors) CHECK(t.name != "mask");
    }
  }
}

// The kernel changes what is computed, not what is learnt.
TEST_CASE("sparse attention has the weights of latent attention", "[layer_graph]") {
  Workload w = choosing_tokens();
  const std::int64_t dense = block_graph(w, plan_of(1), with_indexer()).parameters.base();
  w.framework.attention.indexer_slice = 100;
  const LayerGraph graph = block_graph(w, plan_of(1), with_indexer());
  CHECK(graph.parameters.base() == dense);
  std::int64_t gradients = 0;
  for (const Operator& op : graph.operators) gradients += op.weight_gradient_elements;
  // All but the indexer's, which has none: 128 x 128 + 512 x 32 + 2 x 32 + 512 x 4.
  CHECK(gradients == dense - (128 * 128 + 512 * 32 + 2 * 32 + 512 * 4));
}
