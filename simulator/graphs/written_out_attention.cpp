#include "simulator/graphs/written_out_attention.hpp"

#include <utility>

namespace shardwise {
namespace {

constexpr std::int64_t fp32_bytes = 4;
constexpr std::int64_t passing_forward_bytes = 9;    // bytes of a score that go again, forward
constexpr std::int64_t passing_backward_bytes = 12;  // and backward
constexpr int matrices_going_back = 3;

}  // namespace

bool writes_attention_out(const GraphBuilder& b, std::int64_t heads, std::int64_t kv_heads) {
  const Framework& f = b.workload().framework;
  if (f.attention.by_operators) return true;
  return f.attention.writes_grouped_out && kv_heads < heads &&
         f.attention.kernel == AttentionKernel::flash && !f.attention.masks_padding;
}

TensorIndex widened(GraphBuilder& b, std::string_view name, TensorIndex t, std::int64_t elements) {
  const std::int64_t bytes = fp32_bytes * elements;
  Operator op;
  op.name = name;
  op.inputs = {t};
  op.outputs = {b.tensor_bytes(name, bytes, MemoryCategory::activations, bytes)};
  const MemoryWork moved{Bytes(bytes + b.element() * elements), 2, MemoryAccess::streaming, true};
  op.forward = {moved};
  op.backward = {moved};
  const TensorIndex out = op.outputs.front();
  b.add(std::move(op));
  return out;
}

void keep_wide_scores(GraphBuilder& b, Operator& op, const AttentionWork& work) {
  const std::int64_t scores = work.batch * work.heads * work.queries * work.keys;
  op.outputs.push_back(
      b.tensor_bytes("softmax", fp32_bytes * scores, MemoryCategory::activations, 0));
  op.saves.push_back(op.outputs.back());
  op.forward_temporary = Bytes(passing_forward_bytes * scores);
  op.backward_temporary = Bytes(passing_backward_bytes * scores);
  op.backward_temporaries = matrices_going_back;
}

}  // namespace shardwise
