#include "simulator/graphs/layer_script.hpp"

#include <map>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// Plays the three lists in order and keeps account of what is open.
struct Account {
  std::map<int, std::int64_t> open;
  std::int64_t now = 0, peak = 0;
  bool sound = true;  // nothing opened twice, nothing closed that is not open

  void play(const std::vector<MemoryEvent>& events) {
    for (const MemoryEvent& e : events) {
      if (e.kind == EventKind::allocate) {
        sound = sound && open.emplace(e.slot, e.bytes).second;
        now += e.bytes;
      } else if (e.kind == EventKind::release || e.kind == EventKind::release_read) {
        const auto it = open.find(e.slot);
        sound = sound && it != open.end();
        if (it == open.end()) continue;
        now -= it->second;
        open.erase(it);
      }
      peak = std::max(peak, now);
    }
  }
};

void check_balance(const LayerGraph& graph, const char* policy_name, bool compiled, bool early) {
  const RecomputePolicy policy = *recompute_policy(policy_name);
  ScriptOptions options;
  options.runs_again = operators_run_again(graph, policy, compiled);
  options.whole_block = policy.row->whole_block;
  options.keeps_results = policy.row->keeps_results;
  options.caches_results = policy.row->caches && !compiled;
  options.stops_early = early;
  const LayerScript script = layer_script(graph, options);
  INFO(policy_name << " compiled " << compiled << " early " << early);

  Account a;
  a.open[script.input_slot] = graph.tensors[static_cast<std::size_t>(graph.input)].bytes;
  a.now = a.open[script.input_slot];
  a.play(script.forward);
  // After forward: what is kept, and the output, which the next layer takes over.
  REQUIRE(a.open.count(script.output_slot) == 1);
  a.now -= a.open[script.output_slot];
  a.open.erase(script.output_slot);
  CHECK(a.now == script.saved_bytes);

  a.play(script.recompute);
  a.open[script.output_gradient_slot] = 0;
  a.play(script.backward);
  // After backward: nothing but the gradient that the layer before takes over.
  CHECK(a.sound);
  for (const auto& [slot, bytes] : a.open) CHECK(slot == script.input_gradient_slot);
}

}  // namespace

TEST_CASE("every layer's allocation stream balances under every policy", "[layer_script]") {
  std::vector<Workload> workloads;
  for (const KernelStyle style : {KernelStyle::eager, KernelStyle::fused, KernelStyle::compiled})
    for (const Method method :
         {Method::pretrain, Method::full, Method::lora, Method::qlora, Method::dora}) {
      Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
      w.framework.layers.kernels = style;
      w.method = method;
      w.adapter.dropout = method == Method::lora ? 0.1 : 0.0;
      if (method == Method::qlora) w.adapter.base = Quantization::nf4;
      workloads.push_back(w);
      w.framework.adapters.fused = true;
      workloads.push_back(w);
      w.framework.adapters.fused = false;
      w.framework.layers.overwrites_gate_and_up = true;
      w.framework.attention.kernel = AttentionKernel::eager;
      w.framework.loss.kind = LossKind::dense_fp32_output;
      workloads.push_back(w);
      w.framework.loss.kind = LossKind::fused_linear;
      w.framework.layers.keeps_narrow_gate = true;
      workloads.push_back(w);
      w.model.moe = MixtureOfExperts{8, 2, 128, 64, true, 0, 1};
      workloads.push_back(w);
    }
  for (const Workload& w : workloads)
    for (const bool sp : {false, true})
      for (const char* policy : {"none", "selective", "selective-op", "full",
                                 "modules-layernorm+moe_act", "modules-core_attn+mlp+moe"})
        for (const bool early : {false, true}) {
          ParallelPlan p = plan_of(1, 2);
          p.sequence_parallel = sp;
          const bool compiled = w.framework.layers.kernels == KernelStyle::compiled;
          const BlockKind kind{w.model.moe.has_value(), true, false};
          check_balance(block_graph(w, p, kind), policy, compiled, early);
          check_balance(embedding_graph(w, p), "none", false, early);
          check_balance(head_graph(w, p, sp), "none", false, early);
          Workload predicting = w;
          predicting.prediction_depths = 2;
          check_balance(head_graph(predicting, p, sp), "none", false, early);
        }
}

// 64 tokens of 704 values in 16 bits, twice: the gradients of gate and up are no tensors of their
// own. What is compiled, or runs operator by operator, does not write over them.
TEST_CASE("gradients that are written over gate and up open nothing", "[layer_script]") {
  const auto opened = [](KernelStyle style, bool overwrites) {
    Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
    w.framework.layers.kernels = style;
    w.framework.layers.overwrites_gate_and_up = overwrites;
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    ScriptOptions options;
    options.runs_again.assign(graph.operators.size(), false);
    std::int64_t bytes = 0;
    for (const MemoryEvent& e : layer_script(graph, options).backward)
      if (e.kind == EventKind::allocate) bytes += e.bytes;
    return bytes;
  };
  CHECK(opened(KernelStyle::fused, false) - opened(KernelStyle::fused, true) == 2 * 2 * 64 * 704);
  for (const KernelStyle style : {KernelStyle::eager, KernelStyle::compiled})
    CHECK(opened(style, true) == opened(style, false));
}

