// What the attention of transformers' own classes keeps and launches where it is written otherwise
// than most: counted with real PyTorch by tests/oracle/explain.py.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/saved_by_code.hpp"

namespace shardwise::model_code {

// 8 heads, 256 keys for every token: 4 B of each score less, but under autocast, which has every
// softmax in fp32.
TEST_CASE("a softmax in the format of its scores keeps no fp32 copy", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.attention.softmax_in_fp32 = true;
  CHECK(saved_by_code(w) - saved_with(w, {.half_softmax = true}) == 8 * code_tokens * 4);
  w.framework.formats.autocast = true;
  CHECK(saved_by_code(w) == saved_with(w, {.half_softmax = true}));
}

// 8 heads, 256 keys for every token. What the first product wrote and what the second reads are
// kept in the format of both, 2 or 4 B of a score each, and dropout's mask of a byte; in backward
// the gradients of both live at once.
TEST_CASE("a compiler keeps of scores what the products write and read", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  w.framework.layers.kernels = KernelStyle::compiled;
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.attention.softmax_in_fp32 = true;
  const std::int64_t scores = 8 * code_tokens * code_tokens;
  const auto check = [&](std::int64_t kept, std::int64_t in_backward) {
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    const auto op = std::find_if(graph.operators.begin(), graph.operators.end(),
                                 [](const Operator& o) { return o.name == "attention"; });
    REQUIRE(op != graph.operators.end());
    std::int64_t bytes = 0;
    for (const TensorIndex t : op->saves)
      if (std::find(op->inputs.begin(), op->inputs.end(), t) == op->inputs.end())
        bytes += graph.tensors[static_cast<std::size_t>(t)].bytes;
    CHECK(bytes == kept * scores);
    CHECK(op->backward_temporary.value == in_backward * scores);
  };
  check(2 + 2, 2 + 2);
  w.attention_dropout = true;
  check(2 + 2 + 1, 2 + 2);
  w.attention_dropout = false;
  w.compute = DType::fp32;
  check(4 + 4, 4 + 4);
}

// 8 heads of 64: 24 products forward where 3 were, of 64 columns; two of the scores for each head.
// Under autocast each of 24 linears reads a 16-bit copy of its own, where 3 did: 2h bytes each.
TEST_CASE("a module for each head multiplies, and casts, for itself", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.layers.runs_transformers = false;
  const ModelCode apart{.stated = true, .heads_apart = true};
  const auto counts = [&](const ModelCode& code) {
    w.model.code = code;
    std::vector<std::int64_t> found{0, 0};  // products of q, k and v; attention's
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
      for (const Kernel& k : op.forward) {
        const auto* gemm = std::get_if<GemmWork>(&k);
        if (gemm != nullptr && (op.name == "q" || op.name == "k" || op.name == "v")) {
          ++found[0];
          CHECK(gemm->n == (code.heads_apart ? 64 : 512));
        }
        if (std::holds_alternative<AttentionWork>(k)) ++found[1];
      }
    return found;
  };
  CHECK(counts({}) == std::vector<std::int64_t>{3, 1});
  CHECK(counts(apart) == std::vector<std::int64_t>{24, 8});
  CHECK(saved_with(w, apart) == saved_with(w, {}));
  w.framework.formats.autocast = true;
  CHECK(saved_with(w, apart) - saved_with(w, {}) == 21 * 2 * h);
  w.framework.formats.autocast = false;
  w.method = Method::lora;
  w.model.code = apart;
  std::vector<std::int64_t> columns;  // of the adapters of q, k, v, o, up and down, all whole
  for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
    if (op.name == "adapter_up")
      for (const Kernel& k : op.forward)
        if (const auto* gemm = std::get_if<GemmWork>(&k)) columns.push_back(gemm->n);
  CHECK(columns == std::vector<std::int64_t>{h, h, h, h, f, h});
}

// Of 8 heads seven launch what one does beside its products: 5 kernels forward and 4 backward,
// with dropout one more, and under autocast two casts.
TEST_CASE("a module for each head launches its scores' kernels for itself", "[model_code]") {
  Workload w = eager_workload(gpt(2, h, 8));
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.layers.runs_transformers = false;
  const auto launches = [&](std::vector<Kernel> Operator::*pass) {
    const auto count = [&](bool heads_apart) {
      w.model.code = {.stated = true, .heads_apart = heads_apart};
      int all = 0;
      for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
        for (const Kernel& k : op.*pass)
          if (const auto* m = std::get_if<MemoryWork>(&k); m != nullptr && op.name == "attention")
            all += m->launches;
      return all;
    };
    return count(true) - count(false);
  };
  CHECK(launches(&Operator::forward) == 7 * 5);
  CHECK(launches(&Operator::backward) == 7 * 4);
  w.attention_dropout = true;
  CHECK(launches(&Operator::forward) == 7 * 6);
  CHECK(launches(&Operator::backward) == 7 * 5);
  w.framework.formats.autocast = true;
  CHECK(launches(&Operator::forward) == 7 * 8);
  CHECK(launches(&Operator::backward) == 7 * 7);
}

// Rotate-half takes 20 bytes of a 16-bit element forward, none of its kernels in order: 4.5
// elements one by one; backward 18 so and 10 in order. flash-attn's kernel on fp32 copies: 6 to
// widen, one by one, 8 for the kernel and 6 to narrow, in each pass. Where scores are stored it
// is not used.
TEST_CASE("a class that rotates by flash-attn's kernel does so on fp32 copies", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  const auto passes = [&](bool flash) {
    w.model.code.flash_rotary = flash;
    std::vector<std::int64_t> found;  // of queries: bytes, and elements taken one by one
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators) {
      if (op.name != "rotary" || !found.empty()) continue;
      for (const auto* pass : {&op.forward, &op.backward}) {
        std::int64_t bytes = 0, singly = 0;
        for (const Kernel& k : *pass) {
          bytes += std::get<MemoryWork>(k).moved.value;
          singly += std::get<MemoryWork>(k).singly;
        }
        found.push_back(bytes);
        found.push_back(singly);
      }
    }
    return found;
  };
  const std::int64_t n = code_tokens * h;
  const std::vector<std::int64_t> half{20 * n, 9 * n / 2, 28 * n, 9 * n / 2};
  CHECK(passes(false) == half);
  CHECK(passes(true) == std::vector<std::int64_t>{20 * n, n, 20 * n, n});
  w.framework.attention.kernel = AttentionKernel::eager;
  CHECK(passes(true) == half);
}

