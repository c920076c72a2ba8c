#include "simulator/memory/overlapped_nodes.hpp"

#include <algorithm>
#include <cmath>

namespace shardwise {

std::int64_t held_by_nodes(const Workload& w, const ParallelPlan& plan, const LayerDefinition& d) {
  if (d.role != LayerRole::block) return 0;
  const LayerGraph& g = d.graph;
  const auto bytes = [&](TensorIndex t) { return g.tensors[static_cast<std::size_t>(t)].bytes; };
  const std::int64_t tokens = bytes(g.input);
  const auto dispatch = std::find_if(g.operators.begin(), g.operators.end(),
                                     [](const Operator& op) { return op.name == "dispatch"; });
  if (dispatch == g.operators.end())
    return 4 * tokens;  // attention, and an MLP that takes its output
  const std::int64_t routed = bytes(dispatch->outputs.front());
  if (!w.framework.experts.dispatches_once) return 4 * tokens + 3 * routed;
  // Of k experts drawn evenly over g ranks a token visits g (1 - (1 - 1/g)^k) on the average.
  const double ranks = plan.expert, chosen = w.model.moe->top_k;
  const double visited = ranks * (1.0 - std::pow(1.0 - 1.0 / ranks, chosen));
  const auto sent = static_cast<std::int64_t>(static_cast<double>(routed) * visited / chosen);
  return 6 * tokens + 2 * sent;
}

}  // namespace shardwise
