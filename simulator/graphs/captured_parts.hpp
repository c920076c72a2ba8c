// The parts of a layer that a CUDA graph of its own holds, where the framework captures some
// (Megatron-Core's cuda_graph_impl transformer_engine).
//
//   attn            everything up to the norm before the MLP: norm, attention, residual
//   mlp             a dense MLP with its norm and residual
//   moe             the same where there are experts
//   moe_router      the norm, the router with what chooses experts, and the shared expert
//   moe_preprocess  what counts tokens for the dispatcher; the all-to-all's permutation too, which
//                   others do on the way. Only behind the router
//   mamba           a layer of that mixer
// (Megatron-LM @d98e8a64dd megatron/core/transformer/transformer_layer.py, _te_cuda_graph_capture;
// moe/moe_layer.py, route, preprocess, shared_experts_compute; moe/token_dispatcher.py,
// dispatch_preprocess; ssm/mamba_layer.py.) The parts of a layer are one graph, forward and
// backward; what is re-run in a part is in its backward graph. Shared experts that run beside the
// dispatcher are outside in truth (moe_shared_expert_overlap, which neither DeepEP, HybridEP nor
// the overlap of microbatches allow). A read-back of token counts comes behind the graph.
//
// A graph reads and writes tensors of its own: what it reads is copied there, and so are the
// gradients of what it hands on (Transformer Engine pytorch/graph.py, Graphed). With attention it
// also takes a mask that is made for every call (_get_te_cuda_graph_replay_args).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/graphs/operators.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

class CapturedParts {
 public:
  CapturedParts(const LayerGraph& graph, const Workload& workload, const ParallelPlan& plan);

  // Whether a graph holds this kernel of an operator.
  bool holds(std::size_t op, const Kernel& kernel) const;

  // What is copied beside one graph: bytes read and written, and kernels.
  struct Copies {
    Bytes moved;
    int launches = 0;
  };
  struct Replay {
    std::size_t first = 0;  // operator of which it holds something
    Copies forward, backward;
  };
  // The graph that begins with this operator; nullptr where none does.
  const Replay* begins(std::size_t op) const;

 private:
  enum class Part : std::uint8_t {
    none,
    attention,
    mlp,
    router,
    preprocess,
    dispatch,
    experts,
    mamba
  };
  void find_parts(const LayerGraph& graph);
  void find_copies(const LayerGraph& graph, std::size_t begin, std::size_t end, Replay& replay);
  bool holds_any(std::size_t op) const;
  bool holds_result(std::size_t op) const;

  GraphScopes scopes_;
  bool permutes_early_ = false;
  Bytes mask_;
  std::vector<Part> parts_;
  std::vector<std::size_t> blocks_;  // operators that blocks begin with
  std::vector<Replay> replays_;
};

}  // namespace shardwise
