#include "simulator/graphs/plain_softmax.hpp"

#include <utility>
#include <vector>

namespace shardwise {
namespace {

// Of each value in one pass: bytes of kernels that reduce rows, two; of those that take elements
// one by one, a kernel for each, as their operands are broadcast or widened; and of all others.
struct SoftmaxPass {
  double reduced = 0, singly = 0;
  int elements = 0;
  double others = 0;
  int kernels = 0;
};

void append_pass(std::vector<Kernel>& pass, const SoftmaxPass& p, double values) {
  pass.emplace_back(traffic(p.reduced * values, 2, MemoryAccess::reduction));
  pass.emplace_back(one_by_one(p.singly * values, p.elements, p.elements * values));
  pass.emplace_back(traffic(p.others * values, p.kernels));
}

// A softmax of PyTorch's own operators, as kernels beside the products. Bytes of a score in fp32:
// forward scale 8, mask 8, maximum 4, difference 8, exponential 8, sum 4, quotient 8; backward, as
// autograd runs it, quotient by its divisor 8 + 8 + 8 + 12 + 8 + 4, sum of both 8, exponential 12,
// difference 8 + 4, maximum 4 + 12, mask 8, scale 8. Under autocast the exponential, the sum and
// the quotient stay fp32 between two casts, and what lies before takes half. The mask is one for
// all heads, and maximum and sum are one for a row: mask, difference and quotients take their
// elements one by one, and so do the casts to fp32 (counted as calibrate/count_norm_operators.py
// does, with stanford-cs336/assignment2-systems @9d95f3b cs336_basics/model.py,
// scaled_dot_product_attention, under torch 2.15; where nobody looks on, the maximum's gradient is
// scattered in place).
constexpr SoftmaxPass wide_softmax_forward{8, 24, 3, 16, 3},
    wide_softmax_backward{8, 40, 5, 64, 10};
constexpr SoftmaxPass cast_softmax_forward{6, 22, 4, 18, 4},
    cast_softmax_backward{6, 42, 6, 54, 11};
constexpr SoftmaxPass narrow_softmax_forward{4, 12, 3, 8, 3},
    narrow_softmax_backward{4, 20, 5, 32, 10};

void add_kernels(const GraphBuilder& b, Operator& op, double scores) {
  const bool wide = b.element() == 4, casts = !wide && b.workload().framework.formats.autocast;
  append_pass(op.forward,
              wide    ? wide_softmax_forward
              : casts ? cast_softmax_forward
                      : narrow_softmax_forward,
              scores);
  append_pass(op.backward,
              wide    ? wide_softmax_backward
              : casts ? cast_softmax_backward
                      : narrow_softmax_backward,
              scores);
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
  const std::int64_t wide = b.workload().framework.formats.autocast ? 4 : e;
  for (const auto& [name, each] : {std::pair{"softmax", e}, std::pair{"exponentials", wide}}) {
    op.outputs.push_back(b.tensor_bytes(name, scores * each, MemoryCategory::activations, 0));
    op.saves.push_back(op.outputs.back());
  }
  if (b.workload().framework.attention.guards_softmax) guard_rows(b, op, scores, wide);
  op.forward_temporary = Bytes(scores * (e == 4 ? 8 : wide == 4 ? 8 : 4));
  op.backward_temporary = Bytes(scores * 4 * wide);
  op.backward_temporaries = 4;
}

}  // namespace

void run_plain_softmax(GraphBuilder& b, Operator& op, std::int64_t scores) {
  keep_results(b, op, scores);
  add_kernels(b, op, static_cast<double>(scores));
}

// Values of a logit: forward maximum 1, difference 2, exponential 2, sum 1, difference 2 and
// negative 2; backward, without the zeros that the choice is scattered into, negatives 2 + 2,
// sum 1, product with what the sum gave 2, sum of both 3, negative 2, sum 1, maximum 1 + 3.
void run_plain_log_softmax(Operator& op, double logits, double value) {
  op.forward.clear();
  op.backward.clear();
  append_pass(op.forward, {2 * value, 4 * value, 2, 4 * value, 3}, logits);
  append_pass(op.backward, {2 * value, 2 * value, 1, 13 * value, 7}, logits);
}

}  // namespace shardwise
