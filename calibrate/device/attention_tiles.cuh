// Tiles of attention on tensor cores: what a warp does with 16 x 16 x 8 products
// (mma.sync.m16n8k16, PTX ISA 9.7.14.5.8). Lane l of a warp has g = l / 4 and t = l % 4.
//
//   A (16 x 16, rows):    a0 row g, columns 2t, 2t+1;      a1 row g+8; a2, a3: columns + 8
//   B (16 x 8, columns):  b0 rows 2t, 2t+1 of column g;    b1: rows + 8
//   C (16 x 8, fp32):     c0, c1 row g, columns 2t, 2t+1;  c2, c3 row g+8
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace shardwise {

constexpr int tile = 64;    // queries, and keys, of a block
constexpr int warps = 4;    // of 16 rows each
constexpr int padding = 8;  // halves behind each row, so that 8 rows lie in different banks
constexpr int key_tiles = tile / 8;

using Fragment = std::uint32_t;  // two halves

__device__ inline __nv_bfloat162 pair_of(float a, float b, __nv_bfloat16) {
  return __floats2bfloat162_rn(a, b);
}
__device__ inline __half2 pair_of(float a, float b, __half) { return __floats2half2_rn(a, b); }

template <class T>
__device__ Fragment packed(float a, float b) {
  const auto pair = pair_of(a, b, T());
  return *reinterpret_cast<const Fragment*>(&pair);
}

// Before compute capability 8.0 there is no such product: attention_bench.cpp asks for it first.
__device__ inline void multiply(float (&c)[4], const Fragment (&a)[4], Fragment b0, Fragment b1,
                                __nv_bfloat16) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
__device__ inline void multiply(float (&c)[4], const Fragment (&a)[4], Fragment b0, Fragment b1,
                                __half) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// 64 rows of `dim` halves in shared memory.
template <class T, int dim>
struct Tile {
  static constexpr int stride = dim + padding;
  static constexpr int halves = tile * stride;
  T* at;

  __device__ Fragment pair(int row, int column) const {
    return *reinterpret_cast<const Fragment*>(at + row * stride + column);
  }
  // Rows `row`, `row` + 1 of one column, as B has them where the sum runs over rows.
  __device__ void pairs_down(int row, int column, Fragment& b0, Fragment& b1) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const T* from = at + (row + lane % 16) * stride + column;
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b0), "=r"(b1)
                 : "r"(address));
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
#pragma unroll
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
#pragma unroll
  for (int k = 0; k < tile / 16; ++k) {
    const float(&low)[4] = p[2 * k];
    const float(&high)[4] = p[2 * k + 1];
    const Fragment a[4] = {packed<T>(low[0], low[1]), packed<T>(low[2], low[3]),
                           packed<T>(high[0], high[1]), packed<T>(high[2], high[3])};
#pragma unroll
    for (int j = 0; j < dim / 8; ++j) {
      Fragment b0, b1;
      right.pairs_down(16 * k, 8 * j, b0, b1);
      multiply(out[j], a, b0, b1, T());
    }
  }
}

}  // namespace shardwise
