#include "simulator/graphs/layer_graph.hpp"

#include <algorithm>

#include "simulator/graphs/layer_script.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/matmul_flops.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

LayerScript script_of(const LayerGraph& graph, const char* policy_name, bool compiled = false) {
  const RecomputePolicy policy = *recompute_policy(policy_name);
  ScriptOptions options;
  options.runs_again = operators_run_again(graph, policy, compiled);
  options.whole_block = policy.row->whole_block;
  options.keeps_results = policy.row->keeps_results;
  return layer_script(graph, options);
}

std::int64_t saved_by_layer(const LayerGraph& graph, const char* policy = "none") {
  const LayerScript s = script_of(graph, policy);
  return s.saved_bytes - s.saved_statistics_bytes;
}

}  // namespace

// 600 tokens in slices of 256 are three of 200, 1000 logits each: 14 bytes of one live at a time,
// or as many as the framework's own loss has.
TEST_CASE("A chunked loss holds one slice of so many tokens", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 600);
  w.framework.loss.kind = LossKind::chunked;
  w.framework.loss.upcasts = true;
  w.framework.loss.slice_tokens = 256;
  const auto live = [&] {
    return head_graph(w, plan_of(1), false).operators.back().forward_temporary;
  };
  CHECK(live() == Bytes(200 * 1000 * 14));
  w.framework.loss.slice_logit_bytes = 16;
  CHECK(live() == Bytes(200 * 1000 * 16));
}

// arXiv 2205.05198, equation 2: with attention scores stored, dropout, no sequence parallelism,
//   bytes per layer = s b h (10 + 24/t + 5 a s / (h t))
// (norm statistics, which the paper neglects, are left out here as well).
TEST_CASE("a GPT block saves Megatron's 10 + 24/t + 5as/ht bytes", "[layer_graph]") {
  for (const int t : {1, 2, 4, 8}) {
    Workload w = pretraining(gpt(4, 1024, 16), 512);
    w.hidden_dropout = w.attention_dropout = true;
    w.framework.attention.kernel = AttentionKernel::eager;
    ParallelPlan p = plan_of(1, t);
    p.microbatch = 3;
    const std::int64_t s = 512, b = 3, h = 1024, a = 16;
    const std::int64_t expected = 10 * s * b * h + 24 * s * b * h / t + 5 * a * s * s * b / t;
    CHECK(saved_by_layer(block_graph(w, p, {})) == expected);
  }
}

// Same paper, equation 4: with sequence parallelism everything is cut: s b h / t (34 + 5as/h).
TEST_CASE("sequence parallelism divides all of it by t", "[layer_graph]") {
  for (const int t : {2, 4}) {
    Workload w = pretraining(gpt(4, 1024, 16), 512);
    w.hidden_dropout = w.attention_dropout = true;
    w.framework.attention.kernel = AttentionKernel::eager;
    ParallelPlan p = plan_of(1, t);
    p.sequence_parallel = true;
    const std::int64_t s = 512, h = 1024, a = 16;
    const std::int64_t expected = (34 * s * h + 5 * a * s * s) / t;
    CHECK(saved_by_layer(block_graph(w, p, {})) == expected);
  }
}

// Same paper, section 5: selective recomputation keeps everything but the 5as/h of the scores;
// full recomputation keeps the block's input, 2sbh.
TEST_CASE("recomputation keeps what its paper says", "[layer_graph]") {
  Workload w = pretraining(gpt(4, 1024, 16), 512);
  w.hidden_dropout = w.attention_dropout = true;
  w.framework.attention.kernel = AttentionKernel::eager;
  const ParallelPlan p = plan_of(1);
  const LayerGraph graph = block_graph(w, p, {});
  CHECK(saved_by_layer(graph, "selective") == 34 * 512 * 1024);
  CHECK(saved_by_layer(graph, "full") == 2 * 512 * 1024);
}

