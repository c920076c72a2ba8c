#include "simulator/graphs/plain_softmax.hpp"

#include <utility>

namespace shardwise {
namespace {

// A softmax of PyTorch's own operators, as kernels beside the products. Bytes of a score in fp32:
// forward scale 8, mask 8, maximum 4, difference 8, exponential 8, sum 4, quotient 8; backward, as
// autograd runs it, quotient by its divisor 8 + 8 + 8 + 12 + 8 + 4, sum of both 8, exponential 12,
// difference 8 + 4, maximum 4 + 8 + 12, mask 8, scale 8. Under autocast the exponential, the sum
// and the quotient stay fp32 between two casts, and what lies before takes half (counted with
// stanford-cs336/assignment2-systems @9d95f3b cs336_basics/model.py, scaled_dot_product_attention,
// under torch 2.8).
void add_kernels(const GraphBuilder& b, Operator& op, double scores) {
  const bool wide = b.element() == 4, casts = !wide && b.workload().framework.autocast;
  const auto kernels = [&](double bytes, int launches) {
    return MemoryWork{ceil_bytes(bytes * scores), launches, MemoryAccess::streaming};
  };
  op.forward.push_back(kernels(wide ? 48 : casts ? 46 : 24, casts ? 10 : 8));
  op.backward.push_back(kernels(wide ? 120 : casts ? 106 : 60, casts ? 19 : 17));
}

// Two selections more of a score's bytes, each way, and a mask of one byte for the first. What the
// quotient reads is what the first gave, and the product what the second did: a tensor more is kept
// beside the exponentials (PyTorch derivatives.yaml: exp saves its result, div what it divides,
// where the condition alone).
void guard_rows(GraphBuilder& b, Operator& op, std::int64_t scores, std::int64_t wide) {
  op.outputs.push_back(
      b.tensor_bytes("selected_exponentials", scores * wide, MemoryCategory::activations, 0));
  op.saves.push_back(op.outputs.back());
  const MemoryWork selections{Bytes(scores * (4 * wide + 1)), 2, MemoryAccess::streaming};
  op.forward.push_back(selections);
  op.backward.push_back(selections);
}

// ... and what it keeps: the exponentials, which the quotient reads, and the weights, which the
// product does. The scores and their difference from the maximum have names until it returns; the
// quotient's gradient is made of four tensors.
void keep_results(GraphBuilder& b, Operator& op, std::int64_t scores) {
  const std::int64_t e = b.element();
  const std::int64_t wide = b.workload().framework.autocast ? 4 : e;
  for (const auto& [name, each] : {std::pair{"softmax", e}, std::pair{"exponentials", wide}}) {
    op.outputs.push_back(b.tensor_bytes(name, scores * each, MemoryCategory::activations, 0));
    op.saves.push_back(op.outputs.back());
  }
  if (b.workload().framework.guards_softmax) guard_rows(b, op, scores, wide);
  op.forward_temporary = Bytes(scores * (e == 4 ? 8 : wide == 4 ? 8 : 4));
  op.backward_temporary = Bytes(scores * 4 * wide);
  op.backward_temporaries = 4;
}

}  // namespace

void run_plain_softmax(GraphBuilder& b, Operator& op, std::int64_t scores) {
  keep_results(b, op, scores);
  add_kernels(b, op, static_cast<double>(scores));
}

}  // namespace shardwise
