// What attention keeps where its operands and its result are views, or copies in another order.
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kept_bytes.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

// With as many K heads as Q heads, Q, K and V are one tensor of which Q is a view, and K and V are
// copied out beside it: q holds 6h bytes per token in place of 2h.
TEST_CASE("a query that is a view holds the whole projection", "[layer_graph]") {
  Workload w = pretraining(llama(2, 1024, 16, 16, 2816, 32000), 256);
  const std::int64_t plain = kept_bytes(block_graph(w, plan_of(1), {}));
  w.framework.attention.query_is_view_of_qkv = true;
  CHECK(kept_bytes(block_graph(w, plan_of(1), {})) == plain + 256 * 4 * 1024);
  w.model.kv_heads = 4;  // split, and each copied
  const std::int64_t grouped = kept_bytes(block_graph(w, plan_of(1), {}));
  w.framework.attention.query_is_view_of_qkv = false;
  CHECK(kept_bytes(block_graph(w, plan_of(1), {})) == grouped);
}

// Scaling's attention, which fake tensors count (with its own classes, flash-attn's as what it
// saves): of h bytes, in 16 bits with h = 5120 in 40 heads of 128, 7.1 tensors [tokens, h] with one
// sequence, 8.1 with two, beside the statistics of the softmax.
//   normed input 1, q 1, k 1, v a view of the projection 3, output 1, and for each of 4 gathers of
//   angles 128 / 5120; with two sequences the output in the order that its projection reads, 1.
TEST_CASE("Attention keeps a view, angles and both orders of its output", "[layer_graph]") {
  Workload w = pretraining(llama(2, 5120, 40, 40, 13824, 32000), 256);
  w.framework.attention.eager_rotary = true;
  const std::int64_t h = 5120, d = 128;
  const auto per_token = [&](int sequences) {
    ParallelPlan plan = plan_of(1);
    plan.microbatch = sequences;
    return kept_bytes(block_graph(w, plan, {})) / (256 * sequences);
  };
  const std::int64_t plain = per_token(1);
  REQUIRE(per_token(2) == plain);
  w.framework.attention.value_is_view_of_qkv = true;
  CHECK(per_token(1) == plain + 2 * 2 * h);
  w.framework.attention.gathers_angles = true;
  CHECK(per_token(1) == plain + 2 * 2 * h + 4 * 2 * d);
  w.framework.attention.merges_heads_of_output = true;
  CHECK(per_token(1) == plain + 2 * 2 * h + 4 * 2 * d);
  CHECK(per_token(2) == plain + 2 * 2 * h + 4 * 2 * d + 2 * h);
}

// 16 heads of 64 and 4 of K and V, h = 1024. A fused kernel keeps q, K and V of all heads, 2h bytes
// a token each, and a statistic of every head, 4 x 16. Written out all three are fp32, 4h each, and
// so is a probability of each head and key, 4 x 16 x 256; nothing else is kept.
TEST_CASE("Grouped heads that no fused kernel takes are written out in fp32", "[layer_graph]") {
  Workload w = pretraining(llama(2, 1024, 16, 4, 2816, 32000), 256);
  w.framework.attention.repeats_kv = true;
  const auto per_token = [&] { return kept_bytes(block_graph(w, plan_of(1), {})) / 256; };
  const std::int64_t fused = per_token();
  w.framework.attention.writes_grouped_out = true;
  CHECK(per_token() == fused - 4 * 16 + 3 * 2 * 1024 + 4 * 16 * 256);
  w.framework.attention.masks_padding = true;  // a mask keeps heads from being grouped
  CHECK(per_token() == fused);
  w.framework.attention.masks_padding = false;
  w.model.kv_heads = 16;
  const std::int64_t alike = per_token();
  w.framework.attention.writes_grouped_out = false;
  CHECK(per_token() == alike);
  // The math backend, or a card without a kernel for bf16: with as many K heads as well, and where
  // scores were to be stored in 16 bits.
  w.framework.attention.by_operators = true;
  CHECK(per_token() == alike - 4 * 16 + 3 * 2 * 1024 + 4 * 16 * 256);
  const std::int64_t written = per_token();
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.attention.softmax_in_fp32 = true;
  CHECK(per_token() == written);
}
