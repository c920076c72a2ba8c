// Attention that never writes its scores to memory, forward and backward, on tensor cores: the
// algorithm of FlashAttention-2 (Dao, arXiv 2307.08691), in a plain form that needs no library.
//
//   o = softmax(scale q k^T) v      per head; with `causal`, keys after the query do not count
//
// Shapes, row-major: q, o, do, dq [batch, heads, sequence, head_dim]; k, v, dk, dv [batch,
// kv_heads, sequence, head_dim], but dk and dv per query head here ([batch, heads, ...]: with fewer
// key heads a sum over each group follows, which is memory-bound and not part of this); statistics
// fp32 [batch, heads, sequence]; dq in fp32. Tiles are 64 queries by 64 keys: sequence is a
// multiple of 64. fp16 and bf16, head_dim 64 or 128; from compute capability 8.0 on.
#pragma once

#include <cstdint>
#include <string>

struct CUstream_st;  // what a cudaStream_t points to

namespace shardwise {

struct AttentionShape {
  int batch, heads, kv_heads, sequence, head_dim;
  bool causal;
};

struct AttentionTensors {
  const void *q, *k, *v;
  void* o;
  float* log_sums;  // of each query: log of the sum of its exponentials
  // Backward alone:
  const void* d_o;
  float* d_q;    // added to, so it is cleared first
  float* pulls;  // of each query: the sum of o do
  void *d_k, *d_v;
};

inline constexpr int attention_tile = 64;

void launch_attention_forward(const std::string& dtype, const AttentionShape& shape,
                              const AttentionTensors& tensors, CUstream_st* stream);
void launch_attention_backward(const std::string& dtype, const AttentionShape& shape,
                               const AttentionTensors& tensors, CUstream_st* stream);

}  // namespace shardwise
