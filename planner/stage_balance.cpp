#include "planner/stage_balance.hpp"

#include <algorithm>
#include <cstdint>

namespace shardwise {
namespace {

std::vector<int> ends_as_layers(int layers, int chunks) {
  if (layers % chunks == 0 || (layers + 2) % chunks != 0) return {};
  std::vector<int> out(static_cast<std::size_t>(chunks), (layers + 2) / chunks);
  --out.front();
  --out.back();
  return out;
}

// Matrices of attention and MLP, as nanotron's get_block_compute_costs counts them: K and V as
// wide as Q, whatever the number of their heads.
std::int64_t layer_cost(const Transformer& m) {
  return std::int64_t{4} * m.heads * m.head_dim * m.hidden + std::int64_t{3} * m.ffn * m.hidden;
}

std::vector<int> head_by_parameters(const Transformer& m, int chunks) {
  const std::int64_t layer = layer_cost(m);
  const std::int64_t all = layer * m.layers + std::int64_t{m.vocab} * m.hidden;
  std::vector<int> out(static_cast<std::size_t>(chunks), 0);
  int stage = 0;
  for (int i = 1; i <= m.layers; ++i) {
    ++out[static_cast<std::size_t>(stage)];
    const bool full = layer * i * chunks > all * (stage + 1);
    if (full && stage + 1 < chunks) ++stage;
  }
  return out;
}

}  // namespace

std::vector<int> usual_layers_per_stage(const Workload& workload, int chunks) {
  if (chunks == 1) return {};
  switch (workload.framework.stage_balance) {
    case StageBalance::even:
      break;
    case StageBalance::ends_as_layers:
      return ends_as_layers(workload.model.layers, chunks);
    case StageBalance::head_by_parameters:
      return head_by_parameters(workload.model, chunks);
  }
  return {};
}

}  // namespace shardwise