// torch.compile makes no matmul's and no attention's input again, so that a compiled block keeps
// what fused kernels keep: per token 12h + 4h_kv + 6f bytes, and 4 for each head. Where keys and
// values are repeated for all heads, attention reads the repeated ones: 4h for the 4h_kv.
TEST_CASE("a compiled block keeps what matmuls and attention read", "[layer_graph]") {
  Workload w = pretraining(llama(2, 1024, 16, 4, 2816, 32000), 256);
  w.framework.layers.kernels = KernelStyle::compiled;
  const std::int64_t tokens = 256, h = 1024, kv = 256, f = 2816, a = 16;
  const auto kept = [&] {
    const LayerScript s = script_of(block_graph(w, plan_of(1), {}), "none", true);
    return s.saved_bytes - s.saved_statistics_bytes;
  };
  CHECK(kept() == tokens * (12 * h + 4 * kv + 6 * f + 4 * a));
  w.framework.attention.repeats_kv = true;
  CHECK(kept() == tokens * (12 * h + 4 * h + 6 * f + 4 * a));
}

// A Llama block with flash attention and fused kernels, bytes per token (16 bits):
//   input 2h, normed 2h, q 2h, k and v 4 h_kv, attention 2h, log-sum-exp 4a, second residual 2h,
//   normed 2h, gate and up 4f, product 2f.
TEST_CASE("a Llama block saves 12h + 4h_kv + 6f + 4a bytes per token", "[layer_graph]") {
  Workload w = pretraining(llama(2, 1024, 16, 4, 2816, 32000), 256);
  const std::int64_t tokens = 256, h = 1024, kv = 256, f = 2816, a = 16;
  CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) ==
        tokens * (12 * h + 4 * kv + 6 * f + 4 * a));

  SECTION("eager SwiGLU keeps silu(gate): 2f more; eager RMSNorm 6h more each in place of x") {
    // Each eager norm keeps fp32 x (4h) and the normalised tensor (2h), and not x itself; the
    // block's input and the second residual (2h each) are then not needed by backward.
    w.framework.layers.kernels = KernelStyle::eager;
    CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) ==
          tokens * (12 * h + 4 * kv + 6 * f + 4 * a + 2 * f + 2 * 6 * h - 2 * 2 * h));
  }
  SECTION("scripted dropout keeps a mask of a byte for each of two branches, whatever its rate") {
    w.framework.layers.keeps_dropout_masks = true;
    CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) ==
          tokens * (12 * h + 4 * kv + 6 * f + 4 * a + 2 * h));
  }
  SECTION("a transposed output is kept twice, by attention and by what follows: 2h more") {
    w.framework.attention.transposes = true;
    const std::int64_t usual = 12 * h + 4 * kv + 6 * f + 4 * a;
    CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) ==
          tokens * usual);  // one sequence: no copy
    ParallelPlan two = plan_of(1);
    two.microbatch = 2;
    CHECK(saved_by_layer(block_graph(w, two, {})) == 2 * tokens * (usual + 2 * h));
  }
  SECTION("rotation by PyTorch's own operators moves more and keeps nothing") {
    w.framework.attention.eager_rotary = true;
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    CHECK(saved_by_layer(graph) == tokens * (12 * h + 4 * kv + 6 * f + 4 * a));
    std::int64_t moved = 0;
    for (const Operator& op : graph.operators)
      if (op.name == "rotary") moved += std::get<MemoryWork>(op.forward.front()).moved.value;
    CHECK(moved == tokens * (h + kv) * 20);
  }
  SECTION("frozen linears keep no inputs, so LoRA without adapters on a block keeps less") {
    // Without base gradients the inputs of q, k, v, gate, up (2h + 2h), o (needed by attention's
    // own backward, so still there) and down (2f) are not kept.
    w.method = Method::lora;
    w.adapter.targets = {false, false, false, false, false, false, false, false, false};
    CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) ==
          tokens * (12 * h + 4 * kv + 6 * f + 4 * a - 4 * h - 2 * f));
  }
}

// Adapters of rank r on q, in fp32: a copy of the input (4h) and the low-rank product (4r). Where
// the input is shared or not read, the product has 16 bits (2r), and the input 2h or nothing.
TEST_CASE("an adapter copies its linear's input, shares it or leaves it", "[layer_graph]") {
  Workload w = pretraining(llama(2, 1024, 16, 4, 2816, 32000), 256);
  w.method = Method::lora;
  w.framework.adapters.dtype = DType::fp32;
  w.adapter.rank = 8;
  w.adapter.targets = {true, false, false, false, false, false, false, false, false};
  const auto kept = [&](AdapterInput input) {
    w.adapter.input = input;
    return saved_by_layer(block_graph(w, plan_of(1), {}));
  };
  const std::int64_t tokens = 256, h = 1024, r = 8;
  const std::int64_t nothing = kept(AdapterInput::unread);
  CHECK(kept(AdapterInput::shared) == nothing + tokens * 2 * h);
  CHECK(kept(AdapterInput::copied) == nothing + tokens * (4 * h + 2 * r));
  // Gathered in 16 bits, an fp32 adapter reads what its linear reads: nothing is copied.
  const std::int64_t shared = kept(AdapterInput::shared);
  w.adapter.input = AdapterInput::copied;
  ParallelPlan sharded = plan_of(2);
  sharded.zero_stage = 3;
  w.framework.formats.finetune_weights = WeightRecipe::fp32_with_half_compute;
  CHECK(saved_by_layer(block_graph(w, sharded, {})) == shared);
  // On one rank too, if FSDP wraps it.
  CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) != shared);
  w.framework.sharding.wraps_one_rank = true;
  CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) == shared);
}

