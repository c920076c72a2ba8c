// What autograd adds up: where several operators read a tensor, each makes a gradient of it.
#include <algorithm>
#include <vector>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

namespace {

// Of what is one projection in fused modules and functions of adapters, all but its first part.
bool joins_projection(const Operator& op) {
  return op.name == "k" || op.name == "v" || op.name == "gate";
}

// Whether a gradient comes to what it makes, so that it has one to give.
bool is_graded(const LayerGraph& graph, const Operator& op) {
  return op.outputs.empty() ||
         std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorIndex t) {
           return graph.tensors[static_cast<std::size_t>(t)].gradient_bytes > 0;
         });
}

}  // namespace

bool GraphBuilder::is_stream_or_normed(TensorIndex t) const {
  const auto made =
      std::find_if(graph_.operators.begin(), graph_.operators.end(), [t](const Operator& op) {
        return std::find(op.outputs.begin(), op.outputs.end(), t) != op.outputs.end();
      });
  return made == graph_.operators.end() || made->name == "residual_add" || comes_from_norm(t);
}

// Backward runs the operators in reverse; from the second gradient of a tensor on, each is added to
// what is there by a kernel of its own that reads both and writes one (PyTorch
// torch/csrc/autograd/input_buffer.cpp, accumulate; counted by calibrate/count_layer_operators.py:
// the residual stream twice, what q, k and v read twice, what gate and up read once; what cuts up
// the result of one projection of q, k and v puts its three gradients together, as many bytes). A
// compiler makes the sum where the norm before reads it: one read for each. Modules that are fused
// project at once, and so do functions of adapters: theirs are the sums of the stream, which two
// branches read, and of what several experts' parts read. The engine launches these itself, without
// an operator around them. Kernels that are put into transformers' classes leave these their
// linears.
void GraphBuilder::sum_gradients() {
  const Framework& f = workload_.framework;
  const bool at_once =
      (f.layers.kernels == KernelStyle::fused && !f.layers.runs_transformers) || fuses_adapters();
  if (at_once && f.layers.norms_add_residual) return;
  const bool compiled = f.layers.kernels == KernelStyle::compiled;
  std::vector<bool> arrived(graph_.tensors.size(), false);
  for (std::size_t i = graph_.operators.size(); i-- > 0;) {
    Operator& op = graph_.operators[i];
    if ((at_once && joins_projection(op)) || !is_graded(graph_, op)) continue;
    for (const TensorIndex t : op.inputs) {
      const Tensor& tensor = graph_.tensors[static_cast<std::size_t>(t)];
      if (tensor.gradient_bytes == 0 || (at_once && !is_stream_or_normed(t))) continue;
      const double each = as_double(tensor.gradient_bytes);
      if (arrived[static_cast<std::size_t>(t)]) {
        MemoryWork sum = compiled ? traffic(each, 0) : traffic(3 * each, 1);
        sum.looped = at_once;
        op.backward.push_back(sum);
      }
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
