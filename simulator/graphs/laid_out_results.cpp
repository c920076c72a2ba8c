#include "simulator/graphs/laid_out_results.hpp"

#include <algorithm>

namespace shardwise {
namespace {

// What an operator makes on the way has a buffer as its result has.
void name_scratch(LayerGraph& graph, Operator& op) {
  if (op.forward_temporary > Bytes(0)) {
    graph.tensors.push_back({"scratch", op.forward_temporary.value, op.temporary_category});
    op.outputs.push_back(static_cast<TensorIndex>(graph.tensors.size()) - 1);
  }
  op.forward_temporary = op.backward_temporary = Bytes(0);
}

}  // namespace

void lay_out_results(LayerGraph& graph) {
  for (Operator& op : graph.operators) {
    name_scratch(graph, op);
    for (TensorIndex t : op.outputs) {
      Tensor& made = graph.tensors[static_cast<std::size_t>(t)];
      made.bytes *= 2;
      made.gradient_bytes = 0;
      const bool kept = std::find(op.saves.begin(), op.saves.end(), t) != op.saves.end();
      // The layer behind keeps this one's result, as its input.
      if (!kept && t != graph.output) op.saves.push_back(t);
    }
  }
}

}  // namespace shardwise
