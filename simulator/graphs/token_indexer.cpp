// The lightning indexer of DeepSeek's sparse attention (DeepSeek-V3.2, arXiv 2512.02556; GLM-5):
// each query's heads score all keys, and the best `top_k` tokens are what attention may see.
//
// As transformers has it (5.23, models/deepseek_v32/modeling_deepseek_v32.py, DeepseekV32Indexer):
// without gradients, by PyTorch's own operators. Scores, of every head with every token, are made,
// scaled and cut at zero one after the other, so that two of them live at once; with more than one
// sequence the keys, which all queries share, are first copied out for each of them. Both are fp32,
// but torch.autocast makes its products of 16 bits. The choice is a mask of one byte per pair,
// which attention's kernel reads in 16 bits.
//
// A framework with kernels of its own for it (FrameworkAttention::indexer_slice) scores a slice of
// the queries at a time, in fp32 summed over heads, and hands on the numbers of the chosen tokens,
// 4 bytes each (basetenlabs/Megatron-LM @0644539e dsa_kernels.py, _chunked_indexer_topk_bshd,
// beside megatron/core/transformer/experimental_attention_variant/dsa.py). What is chosen here for
// other layers too stays for the whole microbatch (@62d9a8fcc glm_dsa_fused.py,
// _get_index_share_topk_holder).
//
// Optimizer states are counted of its weights as of others (0.1 % of both models), which those of
// PyTorch leave out for want of gradients.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

// A linear that runs forward alone and keeps nothing.
TensorIndex ungraded_linear(GraphBuilder& b, std::string_view name, std::int64_t in,
                            std::int64_t out, TensorIndex x) {
  const TensorIndex y = b.linear({name, in, out}, x, b.tokens());
  Operator& op = b.last();
  op.saves.clear();
  op.backward.clear();
  op.backward_weight.clear();
  op.backward_temporary = Bytes(0);
  op.weight_gradient_elements = 0;
  b.resize_gradient(y, 0);
  return y;
}

// One of memory's kernels that runs forward alone.
TensorIndex ungraded(GraphBuilder& b, std::string_view name, std::vector<TensorIndex> inputs,
                     std::int64_t bytes, double moved, int launches) {
  const TensorIndex out = b.tensor_bytes(name, bytes, MemoryCategory::temporaries, 0);
  Operator op;
  op.name = name;
  op.inputs = std::move(inputs);
  op.outputs = {out};
  op.forward = {traffic(moved, launches)};
  b.add(std::move(op));
  return out;
}

// The choice of the best tokens from `operands`: queries, keys, weights of heads. A slice has its
// scores, the best ones' values and numbers, of 4 and 8 bytes; the choices of all slices are put
// together.
TensorIndex choose_in_slices(GraphBuilder& b, std::vector<TensorIndex> operands, std::int64_t pairs,
                             std::int64_t best) {
  const TokenIndexer& own = *b.workload().model.indexer;
  const std::int64_t rows = b.tokens(), keys = b.workload().sequence;
  const std::int64_t slice =
      std::min<std::int64_t>(*b.workload().framework.attention.indexer_slice, rows);
  const int slices = static_cast<int>((rows + slice - 1) / slice);
  const TensorIndex chosen =
      ungraded(b, "index_choice", std::move(operands), 4 * rows * best,
               12 * as_double(pairs) + 32 * as_double(rows * best), 1 + 4 * slices);
  Operator& op = b.last();
  op.forward.insert(op.forward.begin(),
                    GemmWork{own.heads, keys, own.head_dim, rows, b.workload().product_dtype()});
  op.forward_temporary = Bytes(4 * rows * best + slice * (4 * keys + 12 * best));
  if (own.layers.find('s') != std::string::npos) b.outlive(chosen, true);
  return chosen;
}

}  // namespace

TensorIndex add_token_indexer(GraphBuilder& b, TensorIndex x, TensorIndex query_latent) {
  const Transformer& m = b.workload().model;
  const TokenIndexer& own = *m.indexer;
  const std::int64_t rows = b.tokens(), width = std::int64_t{own.heads} * own.head_dim;
  const std::int64_t sequences =
      std::int64_t{b.plan().microbatch} * b.workload().sequences_per_sample;
  const std::int64_t pairs = rows * b.workload().sequence;  // of queries and keys
  const double n = bytes_of_elements(b, rows * width);

  const std::int64_t latent = m.mla ? m.mla->q_lora_rank.value_or(m.hidden) : m.hidden;
  const TensorIndex asked = ungraded_linear(b, "index_query", latent, width, query_latent);
  const TensorIndex key = ungraded_linear(b, "index_key", m.hidden, own.head_dim, x);
  b.count_other(2 * own.head_dim);  // a LayerNorm
  const TensorIndex query =
      ungraded(b, "index_rotary", {asked}, rows * width * b.element(), 6 * n, 6);
  const TensorIndex weights = ungraded_linear(b, "index_weights", m.hidden, own.heads, x);

  const std::int64_t best = std::min<std::int64_t>(own.top_k, b.workload().sequence);
  if (b.workload().framework.attention.indexer_slice)
    return choose_in_slices(b, {query, key, weights}, pairs, best);

  const bool half = b.element() == 2 && b.workload().framework.formats.autocast;
  const std::int64_t wide = half ? 2 : 4;
  const std::int64_t scores = wide * pairs * own.heads;
  const std::int64_t copies = sequences > 1 ? wide * pairs * own.head_dim : 0;
  const TensorIndex sums =
      ungraded(b, "index_scores", {query, key, weights}, 4 * pairs,
               6 * n + 5 * as_double(scores) + as_double(copies) + 8 * as_double(pairs), 7);
  Operator& op = b.last();
  GemmWork each{own.heads, b.workload().sequence, own.head_dim, rows,
                half ? b.workload().product_dtype() : DType::fp32};
  op.forward.insert(op.forward.begin(), each);
  op.forward_temporary = Bytes(4 * rows * width + std::max(copies + scores, 2 * scores));

  // The best ones' values and numbers, of 4 and 8 bytes, and a byte for each pair, written thrice.
  const TensorIndex mask = ungraded(b, "index_mask", {sums}, pairs,
                                    12 * as_double(pairs) + 16 * as_double(rows * best), 6);
  b.last().forward_temporary = Bytes(12 * rows * best + 2 * pairs);
  return mask;
}

}  // namespace shardwise
