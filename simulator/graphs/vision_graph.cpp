#include "simulator/graphs/vision_graph.hpp"

#include <algorithm>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/layer_script.hpp"

namespace shardwise {
namespace {

// The tower as the model of a workload of its own: sequences of `patches` that all see each other,
// `images` to a sample.
Workload tower_workload(const Workload& w, std::int64_t patches, std::int64_t images) {
  const VisionTower& v = *w.model.vision;
  Workload tower = w;
  Transformer m;
  m.layers = v.layers;
  m.hidden = v.hidden;
  m.heads = m.kv_heads = v.heads;
  m.head_dim = v.head_dim();
  m.ffn = v.ffn;
  m.gated_mlp = v.gated_mlp;
  m.norms = {v.rms_norms ? NormKind::rms : NormKind::layer, 2, !v.rms_norms};
  m.biases.qkv = m.biases.o = m.biases.mlp = true;
  m.position = v.position_rows > 0 ? PositionKind::learned : PositionKind::rope;
  m.code.fused_qkv = true;
  tower.model = std::move(m);
  tower.adapter.targets = {false, false, false, false, false, false, false, false, false};
  tower.sequence = static_cast<int>(patches);
  tower.sequences_per_sample = static_cast<int>(images);
  tower.causal = false;
  tower.hidden_dropout = tower.attention_dropout = false;
  if (tower.adapter.base == Quantization::gptq) tower.adapter.base = Quantization::none;
  return tower;
}

ParallelPlan whole_on_each_rank(ParallelPlan plan) {
  plan.tensor = plan.context = 1;
  plan.sequence_parallel = false;
  return plan;
}

// The classes rotate in fp32 (modeling_qwen2_5_vl.py, apply_rotary_pos_emb_vision: float(), and
// what the sum of two products takes): of an element 22 bytes at once beside what is counted, and
// 30 more moved by copies to and from fp32 and operands of twice the width.
void rotate_in_fp32(const Workload& w, std::int64_t elements, LayerGraph& graph) {
  if (w.framework.layers.kernels != KernelStyle::eager || !w.framework.layers.runs_transformers)
    return;
  for (Operator& op : graph.operators) {
    if (op.name != "rotary") continue;
    op.forward_temporary = Bytes(22 * elements);
    op.forward.push_back(MemoryWork{Bytes(30 * elements), 3});
  }
}

// One graph of the tower's, from the tensor that the one before hands over.
class Tower {
 public:
  Tower(const Workload& w, const ParallelPlan& plan)
      : v_(*w.model.vision),
        images_(std::int64_t{std::max(w.images.images, 1)} * w.sequences_per_sample),
        patches_(std::int64_t{w.images.tokens} * v_.patches_per_token),
        plan_(whole_on_each_rank(plan)),
        whole_(tower_workload(w, patches_, images_)),
        windows_(tower_workload(w, window(), images_ * patches_ / window())) {}

  LayerGraph all() const {
    LayerGraph graph = patches();
    const LayerGraph sees_all = block(whole_), sees_window = block(windows_);
    for (int i = 0; i < v_.layers; ++i) {
      const bool all = v_.window_patches == 0 || i < v_.global_layers;
      graph = joined(std::move(graph), all ? sees_all : sees_window);
    }
    for (int i = 0; i <= v_.deeper_mergers; ++i) graph = joined(std::move(graph), projector(i));
    return graph;
  }

 private:
  LayerGraph block(const Workload& w) const {
    LayerGraph graph = block_graph(w, plan_, {.trainable = false});
    rotate_in_fp32(whole_, rows() * v_.hidden, graph);
    return graph;
  }
  std::int64_t window() const {
    return v_.window_patches > 0 ? std::min<std::int64_t>(v_.window_patches, patches_) : patches_;
  }
  std::int64_t rows() const { return plan_.microbatch * images_ * patches_; }

  // The convolution is a product of each patch's pixels.
  LayerGraph patches() const {
    GraphBuilder b(whole_, plan_, false);
    const TensorIndex pixels = b.input(rows() * v_.patch_values);
    TensorIndex x = b.linear({.name = "patches",
                              .in = v_.patch_values,
                              .out = v_.hidden,
                              .bias = v_.patch_bias,
                              .quantizable = false},
                             pixels, rows());
    if (v_.position_rows > 0) {
      const auto n = static_cast<double>(rows() * v_.hidden * b.element());
      b.count_other(std::int64_t{v_.position_rows} * v_.hidden);
      x = b.pointwise("positions", {x}, {}, rows() * v_.hidden, 3 * n, 0, 1);
    }
    return b.finish(x);
  }

