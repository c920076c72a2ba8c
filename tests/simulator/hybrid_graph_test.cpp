// What the mixers of hybrid models keep: Mamba-2, Gated DeltaNet, gated convolutions.
#include <algorithm>
#include <variant>
#include <vector>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kept_bytes.hpp"
#include "tests/simulator/matmul_flops.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

// mamba_ssm's fused scan keeps the projection's output and its own result before the gate; around
// it the norm's input and output, and what the two linears read. Bytes per token (16 bits):
//   input 2h, normed 2h, projected 2 (2D + 2Gn + H), before the gate 2D, gated 2D, normed 2D.
TEST_CASE("a Mamba-2 layer saves what its fused kernel and linears read", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.model.norms.per_layer = 1;
  w.model.mixers = "M*";
  w.model.mamba = StateSpace{16, 64, 4, 128, 4, 128};  // D 1024, x with B and C 2048
  BlockKind kind;
  kind.mixer = LayerMixer::mamba;
  const std::int64_t tokens = 256, h = 512, inner = 1024, projected = 2 * 1024 + 2 * 4 * 128 + 16;
  CHECK(kept_bytes(block_graph(w, plan_of(1), kind)) ==
        tokens * (2 * h + 2 * h + 2 * projected + 3 * 2 * inner));
  const ParameterCount count = parameter_count(w.model);
  CHECK(block_graph(w, plan_of(1), kind).parameters.base() ==
        count.mamba_per_layer + count.norms_per_layer);

  // C B^T, its product with x, chunk states, and their contribution (section 6 of the paper), per
  // token: 2 (G Q n + D Q + D n + D n) with chunks of Q = 128; backward twice that.
  double forward = 0, backward = 0;
  for (const Operator& op : block_graph(w, plan_of(1), kind).operators) {
    if (op.name != std::string_view("scan")) continue;
    forward = matmul_flops(op.forward);
    backward = matmul_flops(op.backward);
  }
  CHECK(forward == 2.0 * 256 * (4 * 128 * 128 + 1024 * 128 + 2 * 1024 * 128));
  CHECK(backward == 2 * forward);
}

// Two sequences of 256 tokens, a token of each after the other: the projection's 3,088 columns and
// the scan's 1,024 are copied each way, one by one, as the copies are strided. One has no such.
TEST_CASE("Mamba-2 copies a batch of Megatron's one element at a time", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.framework.layers.sequence_first = true;
  w.model.mixers = "M*";
  w.model.mamba = StateSpace{16, 64, 4, 128, 4, 128};
  BlockKind kind;
  kind.mixer = LayerMixer::mamba;
  const auto copied = [&](int microbatch) {
    ParallelPlan plan = plan_of(1);
    plan.microbatch = microbatch;
    std::int64_t elements = 0;
    for (const Operator& op : block_graph(w, plan, kind).operators) {
      if (op.name != std::string_view("scan")) continue;
      for (const auto* pass : {&op.forward, &op.backward})
        for (const Kernel& k : *pass)
          if (const auto* m = std::get_if<MemoryWork>(&k)) elements += m->singly;
    }
    return elements;
  };
  CHECK(copied(1) == 0);
  CHECK(copied(2) == 2 * (2 * 256) * (3088 + 1024));
}

// Megatron Core before 0.18: its stack of mixers knows no checkpoints, whatever it is asked for;
// checkpoints of a model without Mamba are another class's.
TEST_CASE("a stack of mixers that runs nothing again keeps what it would", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
  const auto saved = [&](const char* policy) {
    std::int64_t bytes = 0;
    for (const LayerDefinition& d :
         partition_model(w, plan_of(1), schedule, *recompute_policy(policy)).definitions)
      bytes += d.script.saved_bytes;
    return bytes;
  };
  w.framework.recompute.hybrids = false;
  CHECK(saved("full") < saved("none"));
  w.model.norms.per_layer = 1;
  w.model.mixers = "M*";
  w.model.mamba = StateSpace{16, 64, 4, 128, 4, 128};
  CHECK(saved("full") == saved("none"));
  w.framework.recompute.hybrids = true;
  CHECK(saved("full") < saved("none"));
}

