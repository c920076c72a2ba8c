// What transformers' own classes keep where they are written otherwise than most: counted with real
// PyTorch by tests/oracle/explain.py.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "catalog/huggingface_family.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/saved_by_code.hpp"

namespace shardwise::model_code {

// One kernel keeps what it reads, 2f beside the result that the next linear keeps; ReLU needs that
// result alone; tanh's formula keeps its input, the tangent, one and that, and half of the input:
// 6f more. Autocast copies the input to fp32 and has the tangent and the sum in fp32: 4f, 4f, 4f
// and 2f in place of 2f.
TEST_CASE("what an MLP's function keeps", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  const std::int64_t kernel = saved_by_code(w);
  CHECK(saved_with(w, {.mlp = MlpFunction::keeps_result}) == kernel - 2 * f);
  CHECK(saved_with(w, {.mlp = MlpFunction::written_out}) == kernel + 6 * f);
  w.framework.formats.autocast = true;
  CHECK(saved_with(w, {.mlp = MlpFunction::written_out}) - saved_by_code(w) == 12 * f);
  w.framework.layers.runs_transformers = false;
  CHECK(saved_with(w, {.mlp = MlpFunction::written_out}) == saved_by_code(w));
}

// BLOOM's keeps its input alone, as one kernel would, and moves 21 values of 2 B forward in nine
// operators, 44 backward in eighteen, where the kernel moves 2 and 3. Three such tensors live
// beside the result forward, five backward.
TEST_CASE("an MLP's function that is computed again in backward", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  const std::int64_t kernel = saved_by_code(w);
  CHECK(saved_with(w, {.mlp = MlpFunction::computes_again}) == kernel);
  w.model.code.mlp = MlpFunction::computes_again;
  const LayerGraph graph = block_graph(w, plan_of(1), {});
  const auto work = [&](std::vector<Kernel> Operator::*pass) {
    for (const Operator& op : graph.operators)
      if (op.name == "gelu") return std::get<MemoryWork>((op.*pass).front());
    return MemoryWork{};
  };
  CHECK(work(&Operator::forward).moved.value == 21 * 2 * code_tokens * f);
  CHECK(work(&Operator::forward).launches == 9);
  CHECK(work(&Operator::backward).moved.value == 44 * 2 * code_tokens * f);
  CHECK(work(&Operator::backward).launches == 18);
  const auto gelu = std::find_if(graph.operators.begin(), graph.operators.end(),
                                 [](const Operator& op) { return op.name == "gelu"; });
  REQUIRE(gelu != graph.operators.end());
  CHECK(gelu->forward_temporary.value == 3 * 2 * code_tokens * f);
  CHECK(gelu->backward_temporary.value == 5 * 2 * code_tokens * f);
}

// A block's two norms: beside x, what is centred and what is divided, 2 h in 16 bits each. One
// reads and writes 2 + 8 values forward, by 8 kernels, with 4 values a row, and 5 + 16 + 13
// backward, by 21, with 7; the stream's two gradients are added up by one more, of 3. Without a
// shift an addition of 2 and a sum of 1 are gone, and what the shift is added to.
TEST_CASE("a LayerNorm by operators keeps two tensors more", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  w.model.norms.kind = NormKind::layer;
  w.framework.layers.fused_norms = false;
  CHECK(saved_with(w, {.layer_norm_operators = true}) - saved_by_code(w) == 2 * 2 * 2 * h);
  w.model.code.layer_norm_operators = true;
  const LayerGraph graph = block_graph(w, plan_of(1), {});
  const Operator& norm = graph.operators.front();
  const auto total = [](const std::vector<Kernel>& kernels) {
    std::pair<std::int64_t, int> sum{0, 0};
    for (const Kernel& kernel : kernels) {
      const MemoryWork& work = std::get<MemoryWork>(kernel);
      sum.first += work.moved.value;
      sum.second += work.launches;
    }
    return sum;
  };
  CHECK(total(norm.forward) == std::pair<std::int64_t, int>{2 * code_tokens * (10 * h + 4), 8});

  CHECK(total(norm.backward) == std::pair<std::int64_t, int>{2 * code_tokens * (37 * h + 7), 22});
  w.model.norms.bias = false;
  const LayerGraph bare = block_graph(w, plan_of(1), {});
  const Operator& scaled = bare.operators.front();
  CHECK(total(scaled.forward) == std::pair<std::int64_t, int>{2 * code_tokens * (8 * h + 4), 7});
  CHECK(total(scaled.backward) == std::pair<std::int64_t, int>{2 * code_tokens * (36 * h + 7), 21});
  CHECK(scaled.forward_temporary == Bytes(0));
}

// 8 heads, 256 keys for every token. Of a score dropout keeps a byte of mask and the 16-bit weights
// that it makes, and no 16-bit result that it reads: 1 B more than without, where fp32 stays, and 3
// more where the 16-bit result is the softmax's own.
TEST_CASE("dropout does not keep the 16-bit weights that it reads", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.attention.softmax_in_fp32 = true;
  const std::int64_t scores = 8 * code_tokens;
  const auto more = [&] {
    w.attention_dropout = false;
    const std::int64_t without = saved_by_code(w);
    w.attention_dropout = true;
    return saved_by_code(w) - without;
  };
  CHECK(more() == scores);
  w.framework.attention.softmax_in_fp32 = false;
  CHECK(more() == 3 * scores);
}

// Of 16-bit branches each element is read and written, there and back: 4 bytes.
TEST_CASE("branches that a class scales before they join the stream", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  const auto scaled = [&] {
    std::vector<std::int64_t> bytes;
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
      if (op.name == "scaled_branch")
        for (const auto* pass : {&op.forward, &op.backward})
          bytes.push_back(std::get<MemoryWork>(pass->front()).moved.value);
    return bytes;
  };
  const std::vector<std::int64_t> both(4, 4 * code_tokens * h);
  CHECK(scaled().empty());
  w.model.code.scales_branches = true;
  CHECK(scaled() == both);
  w.framework.layers.kernels = KernelStyle::fused;  // which scale on the way
  CHECK(scaled().empty());
  w.framework.layers.kernels = KernelStyle::eager;
  w.model.code.scales_branches = false;
  w.framework.layers.scales_branches = true;
  CHECK(scaled() == both);
}

// Autocast's LayerNorm of 16-bit queries copies n of them to fp32, 2 + 4 bytes one by one, and
// their gradient back; the stream, which is fp32, is normed as it is.
TEST_CASE("autocast's norm of heads copies them to fp32", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  w.framework.formats.autocast = true;
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  w.framework.layers.runs_transformers = false;
  w.model.qk_norm = QkNorm::head_dim;
  const std::int64_t n = code_tokens * h;
  int of_heads = 0, of_stream = 0;
  for (const Operator& op : block_graph(w, plan_of(1), {}).operators) {
    if (op.name == "attention_norm" || op.name == "mlp_norm") {
      ++of_stream;
      CHECK(op.forward.size() == 1);
      REQUIRE(op.backward.size() == 2);  // its own, and the sum of the stream's two gradients
      CHECK(std::get<MemoryWork>(op.backward.back()).moved == Bytes(3 * 4 * n));
    }
    if (op.name != "qk_norm") continue;
    ++of_heads;
    REQUIRE(op.forward.size() == 2);
    CHECK(std::get<MemoryWork>(op.forward.back()).moved == Bytes(6 * n));
    CHECK(std::get<MemoryWork>(op.forward.back()).singly == n);
    CHECK(std::get<MemoryWork>(op.backward.back()).moved == Bytes(6 * n));
  }
  CHECK(of_heads == 2);
  CHECK(of_stream == 2);
}

// Of 256 x 512 values LayerNorm of PyTorch reads each twice and writes it, 6 bytes in 16 bits;
// backward five values for each, and three that are taken one by one. A framework's own kernel
// reads and writes them once, and reads two and writes one.
TEST_CASE("PyTorch's LayerNorm reads its rows twice", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  const auto norm = [&] { return block_graph(w, plan_of(1), {}).operators.front(); };
  const auto work = [](const std::vector<Kernel>& pass) {
    return std::get<MemoryWork>(pass.front());
  };
  const std::int64_t n = code_tokens * h;
  REQUIRE(norm().name == "attention_norm");
  CHECK(work(norm().forward).moved.value == 6 * n);
  CHECK(work(norm().forward).singly == 0);
  CHECK(work(norm().backward).moved.value == 10 * n);
  CHECK(work(norm().backward).singly == 3 * n);
  w.framework.layers.kernels = KernelStyle::fused;
  CHECK(work(norm().forward).moved.value == 4 * n);
  CHECK(work(norm().backward).moved.value == 6 * n);
  CHECK(work(norm().backward).singly == 0);
}

// Two norms keep 4h in place of 2h for the gradient of a trained weight.
TEST_CASE("norms that weigh in fp32 keep what they weigh in fp32", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  CHECK(saved_with(w, {.wide_norms = true}) - saved_by_code(w) == 2 * 2 * h);
  w.method = Method::lora;
  CHECK(saved_with(w, {.wide_norms = true}) == saved_by_code(w));
}

// 2 experts of width 64 for each token: the second of two kernels keeps silu(gate) of both, 16
// bits, beside the one tensor of gate and up that both keep.
TEST_CASE("eager experts keep the activated gate", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  w.model.moe = MixtureOfExperts{8, 2, 64, 0, false, 0, 1};
  const auto kept = [&] {
    std::vector<std::int64_t> bytes;
    const LayerGraph graph = block_graph(w, plan_of(1), {true, true, false});
    for (const Operator& op : graph.operators)
      if (op.name == "expert_activation")
        for (const TensorIndex t : op.saves)
          bytes.push_back(graph.tensors[static_cast<std::size_t>(t)].bytes / code_tokens);
    return bytes;
  };
  const std::int64_t gate = 2 * 64 * 2, both = 2 * gate;
  CHECK(kept() == std::vector<std::int64_t>{both, gate, both});
  w.framework.layers.kernels = KernelStyle::fused;
  CHECK(kept() == std::vector<std::int64_t>{both});
}

TEST_CASE("families say how their classes are written", "[model_code]") {
  CHECK(config_family("gpt2")->code.mlp == MlpFunction::written_out);
  CHECK(config_family("opt")->code.mlp == MlpFunction::keeps_result);
  CHECK(config_family("bloom")->code.mlp == MlpFunction::computes_again);
  CHECK(config_family("gemma")->code.wide_norms);
  CHECK(config_family("gemma2")->code.caps_scores);
  CHECK(config_family("gpt_bigcode")->code.scripts_softmax);
  CHECK(config_family("granite")->code.scales_branches);
  CHECK(config_family("granitemoehybrid")->code.scales_branches);
  CHECK(config_family("minicpm3")->code.scales_branches);
  CHECK_FALSE(config_family("cohere")->code.scales_branches);
  CHECK(config_family("phi3")->code.fused_qkv);
  CHECK(config_family("llama")->code == ModelCode{});
}

}  // namespace shardwise::model_code
