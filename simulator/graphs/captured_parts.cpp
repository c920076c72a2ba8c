#include "simulator/graphs/captured_parts.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace shardwise {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool reads(const Operator& op, TensorIndex t) {
  return std::find(op.inputs.begin(), op.inputs.end(), t) != op.inputs.end();
}

bool writes(const Operator& op, TensorIndex t) {
  return std::find(op.outputs.begin(), op.outputs.end(), t) != op.outputs.end();
}

// The permutation of tokens; copies of whole rows come behind the exchange.
bool by_index(const MemoryWork& work) { return work.access == MemoryAccess::gather; }

}  // namespace

CapturedParts::CapturedParts(const LayerGraph& graph, const Workload& w, const ParallelPlan& plan)
    : scopes_(w.graph_scopes), permutes_early_(!w.framework.experts.dispatches_once) {
  if (!scopes_.any()) return;
  const std::int64_t queries = w.sequence / plan.context;
  mask_ = Bytes(std::int64_t{plan.microbatch} * queries * w.sequence);
  find_parts(graph);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t end = i + 1 < blocks_.size() ? blocks_[i + 1] : parts_.size();
    std::size_t first = blocks_[i];
    while (first < end && !holds_any(first)) ++first;
    if (first == end) continue;
    Replay& replay = replays_.emplace_back();
    replay.first = first;
    find_copies(graph, first, end, replay);
  }
}

// By the norms that branches begin with. Behind the sum of the experts' results comes the shared
// expert, and then what adds up.
void CapturedParts::find_parts(const LayerGraph& graph) {
  const std::size_t n = graph.operators.size();
  const auto routes = [&](std::size_t from) {
    for (std::size_t i = from + 1; i < n; ++i) {
      const std::string_view name = graph.operators[i].name;
      if (name == "router") return true;
      if (is_one_of(name, {"attention_norm", "mamba_input_norm", "mlp_norm", "final_norm"})) break;
    }
    return false;
  };
  Part part = Part::none;
  bool summed = false;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view name = graph.operators[i].name;
    const bool alone = part != Part::attention;
    if (is_one_of(name, {"final_norm", "prediction_embedding"})) part = Part::none;
    if (name == "attention_norm") part = Part::attention;
    if (name == "mamba_input_norm") part = Part::mamba;
    if (name == "mlp_norm") part = routes(i) ? Part::router : Part::mlp;
    if (is_one_of(name, {"attention_norm", "mamba_input_norm"}) || (name == "mlp_norm" && alone))
      blocks_.push_back(i);
    if (name == "mlp_norm") summed = false;
    if (name == "weighted_sum") summed = true;
    const bool adds = is_one_of(name, {"latent_up", "expert_output_norm", "shared_output_norm",
                                       "mlp_output_norm", "dropout", "residual_add"});
    if (name == "latent_down") part = Part::preprocess;
    if (name == "dispatch") {
      parts_.push_back(Part::dispatch);
      part = Part::experts;
    } else {
      const bool shared = part == Part::experts && summed && name != "weighted_sum" && !adds;
      parts_.push_back(shared ? Part::router : part);
    }
  }
}

bool CapturedParts::holds(std::size_t op, const Kernel& kernel) const {
  if (!scopes_.any()) return false;
  const bool all = scopes_.has(GraphScope::moe),
             routes = all || scopes_.has(GraphScope::moe_router);
  const bool prepares = all || (routes && scopes_.has(GraphScope::moe_preprocess));
  switch (parts_[op]) {
    case Part::attention:
      return scopes_.has(GraphScope::attn);
    case Part::mamba:
      return scopes_.has(GraphScope::mamba);
    case Part::mlp:
      return scopes_.has(GraphScope::mlp);
    case Part::router:
      return routes;
    case Part::preprocess:
      return prepares;
    case Part::dispatch:
      if (const auto* work = std::get_if<MemoryWork>(&kernel); work != nullptr && !all)
        return work->routing ? routes
                             : prepares && (work->plain || (permutes_early_ && by_index(*work)));
      return all;
    case Part::experts:
      return all;
    default:
      return false;
  }
}

bool CapturedParts::holds_any(std::size_t op) const {
  return parts_[op] != Part::dispatch && holds(op, MemoryWork{});
}

// Whether a graph writes what the operator hands on.
bool CapturedParts::holds_result(std::size_t op) const { return holds(op, MemoryWork{}); }

// Tensors that no operator of the graph writes are read from elsewhere, and what others read of
// those that it writes has a gradient that comes from there.
void CapturedParts::find_copies(const LayerGraph& graph, std::size_t begin, std::size_t end,
                                Replay& replay) {
  const auto within = [&](std::size_t i) { return i >= begin && i < end && holds_result(i); };
  const auto each = [&](const auto& is_so) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
      if (is_so(graph.operators[i], within(i))) return true;
    return false;
  };
  const auto copy = [](Copies& copies, std::int64_t bytes) {
    copies.moved += Bytes(2 * bytes);
    ++copies.launches;
  };
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto index = static_cast<TensorIndex>(t);
    const auto read = [&](bool here) {
      return each([&](const Operator& o, bool in) { return in == here && reads(o, index); });
    };
    const bool written = each([&](const Operator& o, bool in) { return in && writes(o, index); });
    const Tensor& tensor = graph.tensors[t];
    if (!written && tensor.gradient_bytes > 0 && read(true)) copy(replay.forward, tensor.bytes);
    if (written && tensor.gradient_bytes > 0 && (index == graph.output || read(false)))
      copy(replay.backward, tensor.gradient_bytes);
  }
  if (parts_[begin] != Part::attention) return;
  replay.forward.moved += Bytes(3 * mask_.value);
  replay.forward.launches += 2;
}

const CapturedParts::Replay* CapturedParts::begins(std::size_t op) const {
  for (const Replay& r : replays_)
    if (r.first == op) return &r;
  return nullptr;
}

}  // namespace shardwise
