// What DoRA adds to LoRA's adapter.
#include <map>
#include <string>
#include <vector>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/layer_script.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/matmul_flops.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t sample_tokens = 256, h = 1024, dora_rank = 8;

// On q alone, which is h wide on both sides.
Workload adapted(Method method, bool autocast, double dropout) {
  Workload w = pretraining(llama(2, 1024, 16, 4, 2816, 32000), sample_tokens);
  w.method = method;
  w.framework.adapters.dtype = DType::fp32;
  w.framework.formats.autocast = autocast;
  w.adapter.rank = dora_rank;
  w.adapter.dropout = dropout;
  w.adapter.targets = {true, false, false, false, false, false, false, false, false};
  return w;
}

std::int64_t saved(const LayerGraph& graph) {
  ScriptOptions options;
  options.runs_again = operators_run_again(graph, *recompute_policy("none"), false);
  return layer_script(graph, options).saved_bytes;
}

// Of DoRA beyond LoRA.
std::int64_t keeps_more(bool autocast, double dropout) {
  const Workload dora = adapted(Method::dora, autocast, dropout);
  const Workload lora = adapted(Method::lora, autocast, dropout);
  return saved(block_graph(dora, plan_of(1), {})) - saved(block_graph(lora, plan_of(1), {}));
}

double product_flops(const LayerGraph& graph, std::vector<Kernel> Operator::*pass) {
  double total = 0;
  for (const Operator& op : graph.operators) total += matmul_flops(op.*pass);
  return total;
}

std::int64_t pass_bytes(const std::vector<Kernel>& pass) {
  std::int64_t total = 0;
  for (const Kernel& k : pass)
    if (const auto* memory = std::get_if<MemoryWork>(&k)) total += memory->moved.value;
  return total;
}

std::map<std::string, Operator> by_name(const LayerGraph& graph) {
  std::map<std::string, Operator> out;
  for (const Operator& op : graph.operators) out.emplace(op.name, op);
  return out;
}

}  // namespace

// The magnitude's gradient reads y and B A x: h values of a token each, 2 bytes of y and as many of
// the adapter's product as its format has. Beside them three fp32 vectors of h. With dropout the
// base's product is made again, which has the adapter's format, and so has the weight's copy.
TEST_CASE("DoRA keeps what its magnitude multiplies", "[dora]") {
  CHECK(keeps_more(true, 0) == sample_tokens * (2 + 2) * h + 12 * h);
  CHECK(keeps_more(false, 0) == sample_tokens * (2 + 4) * h + 12 * h);
  CHECK(keeps_more(true, 0.05) == sample_tokens * (2 + 2) * h + 12 * h + 2 * h * h);
  CHECK(keeps_more(false, 0.05) == sample_tokens * (4 + 4) * h + 12 * h + 4 * h * h);
  // Of 16-bit adapters there is nothing to copy, the weight neither.
  Workload dora = adapted(Method::dora, false, 0.05), lora = adapted(Method::lora, false, 0.05);
  dora.framework.adapters.dtype = lora.framework.adapters.dtype = DType::bf16;
  CHECK(saved(block_graph(dora, plan_of(1), {})) - saved(block_graph(lora, plan_of(1), {})) ==
        sample_tokens * (2 + 2) * h + 6 * h);
}

// B A of an identity of h: two products, h r h each; dropout's base once forward and once backward.
TEST_CASE("DoRA multiplies an identity by B A, and the base again with dropout", "[dora]") {
  for (const double dropout : {0.0, 0.05}) {
    const LayerGraph dora = block_graph(adapted(Method::dora, true, dropout), plan_of(1), {});
    const LayerGraph lora = block_graph(adapted(Method::lora, true, dropout), plan_of(1), {});
    const double base = dropout > 0 ? 2.0 * sample_tokens * h * h : 0;
    CHECK(product_flops(dora, &Operator::forward) - product_flops(lora, &Operator::forward) ==
          2.0 * 2 * h * dora_rank * h + base);
    CHECK(product_flops(dora, &Operator::backward) - product_flops(lora, &Operator::backward) ==
          base);
    CHECK(dora.parameters.adapter == lora.parameters.adapter + h);
  }
}

// Under autocast, bytes of each of the h x h values. The identity 4, its copy 4 + 2; B A to fp32
// 2 + 4 and W to fp32 2 + 4; s B A 4 + 4, W + s B A 8 + 4, its norm 4: 46. At the sum four fp32
// matrices and the identity's copy stand: 18; without autocast its fp32 original: 20.
// Of each of y's values: g - 1 times y and g times z 2 + 4 each, s 4 + 4, their sum 8 + 4, y's
// 2 + 4 + 4, the result's copy 4 + 2: 48. Backward 2 + 4 and 4 + 2 between formats, s 8, by the
// factors 8 each, copies of both 6 each, y's two gradients 6: 54; of the magnitude 4 + 2 + 4 and
// the sum's 4, twice: 28. Three fp32 results stand beside y's 2 bytes, in forward.
TEST_CASE("DoRA's norms and factors are passes over matrices in fp32", "[dora]") {
  const auto op = by_name(block_graph(adapted(Method::dora, true, 0), plan_of(1), {}));
  const auto lora = by_name(block_graph(adapted(Method::lora, true, 0), plan_of(1), {}));
  CHECK(pass_bytes(op.at("adapter_down").forward) - pass_bytes(lora.at("adapter_down").forward) ==
        46 * h * h);
  CHECK(op.at("adapter_down").forward_temporary == Bytes(18 * h * h));
  const Operator& scale = op.at("dora_scale");
  CHECK(pass_bytes(scale.forward) == 48 * sample_tokens * h);
  CHECK(pass_bytes(scale.backward) == 54 * sample_tokens * h);
  CHECK(pass_bytes(scale.backward_weight) == 28 * sample_tokens * h);
  CHECK(scale.forward_temporary == Bytes((8 + 2) * h * h + (3 * 4 - 2) * sample_tokens * h));
  const auto plain = by_name(block_graph(adapted(Method::dora, false, 0), plan_of(1), {}));
  CHECK(plain.at("adapter_down").forward_temporary == Bytes(20 * h * h));
}

// A 4-bit weight is unpacked once more for the norm: of all linears' values the h x h of q.
TEST_CASE("DoRA unpacks a quantised weight for its norm", "[dora]") {
  const auto moves = [](Method method, Quantization base) {
    Workload w = adapted(method, true, 0);
    w.adapter.base = base;
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    std::int64_t total = 0;
    for (const Operator& op : graph.operators) total += pass_bytes(op.forward);
    return static_cast<double>(total);
  };
  const auto unpacking = [&](Method method) {
    return moves(method, Quantization::nf4) - moves(method, Quantization::none);
  };
  const LayerGraph graph = block_graph(adapted(Method::lora, true, 0), plan_of(1), {});
  const double of_q = static_cast<double>(h * h) / static_cast<double>(graph.parameters.linear);
  CHECK(unpacking(Method::lora) > 0);
  CHECK(unpacking(Method::dora) == Approx(unpacking(Method::lora) * (1 + of_q)).epsilon(1e-5));
}

}  // namespace shardwise