  // Merged tokens; deeper ones (`depth` > 0) read layers between, here the tensor before them.
  LayerGraph projector(int depth) const {
    GraphBuilder b(whole_, plan_, false);
    const std::int64_t tokens = rows() / v_.patches_per_token;
    const std::int64_t together = std::int64_t{v_.patches_per_token} * v_.hidden;
    TensorIndex x = b.input(depth == 0 ? rows() * v_.hidden : tokens * v_.text_hidden);
    const auto bytes = [&](std::int64_t n) { return static_cast<double>(n * b.element()); };
    if (v_.pools) {
      if (v_.final_norm) x = b.norm("tower_norm", x, rows(), v_.hidden);
      x = b.pointwise("pool", {x}, {}, tokens * v_.hidden,
                      bytes(rows() * v_.hidden) + bytes(tokens * v_.hidden), 0, 1);
      x = b.pointwise("projector_norm", {x}, {}, tokens * v_.hidden, 2 * bytes(tokens * v_.hidden),
                      0, 1);
      b.count_other(v_.hidden);
      return b.finish(b.linear({"projector", v_.hidden, v_.text_hidden}, x, tokens));
    }
    const std::int64_t normed = depth == 0 ? v_.hidden : together;
    x = b.norm("merger_norm", x, tokens * together / normed, normed);
    x = b.linear({"merger_in", together, together, Cut::none, true}, x, tokens);
    x = b.pointwise("merger_activation", {x}, {}, tokens * together, 2 * bytes(tokens * together),
                    0, 1);
    return b.finish(b.linear({"merger_out", together, v_.text_hidden, Cut::none, true}, x, tokens));
  }

  const VisionTower& v_;
  const std::int64_t images_, patches_;
  const ParallelPlan plan_;
  const Workload whole_, windows_;
};

// Forward alone: nothing is saved, nothing has a gradient.
void drop_backward(LayerGraph& graph) {
  for (Operator& op : graph.operators) {
    op.saves.clear();
    op.backward.clear();
    op.backward_weight.clear();
    op.backward_temporary = {};
    op.weight_gradient_elements = 0;
    op.passes_gradient = op.in_place_gradient = false;
  }
  for (Tensor& t : graph.tensors) {
    t.gradient_bytes = 0;
    t.outlives = false;
    t.category = MemoryCategory::temporaries;
  }
}

// Where images stood in for tokens, their features take the embeddings' place in a new tensor
// (modeling_qwen2_5_vl.py, masked_scatter).
void add_image_tokens(LayerGraph& graph, std::int64_t bytes) {
  const TensorIndex features = graph.output;
  const auto add = [&](std::string_view name) {
    graph.tensors.push_back({name, bytes, MemoryCategory::activations, bytes});
    return static_cast<TensorIndex>(graph.tensors.size()) - 1;
  };
  graph.input = add("input");
  graph.output = add("image_tokens");
  Operator op;
  op.name = "image_tokens";
  op.inputs = {graph.input, features};
  op.outputs = {graph.output};
  const auto moved = 2 * static_cast<double>(bytes);
  op.forward = {MemoryWork{ceil_bytes(moved), 2, MemoryAccess::gather}};
  op.backward = {MemoryWork{ceil_bytes(moved), 1}};
  graph.operators.push_back(std::move(op));
}

// GPTQ packs the decoder's blocks alone (AutoGPTQ auto_gptq/modeling/qwen.py: transformer.visual is
// one of outside_layer_modules).
void leave_unquantized(LayerParameters& p) {
  p.other += std::exchange(p.linear, 0);
  p.linear_sides = {};
}

}  // namespace

LayerGraph vision_graph(const Workload& w, const ParallelPlan& plan) {
  const GraphBuilder stream(w, plan, false);
  const std::int64_t bytes = stream.sequence_tokens() * w.model.hidden * stream.stream_element();
  LayerGraph graph = Tower(w, plan).all();
  if (w.adapter.base == Quantization::gptq) leave_unquantized(graph.parameters);
  if (w.images.images == 0) {
    graph.operators.clear();
    graph.tensors = {{"input", bytes, MemoryCategory::activations, bytes}};
    graph.input = graph.output = 0;
    return graph;
  }
  drop_backward(graph);
  add_image_tokens(graph, bytes);
  return graph;
}

}  // namespace shardwise
