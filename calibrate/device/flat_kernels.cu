#include <cuda_bf16.h>

#include "calibrate/device/memory_kernels.hpp"

namespace shardwise {
namespace {

constexpr int threads = 256;

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

struct AdamState {
  float4 parameter, gradient, first, second;
};

__device__ void adam_step(float& p, float g, float& m, float& v) {
  constexpr float beta1 = 0.9f, beta2 = 0.95f, rate = 1e-4f, decay = 0.1f, epsilon = 1e-8f;
  m = beta1 * m + (1 - beta1) * g;
  v = beta2 * v + (1 - beta2) * g * g;
  p -= rate * (m / (sqrtf(v) + epsilon) + decay * p);
}

__global__ void adam(float4* parameters, const float4* gradients, float4* firsts, float4* seconds,
                     std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  AdamState s{parameters[i], gradients[i], firsts[i], seconds[i]};
  adam_step(s.parameter.x, s.gradient.x, s.first.x, s.second.x);
  adam_step(s.parameter.y, s.gradient.y, s.first.y, s.second.y);
  adam_step(s.parameter.z, s.gradient.z, s.first.z, s.second.z);
  adam_step(s.parameter.w, s.gradient.w, s.first.w, s.second.w);
  parameters[i] = s.parameter;
  firsts[i] = s.first;
  seconds[i] = s.second;
}

__constant__ float nf4[16] = {-1.0f,
                              -0.6961928009986877f,
                              -0.5250730514526367f,
                              -0.39491748809814453f,
                              -0.28444138169288635f,
                              -0.18477343022823334f,
                              -0.09105003625154495f,
                              0.0f,
                              0.07958029955625534f,
                              0.16093020141124725f,
                              0.24611230194568634f,
                              0.33791524171829224f,
                              0.44070982933044434f,
                              0.5626170039176941f,
                              0.7229568362236023f,
                              1.0f};

// Four bytes in, eight elements out: 16 bytes.
struct alignas(16) Eight {
  __nv_bfloat16 of[8];
};

__global__ void nf4_dequantise(const uchar4* codes, const float* scales, Eight* out,
                               std::int64_t packs) {
  __shared__ float values[16];  // constant memory serves one address at a time
  if (threadIdx.x < 16) values[threadIdx.x] = nf4[threadIdx.x];
  __syncthreads();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= packs) return;
  const uchar4 in = codes[i];
  const float scale = scales[i / (nf4_block / 8)];
  const unsigned char bytes[4] = {in.x, in.y, in.z, in.w};
  Eight result;
  for (int j = 0; j < 4; ++j) {
    result.of[2 * j] = __float2bfloat16(values[bytes[j] >> 4] * scale);
    result.of[2 * j + 1] = __float2bfloat16(values[bytes[j] & 15] * scale);
  }
  out[i] = result;
}

}  // namespace

void launch_adam(float* parameters, const float* gradients, float* first, float* second,
                 std::int64_t count, cudaStream_t stream) {
  const std::int64_t packs = count / 4;
  adam<<<blocks_for(packs), threads, 0, stream>>>(
      reinterpret_cast<float4*>(parameters), reinterpret_cast<const float4*>(gradients),
      reinterpret_cast<float4*>(first), reinterpret_cast<float4*>(second), packs);
}

void launch_nf4_dequantise(const std::uint8_t* codes, const float* scales, void* out,
                           std::int64_t count, cudaStream_t stream) {
  const std::int64_t packs = count / 8;
  nf4_dequantise<<<blocks_for(packs), threads, 0, stream>>>(
      reinterpret_cast<const uchar4*>(codes), scales, static_cast<Eight*>(out), packs);
}

}  // namespace shardwise