// The classes of transformers hand the gated norm and the projection back to the same function, so
// that neither's result is kept: input 2h and normed 2h aside, projected 2 (2D + 2Gn + H), before
// the gate 2D, and one fp32 statistic for each group. Without a norm, no statistic.
TEST_CASE("transformers' Mamba-2 makes its gated result again", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.layers.fused_norms = true;
  w.framework.layers.runs_transformers = true;
  w.model.norms.per_layer = 1;
  w.model.mixers = "M*";
  w.model.mamba = StateSpace{16, 64, 4, 128, 4, 128};
  BlockKind kind;
  kind.mixer = LayerMixer::mamba;
  const std::int64_t tokens = 256, h = 512, inner = 1024, projected = 2 * 1024 + 2 * 4 * 128 + 16;
  const std::int64_t kept = 2 * h + 2 * h + 2 * projected + 2 * inner;
  CHECK(kept_bytes(block_graph(w, plan_of(1), kind)) == tokens * (kept + 4 * 4));
  const auto parameters = [&] { return block_graph(w, plan_of(1), kind).parameters.base(); };
  const auto counted = [&] {
    const ParameterCount count = parameter_count(w.model);
    return count.mamba_per_layer + count.norms_per_layer;
  };
  CHECK(parameters() == counted());
  w.model.mamba->normed = false;
  CHECK(kept_bytes(block_graph(w, plan_of(1), kind)) == tokens * kept);
  CHECK(parameters() == counted());
}

// In attention's place, a gated convolution keeps its projection 6h, what the convolution reads and
// gives 2h each, and what the projection back reads 2h; attention keeps 4h, 4 h_kv and 4a.
TEST_CASE("a gated convolution saves its projection and three products", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  const std::int64_t attention = kept_bytes(block_graph(w, plan_of(1), {}));
  w.model.mixers = "CA";
  w.model.convolution = GatedConvolution{3};
  BlockKind kind;
  kind.mixer = LayerMixer::convolution_and_mlp;
  const LayerGraph graph = block_graph(w, plan_of(1), kind);
  const std::int64_t tokens = 256, h = 512, kv = 256, a = 8;
  CHECK(kept_bytes(graph) - attention == tokens * (12 * h - (4 * h + 4 * kv + 4 * a)));
  const ParameterCount count = parameter_count(w.model);
  CHECK(graph.parameters.base() ==
        count.convolution_per_layer + count.dense_mlp_per_layer + count.norms_per_layer);
}

// Both mixers read one norm; Mamba adds its projection, its result before and after the gate, and
// the latter's norm; where the classes scale what each reads, two inputs more, and the norm's own
// result is read by nothing (2h), which an eager norm does not keep otherwise.
TEST_CASE("attention beside Mamba-2 adds what the latter keeps", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  const std::int64_t attention = kept_bytes(block_graph(w, plan_of(1), {}));
  w.model.mixers = "BB";
  w.model.mamba = StateSpace{16, 64, 4, 128, 4, 128};
  BlockKind kind;
  kind.mixer = LayerMixer::attention_with_mamba_and_mlp;
  const std::int64_t tokens = 256, inner = 1024, projected = 2 * 1024 + 2 * 4 * 128 + 16;
  const LayerGraph graph = block_graph(w, plan_of(1), kind);
  CHECK(kept_bytes(graph) - attention == tokens * (2 * projected + 3 * 2 * inner));
  const ParameterCount count = parameter_count(w.model);
  CHECK(graph.parameters.base() == count.mamba_per_layer + count.attention_per_layer +
                                       count.dense_mlp_per_layer + count.norms_per_layer);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.layers.runs_transformers = true;
  const std::int64_t plain = kept_bytes(block_graph(w, plan_of(1), kind));
  w.model.code.scaled_inputs = true;
  CHECK(kept_bytes(block_graph(w, plan_of(1), kind)) - plain == tokens * 2 * 512);
}

