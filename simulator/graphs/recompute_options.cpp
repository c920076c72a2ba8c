#include "simulator/graphs/recompute_options.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "catalog/require.hpp"
#include "simulator/graphs/unbeaten.hpp"

namespace shardwise {
namespace {

// Choices for the operators from some point to the last.
struct Partial {
  std::vector<bool> again;
  Bytes kept;
  Picoseconds time;
};

bool cheaper(const Partial& a, const Partial& b) {
  return std::tie(a.time, a.kept, a.again) < std::tie(b.time, b.kept, b.again);
}

Bytes rounded(std::int64_t bytes) {
  constexpr std::int64_t unit = 512;  // as the caching allocator rounds
  return Bytes((bytes + unit - 1) / unit * unit);
}

using Needs = std::vector<bool>;  // per tensor

class OptionSearch {
 public:
  OptionSearch(const LayerGraph& graph, const std::vector<Picoseconds>& forward,
               const std::vector<bool>& always)
      : graph_(graph), forward_(forward), always_(always) {}

  std::vector<RecomputeOption> run() {
    Needs saved(graph_.tensors.size(), false);
    for (const Operator& op : graph_.operators)
      for (const TensorIndex t : op.saves) saved[at(t)] = true;
    states_[saved].push_back({std::vector<bool>(graph_.operators.size(), false), {}, {}});
    for (std::size_t i = graph_.operators.size(); i-- > 0;) step(i);
    std::vector<Partial> done;
    for (auto& [needs, partials] : states_) {
      const Bytes rest = bytes(needs);  // made before the block, its input above all
      for (Partial& p : partials) done.push_back({std::move(p.again), p.kept + rest, p.time});
    }
    keep_unbeaten(done, cheaper);
    std::vector<RecomputeOption> options;
    for (Partial& p : done) options.push_back({std::move(p.again), p.kept, p.time});
    return options;
  }

 private:
  static std::size_t at(TensorIndex t) { return static_cast<std::size_t>(t); }

  Bytes bytes(const Needs& needs) const {
    Bytes sum;
    for (std::size_t t = 0; t < needs.size(); ++t)
      if (needs[t]) sum += rounded(graph_.tensors[t].bytes);
    return sum;
  }

  // Decides on operator i in every state.
  void step(std::size_t i) {
    const Operator& op = graph_.operators[i];
    std::map<Needs, std::vector<Partial>> next;
    for (auto& [needs, partials] : states_) {
      Needs earlier = needs;
      Bytes results;
      for (const TensorIndex t : op.outputs) {
        if (!earlier[at(t)]) continue;
        results += rounded(graph_.tensors[at(t)].bytes);
        earlier[at(t)] = false;
      }
      const bool needed = earlier != needs;
      if (!needed || !always_[i])
        for (const Partial& p : partials)
          next[earlier].push_back({p.again, p.kept + results, p.time});
      if (!needed) continue;
      for (const TensorIndex t : op.inputs) earlier[at(t)] = true;
      for (Partial& p : partials) {
        if (!always_[i]) {
          p.again[i] = true;
          p.time += forward_[i];
        }
        next[earlier].push_back(std::move(p));
      }
    }
    for (auto& [needs, partials] : next) keep_unbeaten(partials, cheaper);
    states_ = std::move(next);
  }

  const LayerGraph& graph_;
  const std::vector<Picoseconds>& forward_;
  const std::vector<bool>& always_;
  std::map<Needs, std::vector<Partial>> states_;
};

}  // namespace

std::vector<RecomputeOption> recompute_options(const LayerGraph& graph,
                                               const std::vector<Picoseconds>& forward,
                                               const std::vector<bool>& always) {
  require(forward.size() == graph.operators.size() && always.size() == graph.operators.size(),
          "a time and a flag for every operator");
  return OptionSearch(graph, forward, always).run();
}

}  // namespace shardwise
