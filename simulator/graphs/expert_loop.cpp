// Operators are those that calibrate/count_looped_experts.py counts of transformers 4.48.1 (models/
// mixtral/modeling_mixtral.py, MixtralSparseMoeBlock): of each expert forward nonzero, which the
// CPU reads, index, three products, silu and mul, index of its weights, mul and index_add_;
// backward six products and 14 more. Of the layer 10 forward that choose, 11 back.
#include "simulator/graphs/expert_loop.hpp"

#include <vector>

namespace shardwise {
namespace {

MemoryWork plain(double bytes, int launches, MemoryAccess access) {
  return {ceil_bytes(bytes), launches, access, true};
}

int experts(const GraphBuilder& b) { return b.workload().model.moe->experts; }

}  // namespace

bool in_turn(const GraphBuilder& b) {
  const Workload& w = b.workload();
  return w.framework.experts.loops && b.plan().expert == 1 && !w.pads_experts &&
         !b.own_code().feeds_all_experts;
}

void call_in_turn(GraphBuilder& b, Operator& op, int matrices, std::int64_t elements) {
  b.count_expert_modules(experts(b) * matrices);
  b.count_fetches(elements / matrices, experts(b) * matrices);
  op.weight_gradients = experts(b) * matrices;
  for (std::vector<Kernel>* pass : {&op.forward, &op.backward, &op.backward_weight})
    for (Kernel& k : *pass)
      if (auto* product = std::get_if<GemmWork>(&k)) product->operators = matrices;
}

// Backward puts the gradient of each expert's rows in a new tensor of all tokens and adds it to
// that of the experts before (new_zeros, index_put, add: 2 + 6 bytes of an element of 16 bits, and
// 6 of a row), behind the sum of what its first two products leave (add, 6 of a row).
void dispatch_in_turn(GraphBuilder& b, std::int64_t rows, std::int64_t routed) {
  const int n = experts(b);
  Operator& op = b.last();
  const auto row = static_cast<double>(b.bytes_of(op.outputs.front()));  // of all that are routed
  const double all = row * static_cast<double>(rows) / static_cast<double>(routed);
  const double scores = 4.0 * static_cast<double>(rows * n);
  op.forward = {plain(2 * scores * 10, 10, MemoryAccess::streaming), ReadBack{n},
                plain(2 * row, 2 * n, MemoryAccess::gather)};
  op.backward = {plain(6 * row + 4 * n * all, 4 * n, MemoryAccess::streaming),
                 plain(2 * scores * 11, 11, MemoryAccess::streaming)};
}

// The index of its weights; backward index_select of its rows, and of its weights sum, new_zeros,
// index_put, add and a mul.
void combine_in_turn(GraphBuilder& b) {
  Operator& op = b.last();
  auto& there = std::get<MemoryWork>(op.forward.front());
  auto& back = std::get<MemoryWork>(op.backward.front());
  there.plain = back.plain = true;
  there.launches = experts(b);
  back.launches = 6 * experts(b);
}

void end_turns(GraphBuilder& b) { b.last().forward.push_back(ReadBack{0}); }

}  // namespace shardwise