// Where linear and adapter are one function, 16-bit tensors per token: block input and the second
// norm's h each, both norms' results h each, q and attention's result h each, k and v h/4 each,
// gate and up f each; their product is made again in backward, over its own gradient.
// PEFT's adapters keep copies instead: three of the first norm's result and two of the second's,
// one of attention's and one of the product of gate and up; and seven products with A.
TEST_CASE("a fused adapter keeps its linear's input only, a fused MLP gate and up",
          "[layer_graph]") {
  Workload w = pretraining(llama(2, 1024, 16, 4, 2816, 32000), 256);
  w.method = Method::lora;
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.formats.autocast = true;
  w.framework.adapters.dtype = DType::fp32;
  w.adapter.rank = 8;
  const std::int64_t tokens = 256, h = 1024, f = 2816, heads = 16;
  w.framework.adapters.fused = true;
  const LayerGraph fused = block_graph(w, plan_of(1), {});
  const std::int64_t lse = 4 * heads * tokens;
  CHECK(saved_by_layer(fused) - lse == tokens * 2 * (6 * h + h / 2 + 2 * f));
  w.adapter.dropout = 0.05;  // PEFT's modules then
  CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) > saved_by_layer(fused));
  w.adapter.dropout = 0;
  w.framework.adapters.fused = false;
  const LayerGraph separate = block_graph(w, plan_of(1), {});
  CHECK(separate.parameters.adapter == fused.parameters.adapter);
  CHECK(saved_by_layer(separate) - saved_by_layer(fused) == tokens * 2 * (4 * h + f + 7 * 8));
}

// A fused norm keeps its input (2); operators keep it in fp32 and the normalised tensor (4 + 2).
TEST_CASE("norms of heads that a plugin misses are operators among fused kernels",
          "[layer_graph]") {
  Workload w = pretraining(llama(2, 1024, 16, 4, 2816, 32000), 256);
  w.model.qk_norm = QkNorm::head_dim;
  w.framework.layers.kernels = KernelStyle::fused;
  const std::int64_t fused = saved_by_layer(block_graph(w, plan_of(1), {}));
  w.framework.layers.runs_transformers = w.framework.layers.patches_built_model = true;
  CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) == fused);
  w.model.code.keeps_head_norms = true;
  const std::int64_t tokens = 256, heads = 16, kv_heads = 4, width = 64;
  CHECK(saved_by_layer(block_graph(w, plan_of(1), {})) ==
        fused + 4 * tokens * (heads + kv_heads) * width);
}

TEST_CASE("layer parameters on one rank sum to the model's", "[layer_graph]") {
  Transformer normed = llama(4, 512, 8, 2, 1408, 1000), each = normed;
  normed.qk_norm = QkNorm::head_dim;  // one weight of 64 for all queries, one for all keys
  each.qk_norm = QkNorm::per_head;
  for (const Transformer& m :
       {gpt(6, 512, 8, 1000), llama(4, 512, 8, 2, 1408, 1000), normed, each}) {
    const Workload w = pretraining(m, 128);
    const ParameterCount count = parameter_count(m);
    const ParallelPlan p = plan_of(1);
    const LayerGraph block = block_graph(w, p, {});
    CHECK(block.parameters.base() == count.dense_layer());
    CHECK(embedding_graph(w, p).parameters.base() == count.embedding + count.positions);
    CHECK(head_graph(w, p, false).parameters.base() == count.final_norm + count.lm_head);
  }
}

