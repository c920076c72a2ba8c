// Lightning attention (arXiv 2501.08313, section 2.2): queries, keys and values from one projection
// and SiLU, linear attention with a fixed decay for each head, a norm over all heads, a sigmoid
// gate that is projected from the input, one projection back.
//
// Tokens go block by block. Within a block of L they attend as a square, (Q K^T * decay) V; what
// came before reaches them through a state of d x d for each head, Q W, to which each block adds
// K^T V. Products of a block and head: L L d twice, L d d twice; backward twice as many.
//
// As transformers has it (5.23, models/minimax/modeling_minimax.py, MiniMaxLightningAttention), a
// loop in Python: autograd keeps the decayed scores of every block, decayed queries and keys, and
// the states. A kernel (flash-linear-attention, fla/ops/lightning_attn/chunk.py) keeps queries,
// keys and values, and makes the rest again: another K^T V for each block.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

struct BlockShape {
  std::int64_t rows, sequences, blocks, length, heads, head_dim;
  std::int64_t elements() const { return rows * heads * head_dim; }
  std::int64_t scores() const { return rows * heads * length; }
  std::int64_t states() const { return blocks * heads * head_dim * head_dim; }
};

BlockShape block_shape(const GraphBuilder& b, const LightningAttention& l) {
  const std::int64_t sequence = b.tokens() / b.plan().microbatch;
  const std::int64_t length = std::min<std::int64_t>(l.block, sequence);
  return {b.tokens(), b.plan().microbatch,  (sequence + length - 1) / length * b.plan().microbatch,
          length,     l.heads / b.tensor(), l.head_dim};
}

void add_block_products(const GraphBuilder& b, const BlockShape& s, int times,
                        std::vector<Kernel>& to) {
  const DType dtype = b.workload().activation_dtype();
  const std::int64_t batch = s.blocks * s.heads;
  for (int i = 0; i < times; ++i) {
    to.push_back(GemmWork{s.length, s.length, s.head_dim, batch, dtype});
    to.push_back(GemmWork{s.length, s.head_dim, s.length, batch, dtype});
    to.push_back(GemmWork{s.length, s.head_dim, s.head_dim, batch, dtype});
    to.push_back(GemmWork{s.head_dim, s.head_dim, s.length, batch, dtype});
  }
}

// Values read and written beside the products, forward: scores times decay 2, queries and keys
// times decay 2 each, states times decay and summed 5, the sum of both parts 3, blocks put together
// 2, heads put beside each other 2. Backward as many again for what has a gradient, and each
// block's gradients of a third of the projection's result are padded and summed.
void write_out(GraphBuilder& b, const BlockShape& s, Operator& op) {
  const double n = bytes_of_elements(b, s.elements());
  const double squares = bytes_of_elements(b, s.scores());
  const double states = bytes_of_elements(b, s.states());
  const auto kept = [&](std::string_view name, std::int64_t elements) {
    op.outputs.push_back(
        b.tensor_bytes(name, elements * b.element(), MemoryCategory::activations, 0));
    op.saves.push_back(op.outputs.back());
  };
  kept("decayed_scores", s.scores());
  // The first block of a sequence reads no state, and the last one's is read by nothing.
  const std::int64_t others = (s.blocks - s.sequences) * s.length * s.heads * s.head_dim;
  kept("decayed_queries", others);
  kept("decayed_keys", others);
  kept("block_states", s.states());
  const int launches = static_cast<int>(std::min<std::int64_t>(s.blocks, 1 << 20));
  op.forward.push_back(traffic(11 * n + 2 * squares + 5 * states, 7 * launches + 2));
  op.backward.push_back(traffic(17 * n + 2 * squares + 5 * states, 10 * launches + 2));
}

TensorIndex linear_attention(GraphBuilder& b, TensorIndex act, const BlockShape& s) {
  const bool loops = b.eager() && b.workload().framework.layers.runs_transformers;
  const TensorIndex out = b.tensor("lightning", s.elements());
  Operator op;
  op.name = "lightning_attention";
  op.inputs = {act};
  op.outputs = {out};
  op.saves = {act};
  exchange_tokens_for_heads(b, 3 * s.elements(), op.forward);
  add_block_products(b, s, 1, op.forward);
  add_block_products(b, s, 2, op.backward);
  if (loops) {
    write_out(b, s, op);
  } else {
    const double states = 4.0 * as_double(s.states());
    op.forward.push_back(traffic(2 * states, 2));
    op.backward.push_back(GemmWork{s.head_dim, s.head_dim, s.length, s.blocks * s.heads,
                                   b.workload().activation_dtype()});
    op.backward.push_back(traffic(4 * states, 3));
    op.forward_temporary = ceil_bytes(states);
    op.backward_temporary = ceil_bytes(2 * states);
  }
  exchange_tokens_for_heads(b, s.elements(), op.forward);
  exchange_tokens_for_heads(b, s.elements(), op.backward);
  exchange_tokens_for_heads(b, 3 * s.elements(), op.backward);
  b.add(std::move(op));
  return out;
}

}  // namespace

TensorIndex add_lightning(GraphBuilder& b, TensorIndex normed) {
  const Transformer& m = b.workload().model;
  const LightningAttention& l = *m.lightning;
  const AdapterTargets& on = b.workload().adapter.targets;
  const TensorIndex x = b.gather_sequence(normed, m.hidden);
  const BlockShape s = block_shape(b, l);
  const double n = bytes_of_elements(b, s.elements());
  const TensorIndex projected =
      b.linear({"lightning_in", m.hidden, std::int64_t{3} * l.width(), Cut::columns, false, on.up},
               x, s.rows);
  const TensorIndex act =
      b.pointwise("lightning_silu", {projected}, {projected}, 3 * s.elements(), 6 * n, 9 * n, 1);
  const TensorIndex mixed = linear_attention(b, act, s);
  const TensorIndex scaled =
      b.norm("lightning_norm", mixed, s.rows, std::int64_t{l.width()} / b.tensor());
  const TensorIndex gate =
      b.linear({"lightning_gate", m.hidden, l.width(), Cut::columns, false, on.up},
               b.gathered_again(x, normed, m.hidden), s.rows);
  const TensorIndex open = b.pointwise("gate_sigmoid", {gate}, {}, s.elements(), 2 * n, 3 * n, 1);
  b.last().saves = {open};
  const TensorIndex gated =
      b.pointwise("gated_output", {open, scaled}, {open, scaled}, s.elements(), 3 * n, 6 * n, 1);
  const TensorIndex out =
      b.linear({"lightning_out", l.width(), m.hidden, Cut::rows, false, on.down}, gated, s.rows);
  return b.reduce_partial(out, m.hidden);
}

}  // namespace shardwise
