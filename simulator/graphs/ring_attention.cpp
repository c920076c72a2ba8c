#include "simulator/graphs/ring_attention.hpp"

#include <algorithm>

namespace shardwise {
namespace {

MemoryWork ring_traffic(double bytes, int launches, bool plain = false) {
  return {ceil_bytes(bytes), launches, MemoryAccess::streaming, plain};
}

// Transformer Engine. Forward, keys and values are copied into one message; each part's log-sum-exp
// and output are merged by a fused kernel each, which reads the part and the sum and writes the
// sum. Backward, the gradients of each part are added to theirs; of queries or of keys, every part
// but one has half, whichever rank has more of it sets the pace. Parts and messages have names
// until the last of them is merged; backward two messages of keys, values and their gradients
// (NVIDIA/TransformerEngine @d0067d0da
// transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py:139-196,
// 1671-1995, 2380-2385, 2645-2790).
void join_in_half(const GraphBuilder& b, const RingOperands& o, Operator& op) {
  const std::int64_t ranks = b.plan().context, e = b.element();
  const int others = static_cast<int>(ranks) - 1;
  const double once = as_double(e), out = as_double(o.output), q = as_double(o.queries),
               kv = as_double(o.keys_and_values);
  const double pack = 2 * once * kv;
  op.forward.push_back(
      ring_traffic(pack + 2 * once * out + others * 3 * once * out, 2 + 2 * others));
  const double added = std::max(q + kv / 2, q / 2 + kv);
  op.backward.push_back(
      ring_traffic(pack + 2 * once * (q + kv) + others * 3 * once * added, 4 + 3 * others));
  op.forward_temporary += Bytes(ranks * e * (o.keys_and_values + o.output));
  op.forward_temporaries = 2 * static_cast<int>(ranks);
  op.backward_temporary += Bytes(e * 4 * o.keys_and_values);
  op.backward_temporaries = 3;
}

// PyTorch's context_parallel. Forward, a part becomes fp32 (6 bytes), then out - sigmoid(...) *
// (out - part): 12, 8 and 12, and six operators on the log-sum-exp; keys and values are made
// contiguous and put together for each message. Backward, gradients are summed in fp32 (10) and
// those of keys and values put together (8), zeroed first and cast at the end (torch 2.8
// torch/distributed/tensor/experimental/_attention.py: _SDPAMerger, _templated_ring_attention and
// _templated_ring_attention_backward).
void join_in_fp32(const GraphBuilder& b, const RingOperands& o, Operator& op) {
  const std::int64_t ranks = b.plan().context, e = b.element();
  const int parts = static_cast<int>(ranks), others = parts - 1;
  const double once = as_double(e), out = as_double(o.output), q = as_double(o.queries),
               kv = as_double(o.keys_and_values);
  const double widen = once + 4;
  const double merged = parts * widen * out + others * 32 * out + widen * out;
  const double sent = 2 * once * kv;
  op.forward.push_back(
      ring_traffic(merged + (1 + others) * sent, 3 + 2 * parts + 10 * others, true));
  const double summed = parts * ((8 + once) * (q + kv) + 8 * kv) + (4 + widen) * (q + kv);
  op.backward.push_back(ring_traffic(summed + (1 + others) * sent, 8 + 4 * parts + others, true));
  // Forward the sum, a part, their weighted difference and the new sum; backward the sums, and
  // keys, values and their gradients as they are sent and as they come.
  const bool gathers = b.plan().context_kind == ContextKind::all_gather;
  const std::int64_t messages = (gathers ? ranks : 2) * e * o.keys_and_values;
  op.forward_temporary += Bytes(16 * o.output + messages);
  op.backward_temporary += Bytes(4 * o.queries + 12 * o.keys_and_values + messages);
  op.forward_temporaries = 5;
  op.backward_temporaries = 6;
}

}  // namespace

bool attends_in_parts(const GraphBuilder& b, const AttentionWork& whole) {
  const ParallelPlan& plan = b.plan();
  const ContextMerge merge = b.workload().framework.parallel.context_merge;
  if (plan.context == 1 || merge == ContextMerge::none) return false;
  if (whole.kernel == AttentionKernel::eager || whole.keys < b.workload().sequence) return false;
  return plan.context_kind == ContextKind::ring ||
         (plan.context_kind == ContextKind::all_gather && merge == ContextMerge::fp32_operators);
}

std::vector<AttentionWork> ring_parts(const GraphBuilder& b, const AttentionWork& whole) {
  const int ranks = b.plan().context;
  AttentionWork own = whole;
  own.keys = whole.queries;
  own.context = 1;
  if (!whole.causal) {
    own.pieces = ranks;
    return {own};
  }
  AttentionWork other = own;
  other.causal = false;
  // A rank with a stretch of the front and one of the back sees half of what each other one holds;
  // the last of those in order sees all of it, and the others wait for it.
  const bool in_order = b.workload().framework.parallel.context_in_order;
  other.keys = in_order ? whole.queries : std::max<std::int64_t>(1, whole.queries / 2);
  other.pieces = ranks - 1;
  return {own, other};
}

void join_ring(const GraphBuilder& b, const RingOperands& o, Operator& op) {
  if (b.workload().framework.parallel.context_merge == ContextMerge::fp32_operators)
    join_in_fp32(b, o, op);
  else
    join_in_half(b, o, op);
}

// Keys and values travel around the ring once per pass, and so do their gradients; an all-gather
// moves the same bytes. PyTorch's context_parallel passes gradients on in fp32. Ulysses exchanges
// heads for tokens before and after.
std::vector<Kernel> context_exchange(const GraphBuilder& b, const RingOperands& o, bool backward) {
  const ParallelPlan& plan = b.plan();
  if (plan.context == 1) return {};
  const std::int64_t e = b.element();
  if (plan.context_kind == ContextKind::ulysses) {
    const Bytes sent(e * (o.keys_and_values + o.queries + o.output));
    return {CommWork{Collective::all_to_all, sent, CommAxis::context, false}};
  }
  const bool ring = plan.context_kind == ContextKind::ring;
  const int messages = ring ? static_cast<int>(plan.context) - 1 : 1;
  const std::int64_t gathered = o.keys_and_values * plan.context;
  const CommWork forward{Collective::all_gather, Bytes(e * gathered), CommAxis::context, ring,
                         messages};
  if (!backward) return {forward};
  const bool wide = b.workload().framework.parallel.context_merge == ContextMerge::fp32_operators;
  return {forward, CommWork{Collective::reduce_scatter, Bytes((wide ? 4 : e) * gathered),
                            CommAxis::context, ring, messages}};
}

}  // namespace shardwise