TEST_CASE("every weight that is trained has a gradient, positions too", "[layer_graph]") {
  const Workload w = pretraining(gpt(6, 512, 8, 1000), 128);
  for (const LayerGraph& g : {embedding_graph(w, plan_of(1)), block_graph(w, plan_of(1), {})}) {
    std::int64_t graded = 0;
    for (const Operator& op : g.operators) graded += op.weight_gradient_elements;
    CHECK(graded == g.parameters.base());
  }
}

TEST_CASE("tensor parallelism cuts the matrices and keeps the norms", "[layer_graph]") {
  const Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  const LayerGraph whole = block_graph(w, plan_of(1), {});
  const LayerGraph cut = block_graph(w, plan_of(1, 4), {});
  CHECK(cut.parameters.linear * 4 == whole.parameters.linear);
  CHECK(cut.parameters.other == whole.parameters.other);  // two norms of h
}

// A LoRA pair of rank r on a linear in x out holds r (in + out) parameters (arXiv 2106.09685).
TEST_CASE("adapters are counted on every target", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::lora;
  w.adapter.rank = 16;
  const std::int64_t h = 512, kv = 256, f = 1408;
  const std::int64_t all = 16 * ((h + h) * 2 + (h + kv) * 2 + (h + f) * 3);
  CHECK(block_graph(w, plan_of(1), {}).parameters.adapter == all);
  w.adapter.targets = {true, false, true, false, false, false, false, false, false};
  CHECK(block_graph(w, plan_of(1), {}).parameters.adapter == 16 * ((h + h) + (h + kv)));
}

// Every backward matmul is two of the forward's size: FLOPs 2 : 4, frozen weights 2 : 2.
TEST_CASE("backward does twice the forward's matmul work, frozen once", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  for (const bool frozen : {false, true}) {
    const LayerGraph graph = block_graph(w, plan_of(1), {false, !frozen, false});
    double forward = 0, input = 0, weight = 0;
    for (const Operator& op : graph.operators) {
      forward += matmul_flops(op.forward);
      input += matmul_flops(op.backward);
      weight += matmul_flops(op.backward_weight);
    }
    // 2 FLOPs per weight and token.
    CHECK(forward == 2.0 * 128 * static_cast<double>(graph.parameters.linear));
    CHECK(input == forward);
    CHECK(weight == (frozen ? 0.0 : forward));
  }
}

TEST_CASE("a head that is quantised, and one that carries an adapter", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  w.framework.quantized.head = true;
  w.framework.quantized.dequantized_copies = 2;
  LayerGraph head = head_graph(w, plan_of(1), false);
  CHECK(head.parameters.linear == 512 * 1000);
  CHECK(head.parameters.other == 512);  // the final norm
  std::int64_t unpacked = 0;
  for (const Operator& op : head.operators)
    if (op.name == std::string_view("lm_head")) unpacked = op.forward_temporary.value;
  CHECK(unpacked == 2 * (2 * 512 * 1000));  // two copies of 16 bits
  w.adapter.targets.lm_head = true;
  w.adapter.rank = 8;
  w.framework.adapters.on_head = true;
  CHECK_FALSE(w.trains_head());
  head = head_graph(w, plan_of(1), false);
  CHECK(head.parameters.adapter == 8 * (512 + 1000));
}

// Seven matrices and two norms; an adapter on each matrix adds its A and B.
TEST_CASE("modules that hold parameters", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  CHECK(block_graph(w, plan_of(1), {}).parameters.modules == 7 + 2);
  w.method = Method::lora;
  w.adapter.targets = {true, true, true, true, true, true, true, false, false};
  CHECK(block_graph(w, plan_of(1), {}).parameters.modules == 7 + 2 + 2 * 7);
}

// AutoGPTQ unpacks by operators and multiplies by PyTorch's own matmul: autograd keeps the unpacked
// 16-bit weight for backward, which unpacks nothing; NF4 is unpacked in both passes and not kept.
TEST_CASE("GPTQ's unpacked weights live until backward", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  const LayerGraph nf4 = block_graph(w, plan_of(1), {});
  w.adapter.base = Quantization::gptq;
  const LayerGraph gptq = block_graph(w, plan_of(1), {});
  // q and o 512 x 512, k and v 512 x 256, gate, up and down 512 x 1408; 2 bytes each.
  const std::int64_t matrices = 512 * (2 * 512 + 2 * 256 + 3 * 1408);
  CHECK(saved_by_layer(gptq) - saved_by_layer(nf4) == 2 * matrices);
  for (std::size_t i = 0; i < nf4.operators.size(); ++i) {
    const Operator &a = nf4.operators[i], &b = gptq.operators[i];
    if (a.temporary_category != MemoryCategory::quantization) continue;
    CHECK(a.backward_temporary.value > 0);
    CHECK(b.backward_temporary.value == 0);
    CHECK(b.backward.size() + 1 == a.backward.size());
  }
}

