// The forward pass of attention (attention_kernels.hpp), as a kernel.
#pragma once

#include "calibrate/device/attention_kernels.hpp"
#include "calibrate/device/attention_tiles.cuh"

namespace shardwise {

struct ForwardArguments {
  AttentionShape shape;
  AttentionTensors tensors;
  float scale;
};

// The running softmax of the two query rows that a lane has: rows g and g + 8 of its warp.
struct RunningSoftmax {
  float greatest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
};

// Over the four lanes that share a row.
template <class Join>
__device__ float over_row(float value, Join join) {
  value = join(value, __shfl_xor_sync(0xffffffffU, value, 1));
  return join(value, __shfl_xor_sync(0xffffffffU, value, 2));
}

// Turns scores into exponentials, and says by how much what was summed before shrinks.
__device__ inline void take_scores(float (&s)[key_tiles][4], RunningSoftmax& running,
                                   float (&shrink)[2]) {
  for (int half = 0; half < 2; ++half) {
    float top = running.greatest[half];
    for (int j = 0; j < key_tiles; ++j) top = fmaxf(top, fmaxf(s[j][2 * half], s[j][2 * half + 1]));
    top = over_row(top, [](float a, float b) { return fmaxf(a, b); });
    shrink[half] = __expf(running.greatest[half] - top);
    running.greatest[half] = top;
    float sum = 0;
    for (int j = 0; j < key_tiles; ++j)
      for (int c = 2 * half; c < 2 * half + 2; ++c) {
        s[j][c] = __expf(s[j][c] - top);
        sum += s[j][c];
      }
    sum = over_row(sum, [](float a, float b) { return a + b; });
    running.sum[half] = running.sum[half] * shrink[half] + sum;
  }
}

// Scales, and hides the keys after a query: only in the tile on the diagonal.
__device__ inline void scale_and_mask(float (&s)[key_tiles][4], float scale, int first_query,
                                      int first_key, bool mask) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int j = 0; j < key_tiles; ++j)
    for (int c = 0; c < 4; ++c) {
      const int query = first_query + g + 8 * (c / 2), key = first_key + 8 * j + 2 * t + c % 2;
      s[j][c] = mask && key > query ? -INFINITY : s[j][c] * scale;
    }
}

template <class T, int dim>
__device__ void write_rows(const ForwardArguments& a, float (&o)[dim / 8][4],
                           const RunningSoftmax& running, std::int64_t head, int first_query) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = head * a.shape.sequence + first_query + g + 8 * half;
    const float share = 1 / running.sum[half];
    auto* out = reinterpret_cast<Fragment*>(static_cast<T*>(a.tensors.o) + row * dim);
    for (int j = 0; j < dim / 8; ++j)
      out[4 * j + t] = packed<T>(o[j][2 * half] * share, o[j][2 * half + 1] * share);
    if (t == 0) a.tensors.log_sums[row] = running.greatest[half] + __logf(running.sum[half]);
  }
}

// A block: 64 queries of one head. Blocks of the last queries, which have most to do, come first.
template <class T, int dim>
__global__ void __launch_bounds__(32 * warps) forward(ForwardArguments a) {
  const Tile<T, dim> queries{reinterpret_cast<T*>(block_memory())};
  const Tile<T, dim> keys{queries.at + queries.halves};
  const Tile<T, dim> values{keys.at + keys.halves};
  const int q_tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const std::int64_t head = blockIdx.y;
  const int group = a.shape.heads / a.shape.kv_heads;
  const std::int64_t kv_head =
      head / a.shape.heads * a.shape.kv_heads + head % a.shape.heads / group;
  const std::int64_t size = static_cast<std::int64_t>(a.shape.sequence) * dim;
  const int row = 16 * (static_cast<int>(threadIdx.x) / 32);
  queries.load(static_cast<const T*>(a.tensors.q) + head * size + q_tile * tile * dim);

  float o[dim / 8][4] = {};
  RunningSoftmax running;
  const int last = a.shape.causal ? q_tile : a.shape.sequence / tile - 1;
  for (int k_tile = 0; k_tile <= last; ++k_tile) {
    __syncthreads();  // the tiles of the last round are read
    keys.load(static_cast<const T*>(a.tensors.k) + kv_head * size + k_tile * tile * dim);
    values.load(static_cast<const T*>(a.tensors.v) + kv_head * size + k_tile * tile * dim);
    __syncthreads();
    float s[key_tiles][4] = {};
    rows_by_rows(s, queries, row, keys);
    scale_and_mask(s, a.scale, q_tile * tile + row, k_tile * tile,
                   a.shape.causal && k_tile == q_tile);
    float shrink[2];
    take_scores(s, running, shrink);
    for (auto& part : o)
      for (int c = 0; c < 4; ++c) part[c] *= shrink[c / 2];
    scores_by_rows(o, s, values);
  }
  write_rows<T, dim>(a, o, running, head, q_tile * tile + row);
}

}  // namespace shardwise
