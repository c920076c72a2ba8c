// Tiles of attention on tensor cores: 64 x 64 scores of a block, 16 rows of them for each warp.
#pragma once

#include <cstdint>

#include "calibrate/device/warp_primitives.cuh"

namespace shardwise {

constexpr int tile = 64;    // queries, and keys, of a block
constexpr int warps = 4;    // of 16 rows each
constexpr int padding = 8;  // halves behind each row, so that 8 rows lie in different banks
constexpr int key_tiles = tile / 8;

// 64 rows of `dim` halves in shared memory.
template <class T, int dim>
struct Tile {
  static constexpr int stride = dim + padding;
  static constexpr int halves = tile * stride;
  T* at;

  __device__ Fragment pair(int row, int column) const {
    return *reinterpret_cast<const Fragment*>(at + row * stride + column);
  }
  // The whole block copies 64 rows, 16 bytes at a time.
  __device__ void load(const T* from) const {
    constexpr int pieces = dim / 8;
    for (int i = static_cast<int>(threadIdx.x); i < tile * pieces; i += 32 * warps) {
      const int row = i / pieces, piece = i % pieces;
      *reinterpret_cast<uint4*>(at + row * stride + 8 * piece) =
          *reinterpret_cast<const uint4*>(from + row * dim + 8 * piece);
    }
  }
  // A for 16 rows from `row`, columns from `column`.
  __device__ void rows(int row, int column, Fragment (&a)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    a[0] = pair(row + g, column + 2 * t);
    a[1] = pair(row + g + 8, column + 2 * t);
    a[2] = pair(row + g, column + 2 * t + 8);
    a[3] = pair(row + g + 8, column + 2 * t + 8);
  }
};

// c[16 x 64] += (16 rows of `left` from `row`) (64 rows of `right`)^T, over dim.
template <class T, int dim>
__device__ void rows_by_rows(float (&c)[key_tiles][4], const Tile<T, dim>& left, int row,
                             const Tile<T, dim>& right) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int k = 0; k < dim; k += 16) {
    Fragment a[4];
    left.rows(row, k, a);
    SHARDWISE_UNROLL
    for (int j = 0; j < key_tiles; ++j)
      multiply(c[j], a, right.pair(8 * j + g, k + 2 * t), right.pair(8 * j + g, k + 2 * t + 8),
               T());
  }
}

// out[16 x dim] += p[16 x 64] (64 rows of `right`); p lies as products leave it and is rounded to
// halves here.
template <class T, int dim>
__device__ void scores_by_rows(float (&out)[dim / 8][4], const float (&p)[key_tiles][4],
                               const Tile<T, dim>& right) {
  SHARDWISE_UNROLL
  for (int k = 0; k < tile / 16; ++k) {
    const float(&low)[4] = p[2 * k];
    const float(&high)[4] = p[2 * k + 1];
    const Fragment a[4] = {packed<T>(low[0], low[1]), packed<T>(low[2], low[3]),
                           packed<T>(high[0], high[1]), packed<T>(high[2], high[3])};
    SHARDWISE_UNROLL
    for (int j = 0; j < dim / 8; ++j) {
      Fragment b0, b1;
      pairs_down(right.at + 16 * k * right.stride + 8 * j, right.stride, b0, b1);
      multiply(out[j], a, b0, b1, T());
    }
  }
}

}  // namespace shardwise
