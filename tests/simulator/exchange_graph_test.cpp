#include <algorithm>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

struct Exchanged {
  int gathers = 0, scatters = 0, sums = 0;
};

Exchanged exchanged(const LayerGraph& graph, bool forward) {
  Exchanged out;
  for (const Operator& op : graph.operators)
    for (const Kernel& k : forward ? op.forward : op.backward)
      if (const auto* c = std::get_if<CommWork>(&k); c && c->axis == CommAxis::tensor) {
        out.gathers += c->collective == Collective::all_gather;
        out.scatters += c->collective == Collective::reduce_scatter;
        out.sums += c->collective == Collective::all_reduce;
      }
  return out;
}

}  // namespace

// q, k, v, gate and up read two tensors. Exchanged for each linear they are five gathers forward
// and five sums of a gradient backward; o and down are one exchange each, either way.
TEST_CASE("linears that exchange for themselves", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.parallel.regathers_sequence = false;
  ParallelPlan p = plan_of(1, 2);
  CHECK(exchanged(block_graph(w, p, {}), false).sums == 2);
  w.framework.parallel.exchanges_per_linear = true;
  CHECK(exchanged(block_graph(w, p, {}), true).sums == 2);
  CHECK(exchanged(block_graph(w, p, {}), false).sums == 5);
  p.sequence_parallel = true;
  CHECK(exchanged(block_graph(w, p, {}), true).gathers == 5);
  CHECK(exchanged(block_graph(w, p, {}), true).scatters == 2);
  CHECK(exchanged(block_graph(w, p, {}), false).scatters == 5);
  w.framework.layers.kernels = KernelStyle::compiled;  // one gather is enough, the gradients differ
  CHECK(exchanged(block_graph(w, p, {}), true).gathers == 2);
  CHECK(exchanged(block_graph(w, p, {}), false).scatters == 5);
}

