// Alternating updates (AltUp; Gemma 3n): the residual stream is s tensors, of which a block reads
// the first as a small product of all predicts it; what the block made of it corrects all of them.
// Beside attention runs a linear through a low rank, whose normed result joins the residual
// (LAuReL).
//
// As transformers has it (5.23, models/gemma3n/modeling_gemma3n.py: Gemma3nTextAltUp,
// Gemma3nTextLaurelBlock, Gemma3nTextDecoderLayer, Gemma3nTextModel.forward). Kept of a block per
// token beside attention's and the MLP's: the s streams, the innovation repeated s times, and what
// five norms more and the scaled first stream keep. Bytes count n, the values of one stream.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

struct Streams {
  std::int64_t rows, hidden, count;
  std::int64_t one() const { return rows * hidden; }
  std::int64_t all() const { return count * one(); }
};

Streams streams_of(const GraphBuilder& b) {
  const Transformer& m = b.workload().model;
  return {b.sequence_tokens(), m.hidden, m.altup->streams};
}

// Of values in the residual stream.
double stream_bytes(const GraphBuilder& b, std::int64_t elements) {
  return as_double(elements * b.stream_element());
}

// What makes one value for each stream of a token: a norm, a scale, a projection and, in fp32, the
// tangent.
TensorIndex add_modalities(GraphBuilder& b, TensorIndex x, const Streams& s) {
  const double n = stream_bytes(b, s.one());
  const TensorIndex normed = b.norm("altup_router_norm", x, s.rows, s.hidden);
  // Of a stream that is fp32 already, the copy that an eager norm would make is a view.
  const bool copies = b.eager() && !b.workload().framework.layers.fused_norms;
  if (copies && b.stream_element() == 4 && b.bytes_of(x) == 4 * s.all())
    b.widen(b.last().outputs.front(), 0);
  const TensorIndex scaled =
      b.pointwise("altup_router_scale", {normed}, {}, s.one(), 2 * n, 2 * n, 1);
  if (b.stream_element() != b.element()) b.in_stream(scaled);
  const TensorIndex routed =
      b.linear(uncut_linear(b, "altup_router", s.hidden, s.count), scaled, s.rows);
  const double small = as_double(4 * s.rows * s.count);
  const TensorIndex out =
      b.pointwise("altup_tangent", {routed}, {}, s.rows * s.count, 3 * small, 4 * small, 3);
  const TensorIndex kept =
      b.tensor_bytes("altup_tangent_fp32", 4 * s.rows * s.count, MemoryCategory::activations, 0);
  b.last().outputs.push_back(kept);
  b.last().saves = {kept};
  return out;
}

struct Predicted {
  TensorIndex active, others;  // the first stream and the rest, which lie in one tensor
};

// Each token's streams times a product of s x s, plus themselves where they lie, in one piece:
// reads and writes 2 s, 3 s, 2 s; backward two products, the copy and the sum of gradients.
Predicted predict(GraphBuilder& b, TensorIndex x, const Streams& s) {
  const TensorIndex coefficients =
      b.linear(uncut_linear(b, "altup_coefficients", s.count, s.count * s.count),
               add_modalities(b, x, s), s.rows);
  const double all = stream_bytes(b, s.all());
  Predicted out{b.stream_tensor("altup_active", s.one()),
                b.stream_tensor("altup_others", s.all() - s.one())};
  Operator op;
  op.name = "altup_predict";
  op.inputs = {x, coefficients};
  op.outputs = {out.active, out.others};
  op.saves = op.inputs;
  if (b.stream_element() !=
      b.element()) {  // the product reads a copy in 16 bits, the norm x itself
    op.outputs.push_back(
        b.tensor_bytes("altup_half", s.all() * b.element(), MemoryCategory::activations, 0));
    op.saves.push_back(op.outputs.back());
  }
  op.forward = {traffic(7 * all, 3)};
  op.backward = {traffic(9 * all, 5)};
  op.forward_temporary = ceil_bytes(all);
  op.backward_temporary = ceil_bytes(all);
  b.add(std::move(op));
  return out;
}

// What keeps the first stream keeps all of them.
void keep_together(GraphBuilder& b, const Predicted& p) {
  std::vector<TensorIndex>& saves = b.last().saves;
  if (std::find(saves.begin(), saves.end(), p.active) != saves.end()) saves.push_back(p.others);
}

// The innovation, repeated for every stream, times what its stream takes of it, plus the
// predictions where they lie.
TensorIndex correct(GraphBuilder& b, const Predicted& p, TensorIndex activated, const Streams& s) {
  const LayerParameters known = b.counted();  // the router is the one that predicts
  const TensorIndex modalities = add_modalities(b, activated, s);
  b.recount(known);
  const TensorIndex shares =
      b.linear(uncut_linear(b, "altup_correction", s.count, s.count), modalities, s.rows);
  const double n = stream_bytes(b, s.one()), all = stream_bytes(b, s.all());
  const TensorIndex innovation = b.stream_tensor("altup_innovation", s.all());
  b.resize_gradient(innovation, 0);
  const TensorIndex corrected = b.stream_tensor("altup_corrected", s.all());
  Operator op;
  op.name = "altup_correct";
  op.inputs = {activated, p.active, p.others, shares};
  op.outputs = {innovation, corrected};
  op.saves = {innovation, shares};
  op.forward = {traffic(4 * n + 6 * all, 4)};
  op.backward = {traffic(3 * n + 7 * all, 7)};
  op.forward_temporary = ceil_bytes(n);
  op.backward_temporary = ceil_bytes(2 * all);
  b.add(std::move(op));
  return corrected;
}

