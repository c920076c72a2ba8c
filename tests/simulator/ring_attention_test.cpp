#include "simulator/graphs/ring_attention.hpp"

#include "simulator/costs/attention_model.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// 8 heads of 64 on 2 of keys, one sequence of 1024 tokens.
Workload ring_workload() { return pretraining(llama(1, 512, 8, 2, 1408, 1000), 1024); }

ParallelPlan over(int context) {
  ParallelPlan plan = plan_of(1);
  plan.context = context;
  return plan;
}

struct Attention {
  double pairs = 0;
  int kernels = 0, messages = 0;
  double merged = 0;   // bytes beside the kernels
  double reduced = 0;  // of gradients
  Operator op;
};

Attention attention_of(const Workload& w, const ParallelPlan& plan, BlockKind kind = {}) {
  Attention sum;
  for (const Operator& op : block_graph(w, plan, kind).operators) {
    if (op.kind != OperatorKind::attention) continue;
    sum.op = op;
    for (const Kernel& k : op.forward) {
      if (const auto* a = std::get_if<AttentionWork>(&k)) {
        sum.pairs += a->pieces * visible_pairs(*a);
        sum.kernels += a->pieces;
      } else if (const auto* m = std::get_if<MemoryWork>(&k)) {
        sum.merged += static_cast<double>(m->moved.value);
      } else if (const auto* c = std::get_if<CommWork>(&k)) {
        sum.messages += c->messages;
      }
    }
    for (const Kernel& k : op.backward)
      if (const auto* c = std::get_if<CommWork>(&k))
        if (c->collective == Collective::reduce_scatter)
          sum.reduced += static_cast<double>(c->size.value);
  }
  return sum;
}

}  // namespace

// A quarter of 1024 x 1024 / 2 pairs: 256 x 256 / 2 of its own and three times 256 x 128.
TEST_CASE("Parts of a ring compute a rank's share of all pairs", "[ring_attention]") {
  const Attention ring = attention_of(ring_workload(), over(4));
  CHECK(ring.pairs == 1024.0 * 1024 / 2 / 4);
  CHECK(ring.kernels == 4);
  CHECK(ring.messages == 3);
  CHECK(attention_of(ring_workload(), over(1)).kernels == 1);

  ParallelPlan gathered = over(4);
  gathered.context_kind = ContextKind::all_gather;
  const Attention whole = attention_of(ring_workload(), gathered);
  CHECK(whole.pairs == ring.pairs);
  CHECK(whole.kernels == 1);
  CHECK(whole.merged == 0);
}

// In order, the last of four ranks sees 256 x 256 / 2 pairs of its own and 256 x 256 of each other
// one: 7 / 4 of its share.
TEST_CASE("Where ranks hold stretches in order, the last one sees all others", "[ring_attention]") {
  Workload w = ring_workload();
  w.framework.parallel.context_in_order = true;
  const Attention ring = attention_of(w, over(4));
  CHECK(ring.pairs == 256.0 * 256 / 2 + 3 * 256.0 * 256);
  CHECK(ring.kernels == 4);
}

// 256 tokens: output 8 x 64 x 256 = 131072 elements, keys and values 2 x 128 x 256 = 65536. In 16
// bits: packed 4 B of keys and values, the first part 4 B of output, each other one 6.
TEST_CASE("What joins a ring in 16 bits", "[ring_attention]") {
  const Attention ring = attention_of(ring_workload(), over(4));
  CHECK(ring.merged == 4.0 * 65536 + 4.0 * 131072 + 3 * 6.0 * 131072);
  CHECK(ring.reduced == 2.0 * 65536 * 4);
  // Parts and messages of four ranks have names until the last is merged.
  CHECK(ring.op.forward_temporary == Bytes(4 * 2 * (65536 + 131072)));
  CHECK(attention_of(ring_workload(), over(1)).op.forward_temporary == Bytes(0));
}

// fp32: every part is widened (6 B), three are merged (32 B), the result is cast back (6 B); keys
// and values are made contiguous and packed for three messages (4 B each); the gradients of keys
// and values travel in fp32. So they do where keys are gathered, for the kernel runs on parts then
// as well.
TEST_CASE("What joins a ring in fp32", "[ring_attention]") {
  Workload w = ring_workload();
  w.framework.parallel.context_merge = ContextMerge::fp32_operators;
  const Attention ring = attention_of(w, over(4));
  CHECK(ring.merged == (4 * 6.0 + 3 * 32.0 + 6.0) * 131072 + 4 * 4.0 * 65536);
  CHECK(ring.reduced == 4.0 * 65536 * 4);
  ParallelPlan gathered = over(4);
  gathered.context_kind = ContextKind::all_gather;
  CHECK(attention_of(w, gathered).kernels == 4);
  w.framework.parallel.context_merge = ContextMerge::none;
  CHECK(attention_of(w, gathered).kernels == 1);
}

// A window shorter than the sequence leaves most parts empty: its kernel stays whole.
TEST_CASE("Local attention is not dealt in parts", "[ring_attention]") {
  Workload w = ring_workload();
  w.model.sliding_window = 128;
  AttentionWork local;
  local.queries = 256;
  local.keys = 128;
  const ParallelPlan plan = over(4);
  const GraphBuilder b(w, plan, true);
  CHECK_FALSE(attends_in_parts(b, local));
  local.keys = 1024;
  CHECK(attends_in_parts(b, local));
  local.kernel = AttentionKernel::eager;
  CHECK_FALSE(attends_in_parts(b, local));
}

// 384 x 1024 - 384^2 / 2 pairs in all: the window is longer than the 256 or 128 queries of a rank,
// shorter than the 512, and those of one rank are not a sequence's first ones.
TEST_CASE("Ranks compute all pairs of a window between them", "[ring_attention]") {
  Workload w = ring_workload();
  w.model.sliding_window = 384;
  for (const ContextKind kind : {ContextKind::ring, ContextKind::all_gather})
    for (const int ranks : {1, 2, 4, 8}) {
      ParallelPlan plan = over(ranks);
      plan.context_kind = kind;
      const Attention local = attention_of(w, plan, {.local_attention = true});
      CHECK(ranks * local.pairs == 384.0 * 1024 - 384.0 * 192);
      CHECK(local.kernels == 1);
    }
}