// Experts that two tensor ranks have cut gather what both were sent, 128 tokens x 2 of 512 values
// in 16 bits, and scatter the sums of what they made, whether or not tokens go to other ranks
// (Megatron-LM's MoEAlltoAllTokenDispatcher).
TEST_CASE("ranks that cut an expert gather each other's tokens", "[layer_graph]") {
  Workload w = pretraining(llama(1, 512, 8, 4, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 512, 0, false, 0, 1};
  ParallelPlan p = plan_of(2, 2);
  p.sequence_parallel = true;
  p.expert_tensor = 2;
  for (const int spread : {1, 2}) {
    p.expert = spread;
    int gathers = 0, scatters = 0;
    for (const Operator& op : block_graph(w, p, {.experts = true}).operators)
      for (const auto* pass : {&op.forward, &op.backward})
        for (const Kernel& k : *pass) {
          const auto* c = std::get_if<CommWork>(&k);
          if (c == nullptr || !c->of_experts) continue;
          CHECK(c->size == Bytes(128 * 2 * 512 * 2));
          gathers += c->collective == Collective::all_gather;
          scatters += c->collective == Collective::reduce_scatter;
        }
    CHECK(gathers == 2);
    CHECK(scatters == 2);
  }
}

// q, k and v by one linear, and gate and up by two, which each sum a gradient: three sums backward.
// With sequence parallelism the norm has gathered for both.
TEST_CASE("gate and up that sum the gradient of their input apart", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.parallel.regathers_sequence = false;
  w.framework.parallel.sums_gate_and_up_apart = true;
  ParallelPlan p = plan_of(1, 2);
  CHECK(exchanged(block_graph(w, p, {}), true).sums == 2);
  CHECK(exchanged(block_graph(w, p, {}), false).sums == 3);
  p.sequence_parallel = true;
  CHECK(exchanged(block_graph(w, p, {}), true).gathers == 2);
  CHECK(exchanged(block_graph(w, p, {}), false).scatters == 2);
}

// Megatron-LM's linears are four: q, k and v in one, o, gate and up in one, down. The first and the
// third read the whole sequence, keep a rank's part of it, and gather the rest once more for their
// weight's gradient: two gathers of 128 x 512 values, whether or not the parts are written as
// linears of their own. The last part goes back first, so it gathers.
TEST_CASE("what several linears read is gathered again once", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.parallel.regathers_sequence = true;
  ParallelPlan p = plan_of(1, 2);
  p.sequence_parallel = true;
  std::vector<std::string> gathers;
  for (const Operator& op : block_graph(w, p, {}).operators)
    for (const Kernel& k : op.backward_weight)
      if (const auto* c = std::get_if<CommWork>(&k)) {
        CHECK(c->collective == Collective::all_gather);
        CHECK(c->size == Bytes(128 * 512 * 2));
        gathers.emplace_back(op.name);
      }
  CHECK(gathers == std::vector<std::string>{"v", "gate"});
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.parallel.exchanges_per_linear = true;  // each reads a copy of its own
  int each = 0;
  for (const Operator& op : block_graph(w, p, {}).operators)
    for (const Kernel& k : op.backward_weight) each += std::holds_alternative<CommWork>(k);
  CHECK(each == 5);
}

// Two ranks' 16-bit halves of 128 x 1000 logits, and the whole of them, all of which the loss's
// softmax reads: 128 x 1000 fp32 in place of 128 x 500. They come as one tensor of 128 x 1000, from
// which the other rank's 128 x 500 are copied before both halves are joined.
TEST_CASE("a loss over logits that each rank gathers", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.loss.kind = LossKind::dense;
  const auto logits = [&](const LayerGraph& graph) {
    std::int64_t widest = 0;
    for (const Tensor& t : graph.tensors)
      if (t.category == MemoryCategory::logits) widest = std::max(widest, t.bytes);
    return widest;
  };
  const LayerGraph cut = head_graph(w, plan_of(1, 2), false);
  CHECK(logits(cut) == 128 * 500 * 4);
  CHECK(exchanged(cut, true).gathers == 0);
  w.framework.loss.gathers_logits = true;
  const LayerGraph whole = head_graph(w, plan_of(1, 2), false);
  CHECK(logits(whole) == 128 * 1000 * 4);
  CHECK(exchanged(whole, true).gathers == 1);
  std::int64_t beside = 0;
  for (const Tensor& t : whole.tensors) beside += t.gathered ? t.bytes : 0;
  CHECK(beside == 128 * (1000 + 500) * 2);
  CHECK(exchanged(head_graph(w, plan_of(1), false), true).gathers == 0);
}

// 128 x 512 activations in 16 bits, 128 KiB: each gather and each scatter copies them once more,
// and both copies live. 128 x 500 logits per rank in fp32: log-softmax by five kernels with one
// tensor beside its result, and a gradient of three such tensors at once.
TEST_CASE("tensor parallelism by DTensor", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.loss.kind = LossKind::dense;
  ParallelPlan p = plan_of(1, 2);
  p.sequence_parallel = true;
  const auto named = [](const LayerGraph& graph, std::string_view name) {
    const auto at = std::find_if(graph.operators.begin(), graph.operators.end(),
                                 [&](const Operator& op) { return op.name == name; });
    REQUIRE(at != graph.operators.end());
    return *at;
  };
  constexpr std::int64_t sequence = 128 * 512 * 2, logits = 128 * 500 * 4;
  for (const bool dtensor : {false, true}) {
    w.framework.parallel.dtensor = dtensor;
    for (const std::string_view name : {"gather_sequence", "reduce_sequence"}) {
      const Operator op = named(block_graph(w, p, {}), name);
      CHECK(op.forward_temporary == Bytes(dtensor ? sequence : 0));
      CHECK(op.backward_temporary == Bytes(dtensor ? sequence : 0));
      CHECK(op.forward.size() == (dtensor ? 2u : 1u));
    }
    const LayerGraph head = head_graph(w, p, false);
    const Operator log_softmax = named(head, "log_softmax");
    CHECK(log_softmax.passes_gradient == dtensor);
    CHECK(std::get<MemoryWork>(log_softmax.forward.front()).launches == (dtensor ? 5 : 1));
    CHECK(named(head, "nll_loss").backward_temporary == Bytes(dtensor ? 3 * logits : 0));
    CHECK(exchanged(head, true).sums == (dtensor ? 3 : 0));
  }
  p.async_tensor = true;  // products that are split write where they belong
  CHECK(named(block_graph(w, p, {}), "gather_sequence").forward_temporary == Bytes(0));
}

// 128 tokens over two tensor ranks, to 8 experts each: 64 x 8 x 512 x 2 B go to the ranks of the
// experts. Each expert is cut over two, which then hold each other's: twice that is gathered, and
// summed before it goes back.
TEST_CASE("experts that tensor parallelism cuts", "[experts]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  ParallelPlan p = plan_of(4, 2);
  p.sequence_parallel = true;
  p.expert = 4;
  BlockKind kind;
  kind.experts = true;
  const auto sent = [&](std::string_view name, Collective how) {
    std::int64_t bytes = 0;
    for (const Operator& op : block_graph(w, p, kind).operators)
      for (const Kernel& k : op.forward)
        if (const auto* c = std::get_if<CommWork>(&k); c && op.name == name)
          bytes += c->collective == how ? c->size.value : 0;
    return bytes;
  };
  constexpr std::int64_t once = 64 * 8 * 512 * 2;
  constexpr std::int64_t scores = 64 * 8 * 4;  // in 4 bytes
  constexpr std::int64_t counts = 4 * 64 * 8;  // of 4 ranks, of 64 experts in 8 bytes
  for (const int cut : {1, 2}) {
    p.expert_tensor = cut;
    CHECK(sent("dispatch", Collective::all_to_all) == once + scores);
    CHECK(sent("dispatch", Collective::all_gather) == counts + (cut == 1 ? 0 : 2 * once));
    CHECK(sent("combine", Collective::reduce_scatter) == (cut == 1 ? 0 : 2 * once));
    CHECK(sent("combine", Collective::all_to_all) == once);
  }
}

// What a checkpoint by operators keeps of 128 tokens to 8 experts each, over four ranks: both
// exchanges give 128 x 8 x 512 x 2 B. A list that has the all-to-all keeps them; one that has not
// runs both again, sending once more. On one rank they are an index, which no list has.
TEST_CASE("a list of operators may lack the all-to-all", "[experts]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  w.framework.layers.kernels = KernelStyle::eager;
  BlockKind kind;
  kind.experts = true;
  const RecomputePolicy policy = *recompute_policy("selective-op");
  const auto again = [&](int ranks, bool omits) {
    ParallelPlan p = plan_of(ranks);
    p.expert = ranks;
    w.framework.recompute.selective_op_omits_all_to_all = omits;
    const LayerGraph block = block_graph(w, p, kind);
    const std::vector<bool> runs = operators_run_again(block, policy, false);
    int exchanges = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::string_view name = block.operators[i].name;
      if (runs[i] && (name == "dispatch" || name == "combine")) ++exchanges;
    }
    return exchanges;
  };
  CHECK(again(4, false) == 0);
  CHECK(again(4, true) == 2);
  CHECK(again(1, false) == 2);
}