// Neighbours in pairs on fp32 angles, of n 16-bit elements: four products of a half each, which
// read the sectors of the whole, 2 n, and write 2 n, their difference and sum 12 in order, 8 to put
// the halves together and 6 to narrow the result: 42, of which 3 n are taken one by one. Backward 6
// to widen, four products 16, a negated one 4, four casts 12, two sums 6 and 4 each for stack and
// copy: 52, 5.5 n. Chosen by an index, of what autocast's norm left in fp32: 24, 12, 8 and 6
// forward; backward 6, three products and the negation of halves of a whole 24, a product 4, four
// zeros 16, four copies of halves into such sectors 24 and three sums 36: 110, 5.5 n.
TEST_CASE("rotation of neighbours in pairs", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  const auto passes = [&] {
    std::vector<std::int64_t> found;  // of queries: bytes, elements one by one and launches
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators) {
      if (op.name != "rotary" || !found.empty()) continue;
      for (const auto* pass : {&op.forward, &op.backward}) {
        std::int64_t bytes = 0, singly = 0, launches = 0;
        for (const Kernel& k : *pass) {
          bytes += std::get<MemoryWork>(k).moved.value;
          singly += std::get<MemoryWork>(k).singly;
          launches += std::get<MemoryWork>(k).launches;
        }
        found.insert(found.end(), {bytes, singly, launches});
      }
    }
    return found;
  };
  const std::int64_t n = code_tokens * h;
  w.framework.attention.rotary_code = RotaryCode::pairs;
  CHECK(passes() == std::vector<std::int64_t>{42 * n, 3 * n, 8, 52 * n, 11 * n / 2, 14});
  // A framework that gathers a row of sines and one of cosines for each token, 8 heads in n, reads
  // and writes both.
  w.framework.attention.gathers_angles = true;
  CHECK(passes() == std::vector<std::int64_t>{42 * n + n, 3 * n, 10, 52 * n, 11 * n / 2, 14});
  w.framework.attention.gathers_angles = false;
  w.framework.attention.rotary_code = RotaryCode::chosen_pairs;
  w.framework.formats.autocast = true;
  w.model.norms.kind = NormKind::layer;
  w.model.qk_norm = QkNorm::head_dim;
  CHECK(passes() == std::vector<std::int64_t>{50 * n, 3 * n, 8, 110 * n, 11 * n / 2, 17});
  w.framework.layers.kernels = KernelStyle::compiled;
  CHECK(passes().at(2) == 1);
}