// 128 tokens, 512 wide: fp32 behind norms that were made fp32, if bitsandbytes has the weights and
// they are not cut; without autocast what linears hand on inside the block is fp32 as well.
TEST_CASE("QLoRA's residual stream is fp32 behind fp32 norms", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  const auto input = [&](const ParallelPlan& plan) {
    return block_graph(w, plan, {}).tensors.front().bytes;
  };
  const auto context = [&] {  // what attention gives, heads together
    const LayerGraph block = block_graph(w, plan_of(1), {});
    for (const Operator& op : block.operators)
      if (op.kind == OperatorKind::attention)
        return block.tensors[static_cast<std::size_t>(op.outputs.front())].bytes;
    return std::int64_t{0};
  };
  ParallelPlan sharded = plan_of(4);
  sharded.zero_stage = 3;
  w.framework.quantized.upcasts_unquantized = false;
  CHECK(input(plan_of(1)) == 2 * 128 * 512);
  w.framework.quantized.upcasts_unquantized = true;
  CHECK(input(plan_of(1)) == 4 * 128 * 512);
  CHECK(input(sharded) == 2 * 128 * 512);
  w.framework.formats.autocast = true;
  CHECK(context() == 2 * 128 * 512);
  w.framework.formats.autocast = false;
  CHECK(context() == 4 * 128 * 512);
  // Attention multiplies fp32; o copies what it reads to 16 bits and its result back: 6 B each.
  std::int64_t single = 0, copies = 0;
  const LayerGraph block = block_graph(w, plan_of(1), {});
  for (const Operator& op : block.operators)
    for (const Kernel& k : op.forward) {
      if (const auto* attention = std::get_if<AttentionWork>(&k))
        single += attention->fp32_operands;
      const auto* m = std::get_if<MemoryWork>(&k);
      copies += m && op.name == "o" && m->moved.value == 6 * 128 * (512 + 512);
    }
  CHECK(single == 1);
  CHECK(copies == 1);
  w.adapter.base = Quantization::gptq;
  CHECK(input(plan_of(1)) == 2 * 128 * 512);
}

// 4 heads, 64 x 64 scores. fp32 come the gradient of PyTorch's softmax, its product with the result
// and the gradient that goes on: 12 B, of which bf16 had 2 B before in the copy that is gone by
// then; fp16 gets its 2 B at once.
TEST_CASE("an eager softmax in fp32 multiplies its gradient first", "[layer_graph]") {
  Workload w = pretraining(llama(1, 256, 4, 4, 512, 1000), 64);
  w.framework.attention.kernel = AttentionKernel::eager;
  const std::int64_t scores = 4 * 64 * 64;
  const auto beside = [&] {
    const LayerGraph block = block_graph(w, plan_of(1), {});
    for (const Operator& op : block.operators)
      if (op.kind == OperatorKind::attention) return op.backward_temporary;
    return Bytes(-1);
  };
  CHECK(beside() == Bytes(4 * scores));
  w.framework.attention.softmax_in_fp32 = true;
  CHECK(beside() == Bytes(10 * scores));
  w.compute = DType::fp16;
  CHECK(beside() == Bytes(8 * scores));
  w.compute = DType::fp32;
  CHECK(beside() == Bytes(12 * scores));
}

TEST_CASE("attention with an output gate keeps the gate and what it scales", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.framework.layers.kernels = KernelStyle::fused;
  const LayerGraph plain = block_graph(w, plan_of(1), {});
  w.model.attention_gate = true;
  const LayerGraph gated = block_graph(w, plan_of(1), {});
  // One fused kernel reads the gate and the output, 512 values of 16 bits per token each; the
  // output is kept by attention anyhow, its product is what the last linear reads.
  CHECK(saved_by_layer(gated) - saved_by_layer(plain) == 256 * 2 * (512 + 512));
  CHECK(gated.parameters.base() - plain.parameters.base() == 512 * 512);
}

