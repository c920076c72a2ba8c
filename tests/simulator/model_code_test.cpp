// What transformers' own classes keep where they are written otherwise than most: counted with real
// PyTorch by tests/oracle/explain.py.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "catalog/huggingface_family.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kept_bytes.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t code_tokens = 256, h = 512, f = 2048;

Workload eager_workload(Transformer model) {
  Workload w = pretraining(std::move(model), code_tokens);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.layers.runs_transformers = true;
  return w;
}

// Bytes per token of one layer from forward to backward.
std::int64_t saved_by_code(const Workload& w, BlockKind kind = {}) {
  return kept_bytes(block_graph(w, plan_of(1), kind)) / code_tokens;
}

std::int64_t saved_with(Workload w, const ModelCode& code) {
  w.model.code = code;
  return saved_by_code(w);
}

}  // namespace

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

}  // namespace shardwise
