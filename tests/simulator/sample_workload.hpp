// Small workloads that tests derive their expectations from.
#pragma once

#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// A GPT of the Megatron papers: LayerNorm with bias, GELU MLP of 4h, learned positions.
inline Transformer gpt(int layers, int hidden, int heads, int vocab = 51200, int positions = 1024) {
  Transformer m;
  m.id = "gpt-test";
  m.model_type = "gpt2";
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.ffn = 4 * hidden;
  m.gated_mlp = false;
  m.vocab = vocab;
  m.norms = {NormKind::layer, 2, true, true, false};
  m.biases = {true, true, true, false, false, false};
  m.position = PositionKind::learned;
  m.position_rows = positions;
  return m;
}

// A Llama: RMSNorm, SwiGLU, rotary positions, grouped keys and values.
inline Transformer llama(int layers, int hidden, int heads, int kv_heads, int ffn, int vocab) {
  Transformer m;
  m.id = "llama-test";
  m.model_type = "llama";
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = hidden / heads;
  m.ffn = ffn;
  m.vocab = vocab;
  return m;
}

// Megatron-style bookkeeping: 16-bit weights, fp32 master, fused kernels.
inline Workload pretraining(Transformer model, int sequence) {
  Workload w;
  w.model = std::move(model);
  w.method = Method::pretrain;
  w.sequence = sequence;
  w.framework.id = w.framework.name = "test";
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.gradients.dtype = DType::bf16;
  w.framework.loss.kind = LossKind::vocab_parallel;
  return w;
}

inline ParallelPlan plan_of(int data, int tensor = 1, int pipeline = 1) {
  ParallelPlan p;
  p.data = data;
  p.tensor = tensor;
  p.pipeline = pipeline;
  p.recompute = "none";
  return p;
}

}  // namespace shardwise
