#include "planner/choice/stage_balance.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace shardwise {
namespace {

std::vector<int> ends_as_layers(int layers, int predictions, int chunks) {
  if (predictions > 0) {
    const int most = (layers + predictions + 1 + chunks - 1) / chunks;
    const int left = layers - most * (chunks - 1);
    if (left < -most) return {};
    std::vector<int> out(static_cast<std::size_t>(chunks), most);
    out.front() += std::min(left, 0);
    out.back() = std::max(left, 0);
    return out;
  }
  if (layers % chunks == 0 || (layers + 2) % chunks != 0) return {};
  std::vector<int> out(static_cast<std::size_t>(chunks), (layers + 2) / chunks);
  --out.front();
  --out.back();
  return out;
}

// Parameters of attention, MLP and two norms, as nanotron's get_block_compute_costs counts them
// @90860f52. Earlier versions leave the norms out; the runs whose stages would then end in a tie
// (16 layers and a head of four) have closed them a layer sooner, by what they hold.
std::int64_t layer_cost(const Transformer& m) {
  const std::int64_t heads = std::int64_t{2} * m.heads + std::int64_t{2} * m.kv_heads;
  return heads * m.head_dim * m.hidden + std::int64_t{3} * m.ffn * m.hidden +
         std::int64_t{2} * m.hidden;
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

std::vector<int> modules_in_turn(const Transformer& m, int chunks) {
  const int modules = m.layers + (m.norms.final ? 3 : 2), least = modules / chunks;
  std::vector<int> out(static_cast<std::size_t>(chunks), least);
  for (int i = 0; i < modules % chunks; ++i) ++out[static_cast<std::size_t>(i)];
  --out.front();
  for (int left = modules - m.layers - 1; left > 0; --left) {
    const auto holder = std::find_if(out.rbegin(), out.rend(), [](int n) { return n > 0; });
    --*holder;
  }
  return out;
}

// Oneflow-Inc/libai @9fc504c libai/utils/distributed.py:114-139 (_set_device_list, stage_offset).
std::vector<int> last_relieved(int layers, int chunks) {
  if (chunks < 4 || layers < 8 || layers % chunks != 0) return {};
  const int as_if = layers + std::min(chunks - 1, layers / chunks);
  const int each = as_if / chunks, more = as_if % chunks;
  std::vector<int> out(static_cast<std::size_t>(chunks), each);
  for (int i = chunks - more; i < chunks; ++i) ++out[static_cast<std::size_t>(i)];
  out.back() -= as_if - layers;
  return out;
}

}  // namespace

std::vector<int> usual_layers_per_stage(const Workload& workload, int chunks) {
  if (chunks == 1) return {};
  switch (workload.framework.parallel.stage_balance) {
    case StageBalance::even:
      break;
    case StageBalance::ends_as_layers:
      return ends_as_layers(workload.model.layers, workload.prediction_depths, chunks);
    case StageBalance::head_by_parameters:
      return head_by_parameters(workload.model, chunks);
    case StageBalance::modules_in_turn:
      return modules_in_turn(workload.model, chunks);
    case StageBalance::last_relieved:
      return last_relieved(workload.model.layers, chunks);
  }
  return {};
}

namespace {

FlopsPerSecond rate_of(const Gpu& gpu, DType compute) {
  for (const DType format : {compute, DType::bf16, DType::fp16, DType::fp32})
    if (const auto rate = gpu.rate(format)) return *rate;
  return FlopsPerSecond(1);
}

}  // namespace

std::vector<int> layers_by_speed(const Workload& workload, const ParallelPlan& plan,
                                 const Cluster& cluster) {
  const int stages = plan.pipeline, per_stage = plan.gpus() / plan.pipeline;
  if (stages == 1 || plan.chunks > 1 || workload.model.layers < stages) return {};
  std::vector<FlopsPerSecond> rates;
  for (int s = 0; s < stages; ++s) {
    FlopsPerSecond slowest = rate_of(cluster.group_of(s * per_stage).gpu, workload.compute);
    for (int rank = s * per_stage; rank < (s + 1) * per_stage; ++rank)
      slowest = std::min(slowest, rate_of(cluster.group_of(rank).gpu, workload.compute));
    rates.push_back(slowest);
  }
  if (std::adjacent_find(rates.begin(), rates.end(), std::not_equal_to<>()) == rates.end())
    return {};
  std::vector<int> layers(rates.size(), 1);
  for (int n = stages; n < workload.model.layers; ++n) {
    std::size_t first = 0;
    for (std::size_t s = 1; s < layers.size(); ++s)
      if ((layers[s] + 1) * (rates[first] / rates[s]) < layers[first] + 1) first = s;
    ++layers[first];
  }
  return layers;
}

}  // namespace shardwise
