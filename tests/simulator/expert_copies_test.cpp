// What moves the rows of experts about and casts them, operator by operator.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

// 64 experts of which each of 4,096 tokens takes eight: 32,768 rows of 2,048 on eight ranks of
// eight experts, and a gated MLP of 1,024.
Workload routed_model(DType compute) {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  w.framework.layers.kernels = KernelStyle::fused;
  w.compute = compute;
  return w;
}

constexpr std::int64_t rows = 32768;
constexpr std::int64_t dispatched = rows * 2048 * 2;  // B

LayerGraph block_of(const Workload& w, int microbatch = 1) {
  ParallelPlan plan = plan_of(8);
  if (w.model.moe) plan.expert = 8;
  plan.microbatch = microbatch;
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  return partition.stages[0][0].layers[1].definition->graph;
}

const Operator& operator_named(const LayerGraph& graph, std::string_view name) {
  return *std::find_if(graph.operators.begin(), graph.operators.end(),
                       [&](const Operator& op) { return op.name == name; });
}

struct RowTraffic {
  std::int64_t bytes = 0;
  int launches = 0;
};

RowTraffic traffic_of(const std::vector<Kernel>& kernels, bool (*counts)(const MemoryWork&)) {
  RowTraffic sum;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k); m != nullptr && counts(*m)) {
      sum.bytes += m->moved.value;
      sum.launches += m->launches;
    }
  return sum;
}

bool copies_rows(const MemoryWork& m) { return !m.looped && !m.plain; }
bool looped(const MemoryWork& m) { return m.looped; }
bool plain(const MemoryWork& m) { return m.plain; }

}  // namespace

// Every copy reads and writes the rows. An all-to-all: permuted, then sorted by expert where it
// arrived; in 8 bits padded too, and what comes back is sorted and unpadded. DeepEP sorts where it
// permutes; HybridEP also pads, and before it reads a byte of each of 64 experts twice for each of
// 8 x 4,096 tokens, and writes 5 B for each of its 8 experts and 4. Theirs reads a token once on
// each rank, of eight experts over eight ranks 1 - (7/8)^8 = 0.656 rows for one that it writes, and
// sums as many; nothing is left to sum.
TEST_CASE("rows of experts are copied as often as their dispatcher leaves to do", "[experts]") {
  const auto copies = [](const Workload& w, std::string_view name) {
    return static_cast<double>(
               traffic_of(operator_named(block_of(w), name).forward, copies_rows).bytes) /
           (2.0 * dispatched);
  };
  Workload wide = routed_model(DType::bf16), narrow = routed_model(DType::mxfp8);
  CHECK(copies(wide, "dispatch") == 2);
  CHECK(copies(wide, "combine") == 1);
  CHECK(copies(narrow, "dispatch") == 3);
  CHECK(copies(narrow, "combine") == 2);
  wide.framework.experts.dispatches_once = narrow.framework.experts.dispatches_once = true;
  const double once = (2 - std::pow(7.0 / 8, 8)) / 2;
  CHECK(copies(wide, "dispatch") == Approx(once));
  CHECK(copies(narrow, "dispatch") == Approx(once + 1));
  narrow.framework.experts.dispatches_by_map = true;
  const double maps = (2.0 * 64 + 5.0 * 8 + 4) * 8 * 4096 / (2.0 * dispatched);
  CHECK(copies(narrow, "dispatch") == Approx(once + maps));
  CHECK(copies(narrow, "combine") == Approx(once));
  CHECK(operator_named(block_of(narrow), "weighted_sum").forward.empty());
  CHECK(operator_named(block_of(narrow), "weighted_sum").backward.empty());
}