// 64 tokens of 704 values of gate and of up: 2 bytes each, or 1.
TEST_CASE("gate and up kept in 8 bits take half", "[layer_script]") {
  Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
  w.framework.layers.kernels = KernelStyle::fused;
  const auto saved = [&w] {
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    ScriptOptions options;
    options.runs_again.assign(graph.operators.size(), false);
    return layer_script(graph, options).saved_bytes;
  };
  const std::int64_t wide = saved();
  w.framework.layers.keeps_narrow_gate = true;
  CHECK(wide - saved() == 2 * 64 * 704);
}

TEST_CASE("a joined checkpoint keeps one input for several blocks", "[layer_script]") {
  const Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
  const LayerGraph one = block_graph(w, plan_of(1), {});
  const LayerGraph three = joined(joined(one, one), one);
  const std::int64_t input = 2 * 64 * 256;
  ScriptOptions options;
  options.whole_block = true;
  options.runs_again.assign(three.operators.size(), true);
  CHECK(layer_script(three, options).saved_bytes == input);
  CHECK(three.parameters.linear == 3 * one.parameters.linear);
  check_balance(three, "full", false, false);
}

// torch's non-reentrant checkpoint stops once the last saved tensor is back: the down projection,
// whose output nobody keeps, does not run again.
TEST_CASE("an early stop skips the tail of the block", "[layer_script]") {
  const Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
  const LayerGraph graph = block_graph(w, plan_of(1), {});
  ScriptOptions options;
  options.whole_block = options.stops_early = true;
  options.runs_again.assign(graph.operators.size(), true);
  const LayerScript script = layer_script(graph, options);
  for (std::size_t i = 0; i < graph.operators.size(); ++i)
    if (graph.operators[i].name == std::string_view("down")) CHECK_FALSE(script.runs_again[i]);
  CHECK(script.runs_again.front());
}

namespace {

std::int64_t saved_bytes(const LayerGraph& graph, const char* name, bool caches = false) {
  const RecomputePolicy policy = *recompute_policy(name);
  ScriptOptions options;
  options.runs_again = operators_run_again(graph, policy, false);
  options.keeps_results = policy.row->keeps_results;
  options.caches_results = caches;
  return layer_script(graph, options).saved_bytes;
}

}  // namespace

TEST_CASE("an eager selective checkpoint holds the last matmul's result", "[layer_script]") {
  Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
  w.framework.layers.kernels = KernelStyle::eager;
  const LayerGraph block = block_graph(w, plan_of(1), {});
  // Of q, v, up and down, the kept matmuls, backward reads all but down: 64 tokens x 256 x 2 bytes.
  CHECK(saved_bytes(block, "selective-op", true) - saved_bytes(block, "selective-op") ==
        64 * 256 * 2);
}

// Of q, k, v, o and the router every second is kept; no list knows grouped products, which do not
// count either. Without ranks to send to, what sorts the tokens is an index, which no list knows.
TEST_CASE("a selective checkpoint runs experts again", "[layer_script]") {
  Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
  w.framework.layers.kernels = KernelStyle::eager;
  w.model.moe = MixtureOfExperts{8, 2, 128, 0, false, 0, 1};
  BlockKind kind;
  kind.experts = true;
  const RecomputePolicy policy = *recompute_policy("selective-op");
  for (const int ranks : {1, 2}) {
    ParallelPlan p = plan_of(2);
    p.expert = ranks;
    const LayerGraph block = block_graph(w, p, kind);
    const std::vector<bool> again = operators_run_again(block, policy, false);
    int grouped = 0, plain = 0;
    for (std::size_t i = 0; i < block.operators.size(); ++i) {
      const Operator& op = block.operators[i];
      if (op.name == std::string_view("dispatch")) CHECK(again[i] == (ranks == 1));
      if (op.kind != OperatorKind::matmul) continue;
      if (std::get<GemmWork>(op.forward.front()).grouped) {
        ++grouped;
        CHECK(again[i]);
      } else {
        CHECK(again[i] == (++plain % 2 == 0));
      }
    }
    CHECK(grouped == 2);  // gate and up together, and down
  }
}

// Products in NVFP4 are of an operator that the lists do not know; those in 8 bits are listed. What
// stays of a block is its input and the kernel's result, 64 x 256 in 16 bits each, and the
// log-sum-exp of 8 heads in 4 bytes.
TEST_CASE("a selective checkpoint runs products in NVFP4 again", "[layer_script]") {
  Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
  w.framework.layers.kernels = KernelStyle::compiled;
  const RecomputePolicy policy = *recompute_policy("selective-op");
  const auto kept = [&](DType compute) {
    w.compute = compute;
    const LayerGraph block = block_graph(w, plan_of(1), {});
    const std::vector<bool> again = operators_run_again(block, policy, false);
    int products = 0;
    for (std::size_t i = 0; i < block.operators.size(); ++i)
      products += block.operators[i].kind == OperatorKind::matmul && !again[i];
    return products;
  };
  CHECK(kept(DType::mxfp8) == 4);  // q, v, up and down of seven
  CHECK(kept(DType::nvfp4) == 0);
  CHECK(saved_bytes(block_graph(w, plan_of(1), {}), "selective-op") ==
        2 * 64 * 256 * 2 + 64 * 8 * 4);
}