// 8 experts of width 64 on two ranks, gate and up in one: 4 pairs on [512, 128] and on [64, 512].
TEST_CASE("adapters are on every routed expert where the framework puts them there",
          "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::lora;
  w.adapter.rank = 16;
  w.model.moe = MixtureOfExperts{8, 2, 64, 0, false, 0, 1};
  ParallelPlan plan = plan_of(2);
  plan.expert = 2;
  const BlockKind kind{true, true, false};
  CHECK(block_graph(w, plan, kind).parameters.expert_adapter == 0);
  w.framework.adapters.on_experts = true;
  const LayerGraph adapted = block_graph(w, plan, kind);
  CHECK(adapted.parameters.expert_adapter == 4 * 16 * ((512 + 128) + (64 + 512)));
  const std::int64_t attention = 16 * ((512 + 512) * 2 + (512 + 256) * 2);
  CHECK(adapted.parameters.adapter == attention);
}

TEST_CASE("experts keep what their gradients read, in 8 bits where they compute in 8",
          "[layer_graph]") {
  // 128 tokens, top 2 of 8 experts of width 64: 256 routed rows.
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.layers.kernels = KernelStyle::fused;
  const std::int64_t dense = script_of(block_graph(w, plan_of(1), {}), "none").saved_bytes;
  w.model.moe = MixtureOfExperts{8, 2, 64, 0, false, 0, 1};
  const BlockKind kind{true, true, false};
  const auto experts = [&] {
    return script_of(block_graph(w, plan_of(1), kind), "none").saved_bytes;
  };
  // The dense MLP keeps gate, up and their product (3 x 1408); the experts the sent rows (512),
  // gate and up in one (128) and the product (64), 2 bytes each, 8 scores per token, and per token
  // and expert what routing keeps: fp32 scores (4), two int32 rows (8) and a boolean (1).
  CHECK(experts() - dense == 256 * (512 + 128 + 64) * 2 + 128 * 8 * (2 + 13) - 128 * 3 * 1408 * 2);
  const auto weighed = [&] {
    for (const Operator& op : block_graph(w, plan_of(1), kind).operators)
      if (op.name == std::string_view("weighted_sum")) return op.saves.size();
    return std::size_t{0};
  };
  CHECK(weighed() == 1);  // the scores
  w.framework.layers.kernels = KernelStyle::eager;
  CHECK(weighed() == 2);  // and the experts' results
}

// Memory traffic of an operator's kernels, in bytes.
TEST_CASE("the eager attention path copies and drops out beside its scores", "[layer_graph]") {
  const auto moved = [](const std::vector<Kernel>& kernels) {
    std::int64_t sum = 0;
    for (const Kernel& k : kernels)
      if (const auto* m = std::get_if<MemoryWork>(&k)) sum += m->moved.value;
    return sum;
  };
  Workload w = pretraining(gpt(2, 512, 8), 128);
  w.framework.attention.kernel = AttentionKernel::eager;
  for (const bool dropout : {false, true}) {
    w.attention_dropout = dropout;
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    for (const Operator& op : graph.operators) {
      if (op.name != "attention") continue;
      // 128 tokens x 512 of context, read and written in 2 bytes: 4 x 65,536. Backward the same
      // and the three gradients of q, k and v. Dropout: 8 heads x 128 x 128 scores of 2 + 2 + 1.
      const std::int64_t context = 4 * 65'536, scores = dropout ? 5 * 131'072 : 0;
      CHECK(moved(op.forward) == context + scores);
      CHECK(moved(op.backward) == 4 * context + scores);
    }
  }
}

TEST_CASE("a bias's gradient is a sum of its own unless the weight's product makes it",
          "[layer_graph]") {
  Workload w = pretraining(gpt(2, 512, 8), 128);
  for (const bool fused : {false, true}) {
    w.framework.gradients.fusion = fused;
    const LayerGraph graph = block_graph(w, plan_of(1), {});
    std::int64_t reduced = 0;
    for (const Operator& op : graph.operators)
      for (const Kernel& k : op.backward_weight)
        if (const auto* m = std::get_if<MemoryWork>(&k); m && m->access == MemoryAccess::reduction)
          reduced += m->moved.value;
    // Outputs of q, k, v, o (512 each), up (2048) and down (512), 128 tokens, 2 bytes.
    CHECK(reduced == (fused ? 0 : 128 * 2 * (5 * 512 + 2048)));
  }
}