// flash-linear-attention's chunk_gated_delta_rule keeps normed queries and keys, values, the solved
// triangles of its chunks and the rates; the convolution keeps its input, the gated norm both of
// its inputs. Bytes per token (16 bits), K = 512, V = 1024, 8 value heads, chunks of 64:
//   block input 2h, normed 2h, projected 2 (2K + V), rates 2 x 16, after the convolution
//   2 (2K + V), triangles 2 x 8 x 64, gates 16 x 8, result 2V, gate 2V, gated 2V.
TEST_CASE("a Gated DeltaNet mixer saves what its kernels and linears read", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.framework.layers.kernels = KernelStyle::fused;
  const std::int64_t attention = kept_bytes(block_graph(w, plan_of(1), {}));
  w.model.mixers = "DA";
  w.model.delta = DeltaNet{4, 8, 128, 128, 4, 64};
  BlockKind kind;
  kind.mixer = LayerMixer::delta_and_mlp;
  const LayerGraph graph = block_graph(w, plan_of(1), kind);
  // The rest of the block is that of attention, which keeps 512 each of q and output, 256 each of k
  // and v, and 4 bytes per head.
  const std::int64_t tokens = 256, keys = 512, values = 1024;
  const std::int64_t mixer =
      2 * 2 * (2 * keys + values) + 2 * 16 + 2 * 8 * 64 + 16 * 8 + 3 * 2 * values;
  CHECK(kept_bytes(graph) - attention == tokens * (mixer - (2 * (2 * 512 + 2 * 256) + 4 * 8)));
  const ParameterCount count = parameter_count(w.model);
  CHECK(graph.parameters.base() ==
        count.delta_per_layer + count.dense_mlp_per_layer + count.norms_per_layer);

  // Per token and value head, with chunks of L = 64 and heads of K = V = 128: of the eight products
  // forward, L K twice over L (keys with keys, queries with keys), L K and L V (w, u), L V (scores
  // with values), and three of K V: the states, what they subtract, what they give to the output.
  double forward = 0, backward = 0;
  for (const Operator& op : graph.operators) {
    if (op.name != std::string_view("delta_rule")) continue;
    for (const Kernel& k : op.forward)
      if (const auto* g = std::get_if<GemmWork>(&k))
        forward += 2.0 * static_cast<double>(g->m * g->n * g->k * g->batch);
    for (const Kernel& k : op.backward)
      if (const auto* g = std::get_if<GemmWork>(&k))
        backward += 2.0 * static_cast<double>(g->m * g->n * g->k * g->batch);
  }
  const double token = 2.0 * 256 * 8;
  CHECK(forward == token * (5 * 64 * 128 + 3 * 128 * 128));
  // Again w, u, states and what they subtract; then 20 more: six of K V (gradients of states twice,
  // of values, queries, keys and w), two of L L (of the triangles) and twelve of L K or L V.
  CHECK(backward ==
        token * (2 * 64 * 128 + 2 * 128 * 128 + 12 * 64 * 128 + 6 * 128 * 128 + 2 * 64 * 64));
}

// Without flash-linear-attention transformers runs PyTorch's operators, of which SiLU keeps the
// convolution's result, where its kernels keep as much of queries, keys and values, triangles
// 2 x 8 x 64 and rates 16 x 8. Of 8 heads of 128 in chunks of 64 fp32
// numbers: row by row 7 K + 3 V + 6 C + K V / C and a third of C^2 - 1, and 16-bit keys and queries
// of all value heads; solved at once 8 K + 3 V + 5 C + K V / C, and rates of 34 x 8.
TEST_CASE("a delta rule by operators keeps what each of them reads", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.layers.runs_transformers = true;
  w.model.mixers = "DA";
  w.model.delta = DeltaNet{4, 8, 128, 128, 4, 64};
  BlockKind kind;
  kind.mixer = LayerMixer::delta_and_mlp;
  const auto graph = [&](DeltaRule rule) {
    w.framework.layers.delta_rule = rule;
    return block_graph(w, plan_of(1), kind);
  };
  const LayerGraph kernels = graph(DeltaRule::kernels);
  const LayerGraph by_rows = graph(DeltaRule::row_by_row);
  const std::int64_t tokens = 256, triangles = 2 * 8 * 64;
  const std::int64_t rows = 7 * 128 + 3 * 128 + 6 * 64 + 128 * 128 / 64 + 4095 / 3;
  CHECK(kept_bytes(by_rows) - kept_bytes(kernels) ==
        tokens * (4 * 8 * rows + 2 * 2 * 8 * 128 - triangles));
  const std::int64_t solved = 8 * 128 + 3 * 128 + 5 * 64 + 128 * 128 / 64;
  CHECK(kept_bytes(graph(DeltaRule::solved)) - kept_bytes(kernels) ==
        tokens * (4 * 8 * solved + (34 - 16) * 8 - triangles));
  CHECK(by_rows.parameters.base() == kernels.parameters.base());

  // Backward each chunk moves 272 + 12 K + 6 V numbers of all of them: of 4 chunks, and of 8 of
  // twice the tokens, 256 x 8 heads x (2 x 8 - 2 x 4) times as many beyond twice the work.
  const auto moved = [](const LayerGraph& g) {
    std::int64_t bytes = 0;
    for (const Operator& op : g.operators)
      if (op.name == std::string_view("delta_rule"))
        for (const Kernel& k : op.backward)
          if (const auto* work = std::get_if<MemoryWork>(&k)) bytes += work->moved.value;
    return bytes;
  };
  w.sequence = 512;
  const std::int64_t each = 4 * (272 + 12 * 128 + 6 * 128);
  CHECK(moved(graph(DeltaRule::row_by_row)) - 2 * moved(by_rows) == 256 * 8 * 8 * each);
}

