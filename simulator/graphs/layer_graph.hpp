// The layers of a transformer as operators: embedding, blocks, head with loss.
//
// A block is  x + O(attention(norm(x)))  and then  x + MLP(norm(x)); experts and latent attention
// take the place of the MLP and of plain attention where the model has them. Blocks with one norm
// (parallel residual) share it; blocks with four norm each branch's output too. A layer of a hybrid
// model is  x + mixer(norm(x)), or a block with another mixer in attention's place or beside it.
#pragma once

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/operators.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Whose keys and values a block's attention reads.
enum class KeySource : std::uint8_t {
  own,
  lent,    // its own, which later blocks read too
  shared,  // those of an earlier block
};

struct BlockKind {
  bool experts = false;          // mixture-of-experts instead of the dense MLP
  bool trainable = true;         // the base weights of this block have gradients
  bool local_attention = false;  // sliding window, where the model has one
  LayerMixer mixer = LayerMixer::attention_and_mlp;
  KeySource keys = KeySource::own;
  bool double_wide_mlp = false;
  bool indexes_tokens = false;  // has a token indexer of its own
  bool cuts_gate = false;       // AlternatingUpdates::cut_gates
  bool in_16_bits = false;      // its products, whatever the workload's are in
  friend bool operator==(const BlockKind&, const BlockKind&) = default;
};

// Narrow formats are of products only.
Workload in_16_bits(Workload workload);

LayerGraph block_graph(const Workload& workload, const ParallelPlan& plan, BlockKind kind);
LayerGraph embedding_graph(const Workload& workload, const ParallelPlan& plan);
// Final norm, output projection and loss. A tied projection counts no parameters of its own when
// `tied_here` (the embedding is on the same rank); elsewhere it is a second copy.
LayerGraph head_graph(const Workload& workload, const ParallelPlan& plan, bool tied_here);

// Tensor ranks that embedding and head are cut over: one where each has them whole.
int table_ranks(const Workload& workload, const ParallelPlan& plan);

// Vocabulary rows as stored: padded to a multiple of what the framework asks, times those.
std::int64_t padded_vocabulary(const Workload& workload, const ParallelPlan& plan);

// One block behind the tensor of its input, and the tensor that it hands over.
TensorIndex add_block(GraphBuilder& builder, TensorIndex x, BlockKind kind);
// One depth of multi-token prediction behind the hidden state of the one before it.
TensorIndex add_prediction(GraphBuilder& builder, TensorIndex hidden);

// The parts that a block is put together of; each returns the tensor that the branch adds.
TensorIndex add_attention(GraphBuilder& builder, TensorIndex normed, BlockKind kind);
// What the block's indexer chooses, as attention reads it: a mask, or with
// FrameworkAttention::indexer_slice the tokens' numbers.
TensorIndex add_token_indexer(GraphBuilder& builder, TensorIndex x, TensorIndex query_latent);
// `cuts_gate`: gates below a multiple of their deviation above their mean are zero.
TensorIndex add_mlp(GraphBuilder& builder, TensorIndex normed, std::int64_t width, bool sequence,
                    bool cuts_gate = false);
// `residual`: what was normed.
TensorIndex add_experts(GraphBuilder& builder, TensorIndex residual, TensorIndex normed);
TensorIndex add_mamba(GraphBuilder& builder, TensorIndex normed);
TensorIndex add_selective_scan(GraphBuilder& builder, TensorIndex normed);  // Mamba-1
TensorIndex add_delta(GraphBuilder& builder, TensorIndex normed);
// What context parallelism does in both before the convolution, and back after the scan or rule
// (megatron/core/ssm/mamba_context_parallel.py, gated_delta_net/gdn.py).
void exchange_tokens_for_heads(const GraphBuilder& builder, std::int64_t elements,
                               std::vector<Kernel>& to);
TensorIndex add_lightning(GraphBuilder& builder, TensorIndex normed);
TensorIndex add_convolution(GraphBuilder& builder, TensorIndex normed);
// Beside the embedding: the pieces of every layer, which stay until its backward pass.
void add_value_embeddings(GraphBuilder& builder, TensorIndex ids, bool trained);
void add_layer_embeddings(GraphBuilder& builder, TensorIndex ids, TensorIndex embedded,
                          bool trained);
// At the end of a block: its piece, through a gate that reads x, added to x.
TensorIndex add_layer_input(GraphBuilder& builder, TensorIndex x);
// The same without the sum: what joins the residual.
TensorIndex gated_layer_input(GraphBuilder& builder, TensorIndex x);
// Whole on every tensor rank; adapted by who adapts every linear of a block (PEFT's "all-linear").
LinearSpec uncut_linear(const GraphBuilder& builder, std::string_view name, std::int64_t in,
                        std::int64_t out);
// Alternating updates (altup_graph.cpp): the streams [s, Ts, h] behind the embedding, a block of
// them, and the one before the final norm.
TensorIndex open_streams(GraphBuilder& builder, TensorIndex embedded);
TensorIndex add_altup_block(GraphBuilder& builder, TensorIndex x, BlockKind kind);
TensorIndex close_streams(GraphBuilder& builder, TensorIndex x);

}  // namespace shardwise