// The first stream, copied and scaled; the block's own embeddings go through a gate that reads it,
// and are added to the other streams.
TensorIndex add_own_embeddings(GraphBuilder& b, TensorIndex corrected, const Streams& s) {
  const double n = stream_bytes(b, s.one());
  const TensorIndex first = b.stream_tensor("altup_first", s.one());
  const TensorIndex scaled = b.stream_tensor("altup_scaled", s.one());
  b.resize_gradient(first, 0);
  Operator op;
  op.name = "altup_scale";
  op.inputs = {corrected};
  op.outputs = {first, scaled};
  if (b.trains_base()) op.saves = {first};
  op.forward = {traffic(4 * n, 2)};
  op.backward = {traffic(7 * n, 3)};
  op.weight_gradient_elements = b.trains_base() ? s.hidden : 0;
  b.add(std::move(op));
  b.count_other(s.hidden);
  const TensorIndex own = gated_layer_input(b, scaled);
  const TensorIndex out = b.stream_tensor("altup_streams", s.all());
  Operator sum;
  sum.name = "altup_join";
  sum.inputs = {corrected, own};
  sum.outputs = {out};
  sum.forward = {traffic(2 * stream_bytes(b, s.all() - s.one()) + n, 1)};
  sum.backward = {traffic(stream_bytes(b, s.all()), 1)};
  b.add(std::move(sum));
  return out;
}

// One stream made as long as the first: its square's mean and root, a product and a quotient.
TensorIndex rescaled(GraphBuilder& b, TensorIndex projected, const Streams& s) {
  const double n = stream_bytes(b, s.one());
  const TensorIndex product = b.tensor("altup_product", s.one());
  const TensorIndex out = b.stream_tensor("altup_rescaled", s.one());
  b.resize_gradient(product, 0);
  Operator op;
  op.name = "altup_rescale";
  op.inputs = {projected};
  op.outputs = {product, out};
  op.saves = {projected, product};
  op.forward = {traffic(7 * n, 6)};
  op.backward = {traffic(14 * n, 8)};
  op.backward_temporary = ceil_bytes(2 * n);
  b.add(std::move(op));
  return out;
}

// Several tensors of one stream as one, or their mean.
TensorIndex joined_streams(GraphBuilder& b, std::vector<TensorIndex> parts, std::int64_t elements,
                           const Streams& s) {
  const TensorIndex out = b.stream_tensor("altup_stack", elements);
  Operator op;
  op.name = "altup_stack";
  op.inputs = std::move(parts);
  op.outputs = {out};
  const double all = stream_bytes(b, s.all());
  op.forward = {traffic(all + stream_bytes(b, elements), elements == s.all() ? 1 : 2)};
  op.backward = {traffic(elements == s.all() ? 0 : all, elements == s.all() ? 0 : 2)};
  b.add(std::move(op));
  return out;
}

}  // namespace

TensorIndex open_streams(GraphBuilder& b, TensorIndex embedded) {
  const Streams s = streams_of(b);
  std::vector<TensorIndex> parts{embedded};
  for (std::int64_t i = 1; i < s.count; ++i)
    parts.push_back(rescaled(
        b, b.linear(uncut_linear(b, "altup_in", s.hidden, s.hidden), embedded, s.rows), s));
  return joined_streams(b, std::move(parts), s.all(), s);
}

TensorIndex close_streams(GraphBuilder& b, TensorIndex x) {
  const Streams s = streams_of(b);
  std::vector<TensorIndex> parts{x};
  for (std::int64_t i = 1; i < s.count; ++i)
    parts.push_back(
        rescaled(b, b.linear(uncut_linear(b, "altup_out", s.hidden, s.hidden), x, s.rows), s));
  return joined_streams(b, std::move(parts), s.one(), s);
}

TensorIndex add_altup_block(GraphBuilder& b, TensorIndex x, BlockKind kind) {
  const Transformer& m = b.workload().model;
  const Streams s = streams_of(b);
  const double n = stream_bytes(b, s.one());
  const Predicted predicted = predict(b, x, s);
  const TensorIndex normed = b.norm("attention_norm", predicted.active, s.rows, s.hidden);
  keep_together(b, predicted);
  const std::int64_t rank = m.altup->residual_rank;
  const TensorIndex low = b.linear(uncut_linear(b, "laurel_down", s.hidden, rank), normed, s.rows);
  const TensorIndex high = b.linear(uncut_linear(b, "laurel_up", rank, s.hidden), low, s.rows);
  const TensorIndex beside =
      b.residual_add(normed, b.norm("laurel_norm", high, s.rows, s.hidden), s.one());
  TensorIndex branch = add_attention(b, normed, kind);
  branch = b.norm("attention_output_norm", branch, s.rows, s.hidden);
  const TensorIndex sum =
      b.residual_add(b.residual_add(predicted.active, branch, s.one()), beside, s.one());
  const TensorIndex middle = b.pointwise("laurel_scale", {sum}, {}, s.one(), 2 * n, 2 * n, 1);
  if (b.stream_element() != b.element()) b.in_stream(middle);
  const TensorIndex again = b.norm("mlp_norm", middle, s.rows, s.hidden);
  branch = add_mlp(b, again, m.ffn, true, kind.cuts_gate);
  branch = b.norm("mlp_output_norm", branch, s.rows, s.hidden);
  const TensorIndex activated = b.residual_add(middle, branch, s.one());
  return add_own_embeddings(b, correct(b, predicted, activated, s), s);
}

}  // namespace shardwise