// Operator by operator, the norm behind the delta rule keeps fp32 copies of its input and of the
// gate and the gate's SiLU (4V each), and its normed input and that times the weight (2V each),
// where one kernel keeps its two inputs (2V each). A frozen weight needs no normed input.
TEST_CASE("a gated norm written out keeps fp32 copies", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.framework.layers.kernels = KernelStyle::eager;
  w.model.mixers = "DA";
  w.model.delta = DeltaNet{4, 8, 128, 128, 4, 64};
  BlockKind kind;
  kind.mixer = LayerMixer::delta_and_mlp;
  const std::int64_t tokens = 256, values = 1024;
  const auto kept = [&](bool written_out) {
    w.framework.layers.runs_transformers = written_out;
    return kept_bytes(block_graph(w, plan_of(1), kind));
  };
  CHECK(kept(true) - kept(false) == tokens * (3 * 4 + 2 * 2 - 2 * 2) * values);
  kind.trainable = false;
  CHECK(kept(true) - kept(false) == tokens * (3 * 4 + 2 - 2 * 2) * values);
}

// Kimi Delta Attention, 4 heads of 64 keys and values, through ranks of 64. Bytes per token: what
// all projections read 2h; their result 2 x 768 and the heads' rates 2 x 4, which the rule reads;
// what both low ranks make 2 x 2 x 64; for each of 256 decays the exponential, one more, softplus
// and the product in fp32 and a byte that says which are left as they are, 17, and their sums 4;
// normed queries and keys, values 3 x 2 x 256, triangles and scores 2 x 2 x 4 x 64, sigmoids 4 x 4;
// the norm's two inputs 2 x 2 x 256, what the projection back reads 2 x 256.
TEST_CASE("Kimi's decays of every value are kept in fp32", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  w.model.mixers = "DA";
  w.model.delta = DeltaNet{4, 4, 64, 64, 4, 64, 64};
  BlockKind delta;
  delta.mixer = LayerMixer::delta_and_mlp;
  const ParameterCount count = parameter_count(w.model);
  const LayerGraph graph = block_graph(w, plan_of(1), delta);
  CHECK(graph.parameters.base() ==
        count.delta_per_layer + count.dense_mlp_per_layer + count.norms_per_layer);
  std::int64_t mixer = 0;  // what stands before the MLP's norm
  std::vector<TensorIndex> kept;
  for (const Operator& op : graph.operators) {
    if (op.name == std::string_view("mlp_norm")) break;
    for (const TensorIndex t : op.saves)
      if (std::find(kept.begin(), kept.end(), t) == kept.end()) kept.push_back(t);
  }
  for (const TensorIndex t : kept) {
    const Tensor& tensor = graph.tensors[static_cast<std::size_t>(t)];
    if (t != graph.input && !tensor.statistic) mixer += tensor.bytes;
  }
  CHECK(mixer == 256 * (2 * 512 + 2 * 768 + 2 * 4 + 2 * 2 * 64 + 256 * (17 + 4) + 3 * 2 * 256 +
                        2 * 2 * 4 * 64 + 4 * 4 + 2 * 2 * 256 + 2 * 256));
}

// Mamba-1 as transformers runs it, in attention's place (4h, 4 h_kv and 4a bytes per token): the
// projection 2 x 2D; the convolution's result 2D, and copies of it and of z, 2D each; what steps, B
// and C are read from, 2 (r + 2n), which their norms keep; the norms' results, which a linear reads
// (steps, 2r) or the scan copies (B and C, 2 x 2n); steps 2D, the result before the gate 2D, and
// after it 2D for the projection back; two fp32 numbers for each state, once for up to 2048 tokens
// of a sequence, and two fp32 copies of A.
TEST_CASE("a Mamba-1 mixer saves what its scan and linears read", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  const std::int64_t attention = kept_bytes(block_graph(w, plan_of(1), {}));
  w.model.mixers = "SA";
  w.model.mamba = StateSpace{1024, 1, 1, 16, 4, 2048, true, 32};
  BlockKind kind;
  kind.mixer = LayerMixer::mamba_and_mlp;
  const LayerGraph graph = block_graph(w, plan_of(1), kind);
  const std::int64_t tokens = 256, h = 512, kv = 256, a = 8, inner = 1024, rank = 32, state = 16;
  const std::int64_t read = rank + 2 * state;
  const std::int64_t mixer = 2 * 2 * inner + 6 * 2 * inner + 2 * read + 2 * rank + 2 * 2 * state;
  CHECK(kept_bytes(graph) - attention ==
        tokens * (mixer - (4 * h + 4 * kv + 4 * a)) + (4 * 2 + 8) * inner * state);
  const ParameterCount count = parameter_count(w.model);
  CHECK(graph.parameters.base() ==
        count.mamba_per_layer + count.dense_mlp_per_layer + count.norms_per_layer);
  // h 2D + D (r + 2n) + r D + D h + 5 D + D n + 2 D + r + 2n
  CHECK(count.mamba_per_layer == 3 * h * inner + inner * (read + rank + 5 + state + 2) + read);
}

