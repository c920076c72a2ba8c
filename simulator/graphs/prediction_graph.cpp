// Multi-token prediction (arXiv 2412.19437, section 2.2): at depth k the hidden state of depth
// k - 1 and the embedding of the token k places on, both normed, are projected from 2 h to h and
// go through one more layer, whose result the model's own head turns into a loss (Megatron-LM
// megatron/core/transformer/multi_token_prediction.py).
#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

// As the model's last layer, or as the letters of a hybrid's say.
TensorIndex add_layer(GraphBuilder& b, TensorIndex x) {
  const Transformer& m = b.workload().model;
  BlockKind kind;
  if (m.prediction_mixers.empty()) {
    kind.mixer = m.mixer(m.layers - 1);
    kind.experts = m.is_moe_layer(m.layers - 1);
    return add_block(b, x, kind);
  }
  for (const char letter : m.prediction_mixers) {
    kind.mixer = mixer_named(letter);
    x = add_block(b, x, kind);
  }
  return x;
}

}  // namespace

TensorIndex add_prediction(GraphBuilder& b, TensorIndex hidden) {
  const std::int64_t width = b.workload().model.hidden;
  const std::int64_t rows = b.sequence_tokens();
  const auto n = static_cast<double>(rows * width * b.element());
  const TensorIndex embedded =
      b.pointwise("prediction_embedding", {}, {}, rows * width, 2 * n, 3 * n, 1);
  const TensorIndex next = b.norm("prediction_embedding_norm", embedded, rows, width);
  const TensorIndex before = b.norm("prediction_hidden_norm", hidden, rows, width);
  const TensorIndex joined =
      b.pointwise("prediction_join", {next, before}, {}, 2 * rows * width, 4 * n, 4 * n, 1);
  // Cut over tensor ranks there; here every rank projects its share of the tokens: as much work.
  return add_layer(b, b.linear({"prediction_projection", 2 * width, width}, joined, rows));
}

}  // namespace shardwise
