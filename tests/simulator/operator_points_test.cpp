// Whole operators of PyTorch against what they were measured to take one at a time
// (operator_points.json): norms, rotation and losses, whose kernels the graphs count and the memory
// model times. No constant but the cycles of an element rests on them.
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "catalog/json_reader.hpp"
#include "simulator/costs/kernel_model.hpp"
#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kernel_points.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

struct OperatorSet {
  std::string name, gpu;
  DType dtype = DType::bf16;
  std::vector<double> points;  // rows, width, ms forward, ms backward, again and again
};

std::vector<OperatorSet> operator_sets() {
  auto document = parse_json_file(source_dir() + "/tests/simulator/operator_points.json",
                                  "operator_points.json");
  REQUIRE(document);
  Problems problems;
  JsonReader root(*document, problems);
  std::vector<OperatorSet> sets;
  for (JsonReader& r : root.objects("sets")) {
    OperatorSet s{r.text("operator"), r.text("gpu"), *dtype_named(r.text("dtype")), {}};
    s.points = r.numbers("rows_width_forward_backward");
    sets.push_back(std::move(s));
  }
  REQUIRE(problems.empty());
  return sets;
}

// `rows` tokens through a norm of that width, a loss over as many words, or a layer whose 32
// queries and 8 keys of 256 each have that width together, in PyTorch's operators.
LayerGraph graph_of(const OperatorSet& s, int rows, int width) {
  const bool loss = s.name.find("cross_entropy") != std::string::npos, rotary = s.name == "rotary";
  const int hidden = loss ? 64 : rotary ? 8192 : width;
  Workload w = pretraining(s.name == "layer_norm" ? gpt(1, hidden, 32)
                                                  : llama(1, hidden, loss ? 1 : 32, loss ? 1 : 8,
                                                          hidden, loss ? width : 32000),
                           rows);
  w.compute = s.dtype;
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.loss.upcasts = s.dtype == DType::bf16;
  w.framework.loss.kind = s.name == "cross_entropy" ? LossKind::dense : LossKind::vocab_parallel;
  if (loss) return head_graph(w, plan_of(1), false);
  if (rotary) return block_graph(w, plan_of(1), {});
  const ParallelPlan plan = plan_of(1);
  GraphBuilder b(w, plan, true);
  const TensorIndex x = b.input(std::int64_t{rows} * width);
  return b.finish(b.norm(s.name, x, rows, width));
}

bool belongs(const Operator& op, const std::string& name) {
  if (name == "cross_entropy") return op.name == "log_softmax" || op.name == "nll_loss";
  return op.name == name;
}

// As timed alone: nothing is in the cache.
double milliseconds(const std::vector<Kernel>& kernels, const KernelModel& model) {
  double sum = 0;
  for (const Kernel& k : kernels)
    if (const auto* work = std::get_if<MemoryWork>(&k))
      sum += 1e3 * model.memory_bound(*work, work->moved).value;
  return sum;
}

// The loss was timed again and again on one input whose gradient nothing clears: each is added to
// the one before, 12 bytes an element in fp32 (linkedin/Liger-Kernel @b5672a153b
// benchmark/scripts/benchmark_cross_entropy.py, without grad_to_none).
double milliseconds_of_sum(const OperatorSet& s, double elements, const KernelModel& model) {
  if (s.name != "cross_entropy") return 0;
  return milliseconds({MemoryWork{Bytes(static_cast<std::int64_t>(12 * elements))}}, model);
}

struct OperatorBound {
  std::string set;
  double forward, backward;  // largest |forecast / measured - 1|
};

}  // namespace

TEST_CASE("operators of PyTorch take what they were measured to take") {
  // Bounds are what the model reaches, rounded up.
  const OperatorBound bounds[] = {{"rms_norm a100-sxm4-80gb", 0.10, 0.20},
                                  {"layer_norm a100-sxm4-80gb", 0.10, 0.12},
                                  {"layer_norm h100-sxm5-80gb", 0.25, 0.21},
                                  {"rotary a100-sxm4-80gb", 0.08, 0.12},
                                  {"cross_entropy a100-sxm4-80gb", 0.09, 0.10},
                                  {"vocab_parallel_cross_entropy h100-sxm5-80gb", 0.20, 0.11}};
  for (const OperatorSet& s : operator_sets()) {
    const auto* bound =
        std::find_if(std::begin(bounds), std::end(bounds),
                     [&](const OperatorBound& b) { return b.set == s.name + " " + s.gpu; });
    REQUIRE(bound != std::end(bounds));
    const KernelModel model(catalogued_gpu(s.gpu), published_profile());
    for (std::size_t i = 0; i + 3 < s.points.size(); i += 4) {
      const LayerGraph graph =
          graph_of(s, static_cast<int>(s.points[i]), static_cast<int>(s.points[i + 1]));
      double forward = 0;
      double backward = milliseconds_of_sum(s, s.points[i] * s.points[i + 1], model);
      for (const Operator& op : graph.operators)
        if (belongs(op, s.name)) {
          forward += milliseconds(op.forward, model);
          backward += milliseconds(op.backward, model);
        }
      INFO(bound->set << " " << s.points[i] << " x " << s.points[i + 1] << ": forward " << forward
                      << " of " << s.points[i + 2] << ", backward " << backward << " of "
                      << s.points[i + 3]);
      CHECK(std::abs(forward / s.points[i + 2] - 1) <= bound->forward);
      CHECK(std::abs(backward / s.points[i + 3] - 1) <= bound->backward);
    }
  }
}
