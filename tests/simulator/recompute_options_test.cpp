#include "simulator/graphs/recompute_options.hpp"

#include <algorithm>
#include <random>

#include "simulator/graphs/layer_script.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/time_and_bytes.hpp"

using namespace shardwise;

namespace {

// A chain with branches: each operator reads one or two earlier tensors and saves some of what it
// reads and makes.
LayerGraph random_block(std::mt19937& random, int operators) {
  LayerGraph graph;
  const auto upto = [&](std::size_t n) { return static_cast<TensorIndex>(random() % n); };
  graph.tensors.push_back({"input", 512 * (1 + static_cast<std::int64_t>(random() % 20)), {}, 1});
  for (int i = 0; i < operators; ++i) {
    Operator op;
    op.inputs = {upto(graph.tensors.size())};
    if (random() % 2 == 0) op.inputs.push_back(upto(graph.tensors.size()));
    const int outputs = random() % 4 == 0 ? 2 : 1;
    for (int o = 0; o < outputs; ++o) {
      op.outputs.push_back(static_cast<TensorIndex>(graph.tensors.size()));
      graph.tensors.push_back(
          {"made", 512 * (1 + static_cast<std::int64_t>(random() % 20)), {}, 1});
    }
    if (random() % 2 == 0) op.saves.push_back(op.inputs.front());
    if (random() % 3 == 0) op.saves.push_back(op.outputs.front());
    graph.operators.push_back(op);
  }
  graph.output = static_cast<TensorIndex>(graph.tensors.size()) - 1;
  return graph;
}

// Time and bytes of a choice as the allocation script sees them, useless re-runs dropped.
TimeAndBytes scripted(const LayerGraph& graph, const std::vector<Picoseconds>& forward,
                      const std::vector<bool>& chosen, const std::vector<bool>& always) {
  ScriptOptions options;
  options.runs_again = chosen;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    options.runs_again[i] = options.runs_again[i] || always[i];
  const LayerScript script = layer_script(graph, options);
  TimeAndBytes p{0, script.saved_bytes};
  for (std::size_t i = 0; i < forward.size(); ++i)
    if (script.runs_again[i] && !always[i]) p.time += forward[i].value;
  return p;
}

}  // namespace

TEST_CASE("recompute options are the unbeaten of all 2^n sets of operators", "[recompute]") {
  std::mt19937 random(17);
  for (int round = 0; round < 150; ++round) {
    const int n = 2 + static_cast<int>(random() % 8);
    const LayerGraph graph = random_block(random, n);
    std::vector<Picoseconds> forward;
    std::vector<bool> always;
    for (int i = 0; i < n; ++i) {
      forward.emplace_back(1 + static_cast<std::int64_t>(random() % 30));
      always.push_back(random() % 6 == 0);
    }
    std::vector<TimeAndBytes> all;
    for (unsigned set = 0; set < (1U << n); ++set) {
      std::vector<bool> chosen;
      for (int i = 0; i < n; ++i) chosen.push_back((set >> i & 1U) != 0);
      all.push_back(scripted(graph, forward, chosen, always));
    }
    std::vector<TimeAndBytes> found;
    for (const RecomputeOption& o : recompute_options(graph, forward, always)) {
      found.push_back({o.time.value, o.kept.value});
      CHECK(scripted(graph, forward, o.again, always) == found.back());
    }
    CHECK(found == unbeaten_of(all));
  }
}