// 128 tokens x 2 experts x 512 are 131,072 elements: to fp32 6 bytes, times the score 8, back 6;
// backward 6 + 8 + 12 + 4 + 6. One kernel that is compiled reads and writes 4, and 6.
TEST_CASE("rows of experts that are weighted apart", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 128, 0, false, 0, 1};
  BlockKind kind;
  kind.experts = true;
  const auto moved = [&](bool forward) {
    std::int64_t bytes = 0;
    for (const Operator& op : block_graph(w, plan_of(1), kind).operators)
      if (op.name == std::string_view("weighted_rows"))
        for (const Kernel& k : forward ? op.forward : op.backward)
          bytes += std::get<MemoryWork>(k).moved.value;
    return bytes;
  };
  w.framework.layers.kernels = KernelStyle::eager;
  CHECK(moved(true) == 0);
  w.framework.experts.weighs_rows_apart = w.framework.experts.compiles_dispatch = true;
  CHECK(moved(true) == 131'072 * 20);
  CHECK(moved(false) == 131'072 * 36);
  w.framework.layers.kernels = KernelStyle::compiled;
  CHECK(moved(true) == 131'072 * 4);
  CHECK(moved(false) == 131'072 * 6);
  w.framework.experts.compiles_dispatch = false;
  CHECK(moved(true) == 131'072 * 20);
}

// The longest sequence is asked of the GPU once in each forward pass, and is not asked elsewhere.
TEST_CASE("attention that asks for the longest sequence", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  const auto asked = [&] {
    int waits = 0;
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
      for (const std::vector<Kernel>* pass : {&op.forward, &op.backward, &op.backward_weight})
        for (const Kernel& k : *pass) waits += std::holds_alternative<ReadBack>(k);
    return waits;
  };
  CHECK(asked() == 0);
  w.framework.attention.reads_lengths = true;
  CHECK(asked() == 1);
}
