#include "simulator/graphs/cut_head.hpp"

#include <cmath>

namespace shardwise {

TensorIndex cut_head(GraphBuilder& b, TensorIndex x, std::int64_t vocab, std::int64_t width,
                     bool tied_here) {
  const Workload& w = b.workload();
  const std::int64_t rows = b.tokens(), local = vocab / b.tensor();
  const bool trained = w.trains_head();
  const DType dtype = w.product_dtype();
  // A token's sum of exponentials, and every entry's mean logit, by which backward orders blocks.
  const TensorIndex sums =
      b.tensor_bytes("loss_sums", 4 * (rows + local), MemoryCategory::activations, 0);
  const TensorIndex loss = b.tensor_bytes("loss", 4, MemoryCategory::logits, 4);
  Operator op;
  op.name = "cut_cross_entropy";
  op.kind = OperatorKind::loss;
  op.inputs = {x};
  op.outputs = {sums, loss};
  op.saves = {x, sums};
  const auto share = static_cast<std::int64_t>(
      std::ceil(w.framework.loss.cut_gradient_share * static_cast<double>(rows)));
  const GemmWork logits{rows, local, width, 1, dtype};
  op.forward = {logits, MemoryWork{Bytes(b.element() * rows * width + 8 * rows), 2}};
  op.backward = {logits, GemmWork{share, width, local, 1, dtype}, MemoryWork{Bytes(8 * local), 1}};
  if (trained) op.backward_weight = {GemmWork{local, width, share, 1, dtype}};
  // A tied head's is added into the embedding's.
  op.weight_gradient_elements = trained && !tied_here ? width * local : 0;
  b.add(std::move(op));
  b.count_other(tied_here ? 0 : width * local);
  return b.last().outputs.back();
}

}  // namespace shardwise
