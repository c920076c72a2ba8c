// What autograd adds up: where several operators read a tensor, each makes a gradient of it.
#include <vector>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Backward runs the operators in reverse; from the second gradient of a tensor on, each is added to
// what is there by a kernel of its own that reads both and writes one (PyTorch
// torch/csrc/autograd/input_buffer.cpp, accumulate; counted by calibrate/count_layer_operators.py:
// the residual stream twice, what q, k and v read twice, what gate and up read once; what cuts up
// the result of one projection of q, k and v puts its three gradients together, as many bytes). A
// compiler makes the sum where the norm before reads it: one read for each. Modules that are fused
// project at once, and so do functions of adapters; they are left as they are, but kernels that are
// put into transformers' classes leave these their linears.
void GraphBuilder::sum_gradients() {
  const Framework& f = workload_.framework;
  if ((f.kernels == KernelStyle::fused && !f.runs_transformers) || fuses_adapters()) return;
  const bool compiled = f.kernels == KernelStyle::compiled;
  std::vector<bool> arrived(graph_.tensors.size(), false);
  for (std::size_t i = graph_.operators.size(); i-- > 0;) {
    Operator& op = graph_.operators[i];
    for (const TensorIndex t : op.inputs) {
      const Tensor& tensor = graph_.tensors[static_cast<std::size_t>(t)];
      if (tensor.gradient_bytes == 0) continue;
      const double each = as_double(tensor.gradient_bytes);
      if (arrived[static_cast<std::size_t>(t)])
        op.backward.push_back(compiled ? traffic(each, 0) : traffic(3 * each, 1));
      arrived[static_cast<std::size_t>(t)] = true;
    }
  }
}

void GraphBuilder::join_launches(std::size_t first) {
  for (std::size_t i = first; i < graph_.operators.size(); ++i) {
    Operator& op = graph_.operators[i];
    for (std::vector<Kernel>* pass : {&op.forward, &op.backward, &op.backward_weight})
      for (Kernel& k : *pass) {
        if (auto* gemm = std::get_if<GemmWork>(&k)) gemm->joined = true;
        if (auto* memory = std::get_if<MemoryWork>(&k)) memory->launches = 0;
      }
  }
}

}  // namespace shardwise