// What 4,096 tokens get from a shared expert, 2,048 values of 16 bits each, is read and written
// forward; backward both factors' products are made, 3 + 3 times that. It is kept, and beside it
// the token's own factor. The factor's weights are 2,048.
TEST_CASE("a gated shared expert keeps what it gives", "[experts]") {
  Workload w = routed_model(DType::bf16);
  w.model.moe->shared_expert_ffn = 1024;
  const auto saved = [](const LayerGraph& graph) {
    std::int64_t sum = 0;
    for (const TensorIndex t : operator_named(graph, "gated_shared").saves)
      sum += graph.tensors[static_cast<std::size_t>(t)].bytes;
    return sum;
  };
  const auto all = [](const MemoryWork&) { return true; };
  const std::int64_t without = block_of(w).parameters.base();
  w.model.moe->shared_gate = true;
  const LayerGraph graph = block_of(w);
  CHECK(graph.parameters.base() - without == 2048);
  const std::int64_t given = 4096 * 2048 * 2;
  CHECK(saved(graph) == given + 4096 * 2);
  CHECK(traffic_of(operator_named(graph, "gated_shared").forward, all).bytes == 2 * given);
  CHECK(traffic_of(operator_named(graph, "gated_shared").backward, all).bytes == 6 * given);
  w.framework.layers.kernels = KernelStyle::compiled;
  CHECK(traffic_of(operator_named(block_of(w), "gated_shared").backward, all).bytes == 3 * given);
}

// Eight experts, a kernel each, 2 B read and two of 1 B written: 4 B an element. The tensor's own
// largest value is looked for first: 2 B more, and four kernels.
TEST_CASE("operands are cast expert by expert", "[experts]") {
  Workload w = routed_model(DType::fp8);
  const RowTraffic delayed = traffic_of(operator_named(block_of(w), "expert_up").forward, looped);
  CHECK(delayed.bytes == 4 * rows * 2048);
  CHECK(delayed.launches == 8);
  w.framework.narrow.current_scaling = true;
  const RowTraffic current = traffic_of(operator_named(block_of(w), "expert_up").forward, looped);
  CHECK(current.bytes == 6 * rows * 2048);
  CHECK(current.launches == 32);
}