// Lightning attention by a kernel: the projection 6A, SiLU of it 6A, attention's result 2A and its
// norm 2A, the gate's sigmoid 2A and the product 2A, in attention's place. As the classes of
// transformers run it, the loop keeps besides the decayed scores of each block, 2 a L, decayed
// queries and keys 4A of one block of two, and a state of d x d for each head and block.
TEST_CASE("lightning attention saves its projection, and written out each block", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  const std::int64_t attention = kept_bytes(block_graph(w, plan_of(1), {}));
  w.model.mixers = "LA";
  w.model.lightning = LightningAttention{8, 64, 128};
  BlockKind kind;
  kind.mixer = LayerMixer::lightning_and_mlp;
  const LayerGraph graph = block_graph(w, plan_of(1), kind);
  const std::int64_t tokens = 256, h = 512, kv = 256, a = 8, width = 512;
  CHECK(kept_bytes(graph) - attention == tokens * (20 * width - (4 * h + 4 * kv + 4 * a)));
  const ParameterCount count = parameter_count(w.model);
  CHECK(count.lightning_per_layer == 5 * h * width + width);
  CHECK(graph.parameters.base() ==
        count.lightning_per_layer + count.dense_mlp_per_layer + count.norms_per_layer);
  w.framework.layers.kernels = KernelStyle::eager;
  const std::int64_t kernel = kept_bytes(block_graph(w, plan_of(1), kind));
  w.framework.layers.runs_transformers = true;
  CHECK(kept_bytes(block_graph(w, plan_of(1), kind)) - kernel ==
        tokens * 2 * a * 128 + 128 * 4 * width + 2 * (2 * 8 * 64 * 64));

  // Q K^T, its product with V, Q W and K^T V per token: 2 a d (2 L + 2 d); backward twice that and
  // another K^T V where a kernel makes the states again.
  double forward = 0, backward = 0;
  for (const Operator& op : graph.operators) {
    if (op.name != std::string_view("lightning_attention")) continue;
    forward = matmul_flops(op.forward);
    backward = matmul_flops(op.backward);
  }
  CHECK(forward == 2.0 * tokens * width * (2 * 128 + 2 * 64));
  CHECK(backward == 2 * forward + 2.0 * tokens * width * 64);
}

// A gate of one value per head keeps its sigmoid and the product beside attention's result, which
// the kernel keeps: 2a and 2 x 512 bytes per token.
TEST_CASE("a gate for each head keeps one value of it", "[layer_graph]") {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 256);
  const std::int64_t plain = kept_bytes(block_graph(w, plan_of(1), {}));
  w.model.head_gate = true;
  const LayerGraph graph = block_graph(w, plan_of(1), {});
  CHECK(kept_bytes(graph) - plain == 256 * (2 * 8 + 2 * 512));
  CHECK(graph.parameters.base() == parameter_count(w.model).dense_layer());
}

// Four layers of attention and MLP in NVFP4, 7 matrices each (q, k, v, o and three of a gated MLP).
// The last layer is left in 16 bits, all 7, and of the others the projections of attention, 4.
// Where the products are in MXFP8, none is.
TEST_CASE("a recipe for NVFP4 leaves last layers and attention in 16 bits", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 256);
  w.model.beside_nvfp4 = {1, true, false};
  const auto wide = [&] {
    int found = 0;
    const ModelPartition all =
        partition_model(w, plan_of(1), *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
    for (const ChunkLayer& layer : all.stages[0][0].layers) {
      if (layer.definition->role != LayerRole::block) continue;
      for (const Operator& op : layer.definition->graph.operators)
        for (const Kernel& k : op.forward)
          if (const auto* product = std::get_if<GemmWork>(&k))
            found += product->dtype == DType::bf16 ? 1 : 0;
    }
    return found;
  };
  w.compute = DType::nvfp4;
  CHECK(wide() == 7 + 3 * 4);
  w.model.beside_nvfp4.attention = false;
  CHECK(wide() == 7);
  w.compute = DType::mxfp8;
  CHECK(wide() == 0);
}
