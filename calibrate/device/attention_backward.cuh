// The backward pass of attention (attention_kernels.hpp), as a kernel.
#pragma once

#include "calibrate/device/attention_kernels.hpp"
#include "calibrate/device/attention_tiles.cuh"

namespace shardwise {

struct BackwardArguments {
  AttentionShape shape;
  AttentionTensors tensors;
  float scale;
};

// pull = sum over dim of o do, of each query: a warp per query.
template <class T, int dim>
__global__ void pulls(BackwardArguments a, std::int64_t queries) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t query =
      static_cast<std::int64_t>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32;
  if (query >= queries) return;
  const T* o = static_cast<const T*>(a.tensors.o) + query * dim;
  const T* d_o = static_cast<const T*>(a.tensors.d_o) + query * dim;
  float sum = 0;
  for (int i = lane; i < dim; i += 32) sum += static_cast<float>(o[i]) * static_cast<float>(d_o[i]);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lanes);
  if (lane == 0) a.tensors.pulls[query] = sum;
}

// Of a warp: 16 keys against 64 queries, so that what is summed over queries stays in registers.
//   p[key, query] = exp(scale q k - log_sum)     ds = p (dp - pull), dp = v do
template <int tiles>
__device__ void probabilities(float (&s)[tiles][4], const BackwardArguments& a, std::int64_t head,
                              int first_query, int first_key, bool mask) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int j = 0; j < tiles; ++j)
    for (int c = 0; c < 4; ++c) {
      const int key = first_key + g + 8 * (c / 2), query = first_query + 8 * j + 2 * t + c % 2;
      const float log_sum = a.tensors.log_sums[head * a.shape.sequence + query];
      s[j][c] = mask && key > query ? 0.0f : __expf(s[j][c] * a.scale - log_sum);
    }
}

template <int tiles>
__device__ void score_gradients(float (&dp)[tiles][4], const float (&p)[tiles][4],
                                const BackwardArguments& a, std::int64_t head, int first_query) {
  const int t = static_cast<int>(threadIdx.x) % 4;
  for (int j = 0; j < tiles; ++j)
    for (int c = 0; c < 4; ++c) {
      const int query = first_query + 8 * j + 2 * t + c % 2;
      const float pull = a.tensors.pulls[head * a.shape.sequence + query];
      dp[j][c] = p[j][c] * (dp[j][c] - pull) * a.scale;
    }
}

// Queries by keys, for the product that sums over keys.
template <class T>
__device__ void write_turned(const Tile<T, tile>& to, const float (&ds)[key_tiles][4], int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int j = 0; j < key_tiles; ++j)
    for (int c = 0; c < 4; ++c) {
      const int key = row + g + 8 * (c / 2), query = 8 * j + 2 * t + c % 2;
      to.at[query * to.stride + key] = T(ds[j][c]);
    }
}

// dq[16 queries x dim] += ds[16 x 64 keys] (64 rows of keys), added up over blocks in memory.
template <class T, int dim>
__device__ void add_query_gradients(float* d_q, const Tile<T, tile>& ds, const Tile<T, dim>& keys,
                                    int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  Fragment a[tile / 16][4];
  for (int k = 0; k < tile / 16; ++k) ds.rows(row, 16 * k, a[k]);
  for (int j = 0; j < dim / 8; ++j) {
    float sum[4] = {};
    for (int k = 0; k < tile / 16; ++k) {
      Fragment b0, b1;
      pairs_down(keys.at + 16 * k * keys.stride + 8 * j, keys.stride, b0, b1);
      multiply(sum, a[k], b0, b1, T());
    }
    for (int c = 0; c < 4; ++c)
      atomicAdd(d_q + (row + g + 8 * (c / 2)) * dim + 8 * j + 2 * t + c % 2, sum[c]);
  }
}

template <class T, int dim>
__device__ void write_rows(T* to, const float (&from)[dim / 8][4], int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int half = 0; half < 2; ++half) {
    auto* out = reinterpret_cast<Fragment*>(to + (row + g + 8 * half) * dim);
    for (int j = 0; j < dim / 8; ++j)
      out[4 * j + t] = packed<T>(from[j][2 * half], from[j][2 * half + 1]);
  }
}

// A block: 64 keys of one query head, against every 64 queries that see them.
template <class T, int dim>
__global__ void __launch_bounds__(32 * warps) backward(BackwardArguments a) {
  const Tile<T, dim> keys{reinterpret_cast<T*>(block_memory())};
  const Tile<T, dim> values{keys.at + keys.halves};
  const Tile<T, dim> queries{values.at + values.halves};
  const Tile<T, dim> d_outs{queries.at + queries.halves};
  const Tile<T, tile> turned{d_outs.at + d_outs.halves};
  const int k_tile = static_cast<int>(blockIdx.x);
  const std::int64_t head = blockIdx.y;
  const int group = a.shape.heads / a.shape.kv_heads;
  const std::int64_t kv_head =
      head / a.shape.heads * a.shape.kv_heads + head % a.shape.heads / group;
  const std::int64_t size = static_cast<std::int64_t>(a.shape.sequence) * dim;
  const int row = 16 * (static_cast<int>(threadIdx.x) / 32), first_key = k_tile * tile + row;
  keys.load(static_cast<const T*>(a.tensors.k) + kv_head * size + k_tile * tile * dim);
  values.load(static_cast<const T*>(a.tensors.v) + kv_head * size + k_tile * tile * dim);

  float d_k[dim / 8][4] = {}, d_v[dim / 8][4] = {};
  for (int q_tile = a.shape.causal ? k_tile : 0; q_tile < a.shape.sequence / tile; ++q_tile) {
    __syncthreads();  // the tiles of the last round are read
    const std::int64_t from = head * size + q_tile * tile * dim;
    queries.load(static_cast<const T*>(a.tensors.q) + from);
    d_outs.load(static_cast<const T*>(a.tensors.d_o) + from);
    __syncthreads();
    float p[key_tiles][4] = {}, ds[key_tiles][4] = {};
    rows_by_rows(p, keys, row, queries);
    probabilities(p, a, head, q_tile * tile, first_key, a.shape.causal && q_tile == k_tile);
    scores_by_rows(d_v, p, d_outs);
    rows_by_rows(ds, values, row, d_outs);
    score_gradients(ds, p, a, head, q_tile * tile);
    scores_by_rows(d_k, ds, queries);
    write_turned(turned, ds, row);
    __syncthreads();
    add_query_gradients(a.tensors.d_q + from, turned, keys, row);
  }
  const std::int64_t to = head * size + k_tile * tile * dim;
  write_rows<T, dim>(static_cast<T*>(a.tensors.d_k) + to, d_k, row);
  write_rows<T, dim>(static_cast<T*>(a.tensors.d_v) + to, d_v, row);
}

}  // namespace shardwise
