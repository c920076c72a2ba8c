// Products that autocast leaves in the format of their weights.
#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

void GraphBuilder::widen(std::size_t first, std::size_t tensor) {
  for (std::size_t i = first; i < graph_.operators.size(); ++i) {
    Operator& op = graph_.operators[i];
    op.stored_gradient = true;
    for (std::vector<Kernel>* pass : {&op.forward, &op.backward, &op.backward_weight})
      for (Kernel& k : *pass) {
        if (auto* gemm = std::get_if<GemmWork>(&k)) gemm->dtype = DType::fp32;
        if (auto* memory = std::get_if<MemoryWork>(&k)) memory->moved = 2 * memory->moved;
      }
  }
  for (std::size_t t = tensor; t < graph_.tensors.size(); ++t) {
    graph_.tensors[t].bytes *= 2;
    graph_.tensors[t].gradient_bytes *= 2;
  }
}

}  // namespace shardwise