TEST_CASE("rotation of neighbours in a framework's kernels is PyTorch's", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.attention.eager_rotary = true;
  w.framework.attention.rotary_code = RotaryCode::pairs;
  int found = 0;
  for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
    if (op.name == "rotary")
      for (const auto* pass : {&op.forward, &op.backward})
        for (const Kernel& k : *pass) {
          CHECK(std::get<MemoryWork>(k).plain);
          ++found;
        }
  CHECK(found == 2 * 5);  // queries and keys: two kinds of kernel forward and three backward
}

// Values that are a view of one projection keep queries and keys of before they were rotated: 2h
// each. Where nothing rotates, the three are parts of one tensor anyhow.
TEST_CASE("values that are a view hold the whole projection", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  CHECK(saved_with(w, {.fused_qkv = true}) - saved_by_code(w) == 2 * 2 * h);
  const Workload learned = eager_workload(gpt(2, h, 8));
  CHECK(saved_with(learned, {.fused_qkv = true}) == saved_by_code(learned));
}

// One projection of q, k and v and one of gate and up cast what they read once, where five did (2h
// each under autocast), and have one adapter each.
TEST_CASE("fused projections cast their input once", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  w.framework.formats.autocast = true;
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  const std::int64_t view = 2 * 2 * h;
  const ModelCode both{.fused_qkv = true, .fused_gate_up = true};
  CHECK(saved_with(w, both) - saved_by_code(w) == view - 3 * 2 * h);
  CHECK(saved_with(w, {.fused_qkv = true}) - saved_by_code(w) == view - 2 * 2 * h);
}

// The tangent of 8 x 256 scores per token, 16 bits each, in the eager kernel only.
TEST_CASE("capped scores keep a tangent", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  CHECK(saved_with(w, {.caps_scores = true}) == saved_by_code(w));
  w.framework.attention.kernel = AttentionKernel::eager;
  CHECK(saved_with(w, {.caps_scores = true}) - saved_by_code(w) == 2 * 8 * code_tokens);
}

// TorchScript's softmax keeps the 8 x 256 scores per token that it reads, in fp32 where it is.
TEST_CASE("a scripted softmax keeps what it reads", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  CHECK(saved_with(w, {.scripts_softmax = true}) == saved_by_code(w));
  w.framework.attention.kernel = AttentionKernel::eager;
  w.framework.attention.softmax_in_fp32 = true;
  CHECK(saved_with(w, {.scripts_softmax = true}) - saved_by_code(w) == 4 * 8 * code_tokens);
  w.framework.attention.softmax_in_fp32 = false;
  CHECK(saved_with(w, {.scripts_softmax = true}) - saved_by_code(w) == 2 * 8 * code_tokens);
}

// Scores that torch.max has read, 8 x 256 per token: 16 bits each, or 32 where the stream is fp32.
TEST_CASE("clamped scores are kept in the format of the mask", "[model_code]") {
  Workload w = eager_workload(llama(2, h, 8, 8, f, 1000));
  CHECK(saved_with(w, {.clamps_scores = true}) == saved_by_code(w));
  w.framework.attention.kernel = AttentionKernel::eager;
  CHECK(saved_with(w, {.clamps_scores = true}) - saved_by_code(w) == 2 * 8 * code_tokens);
  w.framework.formats.autocast = true;
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  CHECK(saved_with(w, {.clamps_scores = true}) - saved_by_code(w) == 4 * 8 * code_tokens);
}

}  // namespace shardwise::model_code
