// What a warp does together, for kernels on tensor cores. Outside nvcc the same names come from
// tests/calibrate/cuda_on_cpu.hpp, where kernels run on the CPU, thread by thread.
//
// multiply(c, a, b0, b1): c[16 x 8] += a[16 x 16] b[16 x 8], in fp32 (mma.sync.m16n8k16, PTX ISA
// 9.7.14.5.8). Lane l of a warp has g = l / 4 and t = l % 4.
//
//   a (rows):     a0 row g, columns 2t, 2t+1;         a1 row g+8; a2, a3: columns + 8
//   b (columns):  b0 rows 2t, 2t+1 of column g;       b1: rows + 8
//   c (fp32):     c0, c1 row g, columns 2t, 2t+1;     c2, c3 row g+8
//
// pairs_down(from, stride, b0, b1): b as above from 16 rows of 8, whose sum runs over rows.
#pragma once

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#define SHARDWISE_UNROLL _Pragma("unroll")

namespace shardwise {

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

template <class T>
__device__ void pairs_down(const T* from, int stride, Fragment& b0, Fragment& b1) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto address =
      static_cast<std::uint32_t>(__cvta_generic_to_shared(from + lane % 16 * stride));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(b0), "=r"(b1)
               : "r"(address));
}

// The memory that a launch gives a block.
__device__ inline unsigned char* block_memory() {
  extern __shared__ __align__(16) unsigned char shared[];
  return shared;
}

}  // namespace shardwise

#endif