// Of 3,001 tokens eight copies each go to eight local experts: 24,008 rows, 3,001 of one at the
// mean, with a deviation of 54.8. In mxfp8 they are 3,008, a multiple of 32, in 8 bits of one scale
// too (16). Multiples of 128, in four bits, hold half of one more on average, 3,065, to the nearest
// 32 rows 3,072. Of 256, in a step of one graph, they take 12, or 13 where they are beyond 3,072,
// 1.30 deviations away: 12.0975 of them are 3,097, so 3,104. Casts, outputs and what is kept have
// them all; what travels has not.
TEST_CASE("rows of an expert are filled up where its products are narrow", "[experts]") {
  const auto check = [](Workload w, std::int64_t each) {
    w.sequence = 3001;
    const LayerGraph graph = block_of(w);
    const auto bytes = [&](TensorIndex t) {
      return graph.tensors[static_cast<std::size_t>(t)].bytes;
    };
    const Operator& up = operator_named(graph, "expert_up");
    CHECK(std::get<GemmWork>(up.forward.front()).m == each);
    CHECK(bytes(up.outputs.front()) == 8 * each * 2 * 1024 * 2);
    CHECK(bytes(operator_named(graph, "dispatch").outputs.front()) == 8 * each * 2048 * 2);
    CHECK(bytes(operator_named(graph, "combine").outputs.front()) == 24'008 * 2048 * 2);
    for (const Kernel& k : operator_named(graph, "dispatch").forward)
      if (const auto* c = std::get_if<CommWork>(&k); c && c->collective == Collective::all_to_all)
        CHECK((c->size.value == 24'008 * 2048 * 2 || c->size.value == 24'008 * 4));
    return traffic_of(up.forward, looped).bytes;
  };
  CHECK(check(routed_model(DType::bf16), 3001) == 0);
  CHECK(check(routed_model(DType::fp8), 3008) == 4 * 8 * 3008 * 2048);
  CHECK(check(routed_model(DType::mxfp8), 3008) > 0);
  CHECK(check(routed_model(DType::nvfp4), 3072) > 0);
  Workload w = routed_model(DType::mxfp8);
  w.step_is_graph = true;
  check(w, 3104);
  // 24,008 rows of a capacity that is no multiple are padded in a copy, 24,064 of one that is not.
  w.step_is_graph = false;
  w.pads_experts = true;
  const auto padding = [&](int sequence) {
    w.sequence = sequence;
    return traffic_of(operator_named(block_of(w), "combine").forward, copies_rows).launches;
  };
  CHECK(padding(3001) == 3);
  CHECK(padding(3008) == 2);
}

// Up's input and down's output gradient are still cast; what lies between is cast by the products
// that make it.
TEST_CASE("in one graph products of experts end in activation and cast", "[experts]") {
  Workload w = routed_model(DType::mxfp8);
  CHECK_FALSE(operator_named(block_of(w), "expert_activation").forward.empty());
  w.step_is_graph = true;
  const LayerGraph graph = block_of(w);
  CHECK(operator_named(graph, "expert_activation").forward.empty());
  CHECK(operator_named(graph, "expert_activation").backward.empty());
  CHECK(traffic_of(operator_named(graph, "expert_up").forward, looped).launches == 8);
  CHECK(traffic_of(operator_named(graph, "expert_up").backward, looped).launches == 0);
  CHECK(traffic_of(operator_named(graph, "expert_down").forward, looped).launches == 0);
  CHECK(traffic_of(operator_named(graph, "expert_down").backward, looped).launches == 8);
  w.pads_experts = true;
  CHECK_FALSE(operator_named(block_of(w), "expert_activation").forward.empty());
}

TEST_CASE("experts' weight gradients are added where they are kept", "[experts]") {
  Workload w = routed_model(DType::bf16);
  for (const bool fusion : {false, true}) {
    w.framework.gradients.fusion = fusion;
    const LayerGraph graph = block_of(w);
    CHECK(
        std::get<GemmWork>(operator_named(graph, "expert_up").backward_weight.front()).accumulate ==
        fusion);
  }
}

// Of 16 heads of 128, 8 groups of 128 states: z and x of 2,048 each, B and C of 1,024 each and 16
// time steps are 6,160 columns in, 2,048 out, of two sequences of 4,096 tokens, read and written in
// 2 B: 4 x 8,192 x 8,208 B each way. One sequence lies as the kernels want it.
TEST_CASE("a Mamba scan has its sequences copied one behind the other", "[mamba]") {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  StateSpace mamba;
  mamba.heads = 16;
  mamba.head_dim = 128;
  mamba.groups = 8;
  mamba.state = 128;
  mamba.chunk = 256;
  w.model.mamba = mamba;
  w.framework.layers.kernels = KernelStyle::fused;
  const auto copied = [&](int microbatch) {
    ParallelPlan plan = plan_of(8);
    plan.microbatch = microbatch;
    GraphBuilder b(w, plan, true);
    add_mamba(b, b.input(microbatch * 4096 * 2048));
    const LayerGraph graph = b.finish(0);
    const Operator& scan = operator_named(graph, "scan");
    return std::pair{traffic_of(scan.forward, plain).bytes, traffic_of(scan.backward, plain).bytes};
  };
  const std::int64_t both = 4LL * 8192 * 8208;
  CHECK(copied(2) == std::pair{std::int64_t{0}, std::int64_t{0}});
  w.framework.layers.sequence_first = true;
  CHECK(copied(2) == std::pair{both, both});
  CHECK(copied(1) == std::pair{std::int64_t{0}, std::int64_t{0}});
}

// 4,096 tokens to eight experts each are 32,768 rows of 2,048 values of 2 B. They are weighed as
// the experts left them, which backward needs again; it makes their gradient and, beside it, the
// product that is summed to the scores'. What the experts read has a name to the end of the
// function that calls them: a tensor more while the rows go back, unless it is kept anyway.
TEST_CASE("grouped experts of transformers weigh their rows before they return them", "[experts]") {
  Workload w = routed_model(DType::bf16);
  w.framework.layers.kernels = KernelStyle::eager;
  const auto alone = [&] {
    const ModelPartition partition =
        partition_model(w, plan_of(1), *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
    return partition.stages[0][0].layers[1].definition->graph;
  };
  const auto weighs = [](const Operator& op) { return op.name == "weighted_rows"; };
  const LayerGraph before = alone();
  CHECK(std::none_of(before.operators.begin(), before.operators.end(), weighs));

  w.framework.experts.torch_grouped_products = true;
  const LayerGraph graph = alone();
  const Operator& weighed = operator_named(graph, "weighted_rows");
  const Operator& back = operator_named(graph, "combine");
  CHECK(weighed.inputs.front() == operator_named(graph, "expert_down").outputs.front());
  CHECK(weighed.saves == weighed.inputs);
  CHECK(weighed.backward_temporary == Bytes(2 * dispatched));
  CHECK(weighed.backward_temporaries == 2);
  CHECK(back.inputs == weighed.outputs);
  CHECK(back.forward_temporary == Bytes(0));
  CHECK(operator_named(graph, "weighted_sum").saves.empty());

  w.method = Method::lora;
  w.framework.adapters.on_experts = false;
  CHECK(operator_named(alone(), "combine").forward_temporary == Bytes(dispatched));
}

// 4,096 tokens of 2,048 values: read in 2 B and written in 4, and the other way round for their
// gradient; a compiler writes them beside the norm's result and reads the gradient as it adds up.
// The copy is what the weight's gradient reads, so that it stays.
TEST_CASE("a router of fp32 multiplies a copy of its input", "[experts]") {
  Workload w = routed_model(DType::bf16);
  const auto made = [](const Operator& op) { return op.name == "router_input"; };
  const LayerGraph half = block_of(w);
  CHECK(std::none_of(half.operators.begin(), half.operators.end(), made));

  w.framework.experts.routes_in_fp32 = true;
  const auto any = [](const MemoryWork&) { return true; };
  for (const KernelStyle style : {KernelStyle::eager, KernelStyle::compiled}) {
    w.framework.layers.kernels = style;
    const bool compiled = style == KernelStyle::compiled;
    const LayerGraph graph = block_of(w);
    const Operator& copy = operator_named(graph, "router_input");
    const Operator& router = operator_named(graph, "router");
    CHECK(traffic_of(copy.forward, any).bytes == 4096 * 2048 * (compiled ? 4 : 6));
    CHECK(traffic_of(copy.forward, any).launches == (compiled ? 0 : 1));
    CHECK(copy.outputs == router.saves);
    CHECK(graph.tensors[static_cast<std::size_t>(copy.outputs.front())].bytes == 4096 * 2048 * 4);
    for (const std::vector<Kernel>* pass :
         {&router.forward, &router.backward, &router.backward_weight})
      CHECK(std::get<GemmWork>(pass->front()).dtype == DType::fp32);
    CHECK(std::get<GemmWork>(operator_named(graph, "q").forward.front()).dtype == DType::bf16);
  }
}

// What 32,768 rows leave of gate and up, 1,024 values each of 2 B, transformers puts together to
// one gradient by cat, which reads and writes as much as they were sent. Others have two products,
// whose gradients of 2,048 values are added up: two tensors that are read, one that is written.
TEST_CASE("gate and up of PyTorch's grouped products leave a gradient to join", "[experts]") {
  Workload w = routed_model(DType::bf16);
  w.framework.experts.torch_grouped_products = true;
  const auto joined = [&](KernelStyle style, bool transformers) {
    w.framework.layers.kernels = style;
    w.framework.layers.runs_transformers = transformers;
    return traffic_of(operator_named(block_of(w), "expert_up").backward,
                      [](const MemoryWork&) { return true; });
  };
  CHECK(joined(KernelStyle::eager, true).bytes == 2 * dispatched);
  CHECK(joined(KernelStyle::eager, false).bytes == 3 * dispatched);
  CHECK(joined(KernelStyle::compiled, true).launches == 0);
  CHECK(joined(KernelStyle::compiled, false).launches == 1);
  w.model.biases.experts = true;  // gpt-oss, whose gate and up alternate
  CHECK(joined(KernelStyle::eager, false).launches == 0);
}

// A bias of each of 2,048 columns behind both products: written for each row (2 B of a value), read
// and added (6 B). What is kept of a value of 1,024: gate and up as they were (4 B), and the two
// factors of both products (8 B).
TEST_CASE("operators of PyTorch's add the biases of gpt-oss and clamp what they gate",
          "[experts]") {
  Workload w = routed_model(DType::bf16);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.experts.torch_grouped_products = true;
  w.model.biases.experts = true;
  const auto any = [](const MemoryWork&) { return true; };
  RowTraffic bias, there, back;
  std::vector<TensorIndex> kept;
  const LayerGraph graph = block_of(w);
  for (const Operator& op : graph.operators) {
    const RowTraffic forward = traffic_of(op.forward, any), backward = traffic_of(op.backward, any);
    if (op.name == "expert_bias") bias.bytes += forward.bytes;
    if (op.name != "expert_activation") continue;
    there.bytes += forward.bytes, there.launches += forward.launches;
    back.bytes += backward.bytes, back.launches += backward.launches;
    kept.insert(kept.end(), op.saves.begin(), op.saves.end());
  }
  CHECK(bias.bytes == 2 * 4 * dispatched);
  CHECK(there.bytes == 32 * rows * 1024);
  CHECK(there.launches == 7);
  CHECK(back.bytes == 90 * rows * 1024);
  CHECK(back.launches == 18);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  std::int64_t bytes = 0;
  for (TensorIndex t : kept) bytes += graph.tensors[static_cast<std::size_t>(t)].bytes;
  CHECK(bytes == (4 + 8) * rows * 1024);
}

// Without a gate the first product has 1,024 columns, the second 2,048 as above: 8 B of a value.
TEST_CASE("the bias of experts without a gate is as wide as their first product", "[experts]") {
  Workload w = routed_model(DType::bf16);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.experts.torch_grouped_products = true;
  w.model.gated_mlp = false;
  w.model.biases.experts = true;
  std::int64_t bytes = 0;
  for (const Operator& op : block_of(w).operators)
    if (op.name == "expert_bias")
      bytes += traffic_of(op.forward, [](const MemoryWork&) { return true; }).bytes;
  CHECK(bytes == 8 * rows * (1024 + 2048));
}

// LoRA of rank 16 on experts that are one tensor a kind: on each of eight ranks the products of
// eight experts read W + B A, 8 x (2,048 x 2 x 1,024 + 1,024 x 2,048) values of 16 bits, which stay
// with 16-bit copies of A and B and with the rows that W's gradient is made of.
TEST_CASE("adapters of experts that are one tensor are added to it", "[experts]") {
  Workload w = routed_model(DType::bf16);
  w.method = Method::lora;
  w.adapter.rank = 16;
  w.framework.adapters.on_experts = w.framework.adapters.sums_experts = true;
  w.framework.adapters.dtype = DType::fp32;
  const LayerGraph graph = block_of(w);
  const std::int64_t adapters = 8 * 16 * ((2048 + 2048) + (1024 + 2048));
  CHECK(graph.parameters.expert_adapter == adapters);
  const auto bytes = [&](TensorIndex t) {
    return graph.tensors[static_cast<std::size_t>(t)].bytes;
  };
  std::int64_t sums = 0, copies = 0;
  for (const Operator& op : graph.operators)
    if (op.name == std::string_view("adapted_weight")) {
      sums += bytes(op.outputs.at(0));
      copies += bytes(op.saves.at(0));
    }
  CHECK(sums == 2 * 8 * 3 * 2048 * 1024);
  CHECK(copies == 2 * adapters);
  for (const std::string_view name : {"expert_up", "expert_down"}) {
    const Operator& product = operator_named(graph, name);
    CHECK(product.saves == product.inputs);
    CHECK(product.saves.size() == 2);
    CHECK_FALSE(product.backward_weight.empty());
  }
}

}  // namespace shardwise
