#include "simulator/graphs/rotary.hpp"

#include <variant>
#include <vector>

namespace shardwise {
namespace {

// A row of sines and one of cosines per token, whatever the heads: two kernels.
void keep_angles(GraphBuilder& b, Operator& op) {
  if (!b.workload().framework.attention.gathers_angles) return;
  const std::int64_t each = b.tokens() * b.workload().model.head_dim * b.element();
  for (const char* name : {"cosine", "sine"}) {
    op.outputs.push_back(b.tensor_bytes(name, each, MemoryCategory::activations, 0));
    op.saves.push_back(op.outputs.back());
  }
  op.forward.push_back(MemoryWork{Bytes(4 * each), 2, MemoryAccess::streaming, true});
}

// Of the operators of a rotation, those whose operands are broadcast angles or halves of heads, or
// laid out by token and by head, take 4.5 elements for one of theirs in each pass. The others are,
// forward, where a wide result is narrowed; backward the zeros around two halves and their sum
// (calibrate/count_norm_operators.py).
void takes_singly(Operator& op, std::int64_t elements, double once, bool wide) {
  const auto split = [&](std::vector<Kernel>& kernels, double in_order, int launches) {
    MemoryWork& all = std::get<MemoryWork>(kernels.front());
    all.singly = 9 * elements / 2;
    if (launches == 0) return;
    const MemoryWork rest = traffic(in_order * once, launches);
    all.moved -= rest.moved;
    all.launches -= launches;
    kernels.push_back(rest);
  };
  split(op.forward, wide ? 1.5 : 0, wide ? 1 : 0);
  split(op.backward, wide ? 5 : 2.5, 1);
}

// A copy in fp32, one kernel that reads and writes it, and one back in each pass: 6, 8, 6 bytes.
TensorIndex rotated_by_flash(GraphBuilder& b, TensorIndex t, std::int64_t elements) {
  const double narrow = bytes_of_elements(b, elements), wide = as_double(4 * elements);
  const TensorIndex rotated =
      b.pointwise("rotary", {t}, {}, elements, 3 * wide + narrow, 3 * wide + narrow, 2);
  Operator& op = b.last();
  for (std::vector<Kernel>* pass : {&op.forward, &op.backward}) {
    std::get<MemoryWork>(pass->front()).launches = 2;
    pass->push_back(one_by_one(wide + narrow, 1, as_double(elements)));
  }
  op.forward_temporary = op.backward_temporary = ceil_bytes(2 * wide);
  op.forward_temporaries = op.backward_temporaries = 2;
  keep_angles(b, op);
  return rotated;
}

// Neighbours of a head in pairs, on fp32 angles (RotaryCode): four products, of which each takes a
// half of the elements and writes as many, their difference and sum, and the two put together.
// Every second element comes with the one beside it: memory is read and written in sectors of 32
// bytes, so that such a half moves as much as the whole (NVIDIA's CUDA C Best Practices Guide,
// Strided Accesses: with a stride of 2 half of a transaction is wasted).
// Backward four products, one of them negated, and what makes one gradient of the halves': a sum
// for each half, which are then stacked and copied into the order of heads; of halves that were
// chosen by an index zeros as large as the whole for each of four choices, the half copied there,
// and three sums. A 16-bit result is a copy in both passes, and so is what is 16-bit before: of
// halves in products that are fp32, of the whole where it is made fp32 first
// (calibrate/count_norm_operators.py).
void rotate_pairs(const GraphBuilder& b, Operator& op, std::int64_t elements, bool wide_input) {
  const bool chosen = b.workload().framework.attention.rotary_code == RotaryCode::chosen_pairs;
  const bool narrow = b.element() < 4, mixed = narrow && !wide_input;
  const double n = as_double(elements), each = mixed && !chosen ? 2 : 4;
  const auto add = [n](std::vector<Kernel>& pass, double bytes, int launches, double singly) {
    if (launches > 0) pass.push_back(one_by_one(bytes * n, launches, singly * n));
  };
  op.forward.clear();
  op.backward.clear();
  add(op.forward, 4 * each + 8 + 8, 5, 3);
  add(op.forward, 12 + (narrow ? 6 : 0), narrow ? 3 : 2, 0);
  if (narrow) add(op.backward, 6, 1, 1);
  if (chosen) {
    if (mixed) add(op.forward, 6, 1, 1);
    // Three products and the negation read halves of the whole, the fourth what was negated.
    add(op.backward, 3 * 6 + 4 + 6 + 4 * 6, 9, 4.5);
    add(op.backward, 16 + 36 + (mixed ? 6 : 0), mixed ? 8 : 7, 0);
    return;
  }
  add(op.backward, 16 + 4 + 4 * each, 7, 4.5);
  add(op.backward, 3 * each + (mixed ? 12 : 0), mixed ? 6 : 2, 0);
}

TensorIndex rotated_by_pairs(GraphBuilder& b, TensorIndex t, std::int64_t elements) {
  const double once = 2 * bytes_of_elements(b, elements);
  const bool wide_input = b.bytes_of(t) == 4 * elements;
  const TensorIndex rotated = b.pointwise("rotary", {t}, {}, elements, once, once, 1);
  rotate_pairs(b, b.last(), elements, wide_input);
  return rotated;
}

TensorIndex rotated_by_halves(GraphBuilder& b, TensorIndex t, std::int64_t elements, Rotated what) {
  const double once = 2 * bytes_of_elements(b, elements);
  const bool packed = b.workload().framework.attention.fused_rotary, key = what == Rotated::key;
  // In transformers' classes sine and cosine are of the stream's format: beside one of fp32 the
  // products and their sum are fp32, and autocast copies that to 16 bits for the kernel: 36 bytes
  // in 6 kernels forward, 54 in 10 backward (calibrate/count_layer_operators.py).
  const bool wide = b.eager() && b.workload().framework.layers.runs_transformers && !packed &&
                    b.stream_element() > b.element();
  const double forward = wide ? 9 : !packed ? 5 : key ? 7 : 2;
  const double backward = wide ? 13.5 : !packed ? 7 : key ? 7 : 3;
  const int launches = wide ? 6 : !packed ? 5 : key ? 3 : 2;
  const TensorIndex rotated =
      b.pointwise("rotary", {t}, {}, elements, forward * once, backward * once, launches);
  std::get<MemoryWork>(b.last().backward.front()).launches = wide ? 10 : packed ? launches : 7;
  if (!packed) takes_singly(b.last(), elements, once, wide);
  return rotated;
}

}  // namespace

// Rotary embedding of q or k. Eager frameworks run five kernels that move 20 bytes per 16-bit
// element (rotate-half: negate, concatenate, two products, a sum) and seven backward that move 28
// (calibrate/count_norm_operators.py); fused ones read and write once. flash-attn's own, which
// nanotron calls, rotates once too, but keys within one tensor of keys and values: q, k and v are
// copied out of their projection (4 each), k and v together and into another order (8 each time);
// backward as much, put together again (huggingface/nanotron @67c5ebb6
// src/nanotron/models/llama.py:468-472, 651-658; as many kv heads as heads).
TensorIndex rotate(GraphBuilder& b, TensorIndex t, std::int64_t elements, Rotated what) {
  if (b.workload().model.position != PositionKind::rope) return t;
  const double once = 2 * bytes_of_elements(b, elements);
  if (!b.eager() && !b.workload().framework.attention.eager_rotary)
    return b.pointwise("rotary", {t}, {}, elements, once, once, 1);
  if (b.own_code().flash_rotary &&
      b.workload().framework.attention.kernel != AttentionKernel::eager)
    return rotated_by_flash(b, t, elements);
  const bool halves = b.workload().framework.attention.rotary_code == RotaryCode::halves;
  const TensorIndex rotated =
      halves ? rotated_by_halves(b, t, elements, what) : rotated_by_pairs(b, t, elements);
  if (!b.eager()) issue_as_plain(b.last());
  keep_angles(b, b.last());
  return rotated;
}

}  // namespace shardwise