TEST_CASE("parts of a block that are re-run by name", "[layer_script]") {
  Workload w = pretraining(llama(4, 256, 8, 4, 704, 1000), 64);
  w.framework.layers.kernels = KernelStyle::fused;
  const LayerGraph block = block_graph(w, plan_of(1), {});
  const std::int64_t none = saved_bytes(block, "none");
  // Two normed inputs, 64 x 256 in 16 bits each, and 4 bytes of statistics per token; the norms'
  // own inputs are kept either way.
  CHECK(none - saved_bytes(block, "modules-layernorm") == 2 * (64 * 256 * 2 + 64 * 4));
  // Normed input, gate, up and their product, and the norm's statistic of 4 bytes per token.
  CHECK(none - saved_bytes(block, "modules-mlp") == 64 * (256 + 3 * 704) * 2 + 64 * 4);
  // The kernel's result stays for the projection after it, its log-sum-exp does not: 8 heads.
  CHECK(none - saved_bytes(block, "modules-core_attn") == 64 * 8 * 4);
  CHECK_FALSE(recompute_policy("modules-mlp+nothing"));
}

// Under sequence parallelism a block of 64 tokens, 256 wide, gathers what two linears read and
// scatters the sums of two others: W = 64 x 256 x 2 bytes on every rank, or half of it on one of
// two. PyTorch before 2.2 marks both sides of each collective, so that forward frees of such
// 2 W summed, 2 W gathered and 2 W/2 scattered; what stays in a buffer is never freed.
// Backward frees 2 W of gradients that are scattered, 2 W/2 that this makes, the two halves of
// normed inputs that are gathered again, W/2 of a gradient that is gathered (the other one, of the
// block's result, is made by the layer behind), and without buffers 2 W of what that makes.
TEST_CASE("what collectives read and write is freed as marked", "[layer_script]") {
  Workload w = pretraining(llama(4, 256, 8, 8, 704, 1000), 64);
  w.framework.parallel.regathers_sequence = true;
  ParallelPlan p = plan_of(1, 2);
  p.sequence_parallel = true;
  constexpr std::int64_t whole = 64 * 256 * 2;
  const auto marked = [](const std::vector<MemoryEvent>& events,
                         std::map<int, std::int64_t>& sizes) {
    std::int64_t bytes = 0;
    for (const MemoryEvent& e : events) {
      if (e.kind == EventKind::allocate) sizes[e.slot] = e.bytes;
      if (e.kind == EventKind::release_read) bytes += sizes[e.slot];
    }
    return bytes;
  };
  const auto check = [&](std::int64_t forward, std::int64_t backward) {
    const LayerGraph graph = block_graph(w, p, {});
    ScriptOptions options;
    options.runs_again.assign(graph.operators.size(), false);
    const LayerScript script = layer_script(graph, options);
    std::map<int, std::int64_t> sizes;
    CHECK(marked(script.forward, sizes) == forward);
    CHECK(marked(script.backward, sizes) == backward);
  };
  check(5 * whole, 13 * whole / 2);
  w.framework.parallel.keeps_gather_buffers = true;
  check(3 * whole, 9 * whole / 2);
}

// The experts of two ranks get their tokens by an all-to-all, which marks what it writes; those of
// one rank from a copy.
TEST_CASE("what an all-to-all writes is freed as marked", "[layer_script]") {
  Workload w = pretraining(llama(4, 256, 8, 8, 704, 1000), 64);
  w.model.moe = MixtureOfExperts{4, 2, 128, 0, false, 0, 1};
  for (const int ranks : {1, 2}) {
    ParallelPlan p = plan_of(2);
    p.expert = ranks;
    const LayerGraph graph = block_graph(w, p, {.experts = true});
    ScriptOptions options;
    options.runs_again.assign(graph.operators.size(), false);
    const LayerScript script = layer_script(graph, options);
    int freed = 0;
    for (const std::vector<MemoryEvent>* events : {&script.forward, &script.backward})
      for (const MemoryEvent& e : *events) {
        const bool frees = e.kind == EventKind::release || e.kind == EventKind::release_read;
        const auto slot = static_cast<std::size_t>(e.slot);
        if (!frees || slot >= graph.tensors.size()) continue;
        if (graph.tensors[slot].name != "dispatch") continue;
        CHECK(e.kind == (ranks > 1 ? EventKind::release_read : EventKind::release));
        ++freed;
      }
    CHECK(freed == 1);
  }
}
