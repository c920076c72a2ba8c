// The kernels of memory_kernels.hpp that work row by row or element by element.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "calibrate/device/memory_kernels.hpp"

namespace shardwise {

inline constexpr int row_threads = 256;

// 16 bytes, as the memory takes them best.
template <class T>
struct alignas(16) Pack {
  T of[row_pack];
};

template <class T>
__device__ float as_float(T x) {
  return static_cast<float>(x);
}

// The sum (or the greatest) over a block, for all of its threads.
template <class Join>
__device__ float over_block(float value, Join join, float nothing) {
  __shared__ float by_warp[row_threads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffU, value, lanes));
  __syncthreads();  // the last call's reading is over
  if (threadIdx.x % 32 == 0) by_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = nothing;
  for (const float warp : by_warp) value = join(value, warp);
  return value;
}
__device__ inline float block_sum(float value) {
  return over_block(
      value, [](float a, float b) { return a + b; }, 0.0f);
}
__device__ inline float block_max(float value) {
  return over_block(
      value, [](float a, float b) { return fmaxf(a, b); }, -INFINITY);
}

// visit(i) for the packs of a row that are this thread's.
template <class Visit>
__device__ void each_pack(std::int64_t columns, Visit visit) {
  for (std::int64_t i = threadIdx.x; i < columns / row_pack; i += row_threads) visit(i);
}

template <class T>
__device__ Pack<T>* row_of(void* tensor, std::int64_t columns) {
  return static_cast<Pack<T>*>(tensor) + blockIdx.x * (columns / row_pack);
}

struct Tensors {
  void* at[5];
};

// y = x / rms(x). The weight vector is left out: it lies in the cache and costs no memory time.
template <class T>
__global__ void rms_norm(Tensors t, std::int64_t columns) {
  const Pack<T>* x = row_of<T>(t.at[0], columns);
  Pack<T>* y = row_of<T>(t.at[1], columns);
  float squares = 0;
  each_pack(columns, [&](std::int64_t i) {
    for (const T v : x[i].of) squares += as_float(v) * as_float(v);
  });
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(columns) + 1e-6f);
  each_pack(columns, [&](std::int64_t i) {
    Pack<T> out;
    for (int j = 0; j < row_pack; ++j) out.of[j] = T(as_float(x[i].of[j]) * scale);
    y[i] = out;
  });
}

// dx = r (dy - x r^2 mean(x dy)), r = 1 / rms(x).
template <class T>
__global__ void rms_norm_backward(Tensors t, std::int64_t columns) {
  const Pack<T>* x = row_of<T>(t.at[0], columns);
  const Pack<T>* dy = row_of<T>(t.at[1], columns);
  Pack<T>* dx = row_of<T>(t.at[2], columns);
  float squares = 0, products = 0;
  each_pack(columns, [&](std::int64_t i) {
    const Pack<T> a = x[i], b = dy[i];
    for (int j = 0; j < row_pack; ++j) {
      squares += as_float(a.of[j]) * as_float(a.of[j]);
      products += as_float(a.of[j]) * as_float(b.of[j]);
    }
  });
  const float n = static_cast<float>(columns);
  const float r = rsqrtf(block_sum(squares) / n + 1e-6f);
  const float pull = r * r * block_sum(products) / n;
  each_pack(columns, [&](std::int64_t i) {
    const Pack<T> a = x[i], b = dy[i];
    Pack<T> out;
    for (int j = 0; j < row_pack; ++j)
      out.of[j] = T(r * (as_float(b.of[j]) - as_float(a.of[j]) * pull));
    dx[i] = out;
  });
}

template <class T>
__global__ void layer_norm(Tensors t, std::int64_t columns) {
  const Pack<T>* x = row_of<T>(t.at[0], columns);
  Pack<T>* y = row_of<T>(t.at[1], columns);
  float sum = 0, squares = 0;
  each_pack(columns, [&](std::int64_t i) {
    for (const T v : x[i].of) {
      sum += as_float(v);
      squares += as_float(v) * as_float(v);
    }
  });
  const float n = static_cast<float>(columns);
  const float mean = block_sum(sum) / n;
  const float scale = rsqrtf(fmaxf(block_sum(squares) / n - mean * mean, 0.0f) + 1e-5f);
  each_pack(columns, [&](std::int64_t i) {
    Pack<T> out;
    for (int j = 0; j < row_pack; ++j) out.of[j] = T((as_float(x[i].of[j]) - mean) * scale);
    y[i] = out;
  });
}

// The greatest of a row, and the sum of exp(x - greatest), in one pass over it.
struct Exponents {
  float greatest;
  float sum;
};
template <class T>
__device__ Exponents exponents(const Pack<T>* x, std::int64_t columns) {
  float greatest = -INFINITY, sum = 0;
  each_pack(columns, [&](std::int64_t i) {
    const Pack<T> in = x[i];
    float top = greatest;
    for (const T v : in.of) top = fmaxf(top, as_float(v));
    sum *= __expf(greatest - top);  // exp(-inf) = 0 for the first
    greatest = top;
    for (const T v : in.of) sum += __expf(as_float(v) - top);
  });
  const float top = block_max(greatest);
  // A thread without a pack has -inf: it adds nothing.
  return {top, block_sum(greatest == -INFINITY ? 0.0f : sum * __expf(greatest - top))};
}

template <class T>
__global__ void softmax(Tensors t, std::int64_t columns) {
  const Pack<T>* x = row_of<T>(t.at[0], columns);
  Pack<T>* y = row_of<T>(t.at[1], columns);
  const Exponents e = exponents(x, columns);
  each_pack(columns, [&](std::int64_t i) {
    Pack<T> out;
    for (int j = 0; j < row_pack; ++j)
      out.of[j] = T(__expf(as_float(x[i].of[j]) - e.greatest) / e.sum);
    y[i] = out;
  });
}

// dx = y (dy - sum(y dy)).
template <class T>
__global__ void softmax_backward(Tensors t, std::int64_t columns) {
  const Pack<T>* y = row_of<T>(t.at[0], columns);
  const Pack<T>* dy = row_of<T>(t.at[1], columns);
  Pack<T>* dx = row_of<T>(t.at[2], columns);
  float products = 0;
  each_pack(columns, [&](std::int64_t i) {
    const Pack<T> a = y[i], b = dy[i];
    for (int j = 0; j < row_pack; ++j) products += as_float(a.of[j]) * as_float(b.of[j]);
  });
  const float pull = block_sum(products);
  each_pack(columns, [&](std::int64_t i) {
    const Pack<T> a = y[i], b = dy[i];
    Pack<T> out;
    for (int j = 0; j < row_pack; ++j)
      out.of[j] = T(as_float(a.of[j]) * (as_float(b.of[j]) - pull));
    dx[i] = out;
  });
}

// The gradient of each row's loss with its target, here the row's number: softmax less one-hot.
template <class T>
__global__ void cross_entropy(Tensors t, std::int64_t columns) {
  const Pack<T>* logits = row_of<T>(t.at[0], columns);
  Pack<T>* gradient = row_of<T>(t.at[1], columns);
  const Exponents e = exponents(logits, columns);
  const std::int64_t target = blockIdx.x % columns;
  each_pack(columns, [&](std::int64_t i) {
    Pack<T> out;
    for (int j = 0; j < row_pack; ++j) {
      const float hit = i * row_pack + j == target ? 1.0f : 0.0f;
      out.of[j] = T(__expf(as_float(logits[i].of[j]) - e.greatest) / e.sum - hit);
    }
    gradient[i] = out;
  });
}

// GELU by tanh, as GPT-2 has it, and its slope.
__device__ inline float tanh_of_gelu(float x) {
  return tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
}
struct Gelu {
  __device__ float operator()(float x) const { return 0.5f * x * (1 + tanh_of_gelu(x)); }
};
struct GeluBackward {
  __device__ float operator()(float x, float dy) const {
    const float t = tanh_of_gelu(x);
    const float slope = 0.7978845608f * (1 + 3 * 0.044715f * x * x);
    return dy * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope);
  }
};
__device__ inline float sigmoid(float x) { return 1 / (1 + __expf(-x)); }
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct SiluMultiply {
  __device__ float operator()(float gate, float up) const { return gate * sigmoid(gate) * up; }
};

// Rows of a table in an order that looks random, as an embedding or a routing of tokens has it. An
// odd factor makes it a permutation where the rows are a power of two.
template <class T>
__global__ void gather(Tensors t, std::int64_t columns) {
  const std::int64_t packs = columns / row_pack;
  const std::int64_t from = static_cast<std::int64_t>(blockIdx.x) * 0x9E3779B1LL % gridDim.x;
  const Pack<T>* x = static_cast<const Pack<T>*>(t.at[0]) + from * packs;
  Pack<T>* y = row_of<T>(t.at[1], columns);
  each_pack(columns, [&](std::int64_t i) { y[i] = x[i]; });
}

template <class T, class Function>
__global__ void of_one(Tensors t, std::int64_t packs, Function function) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * row_threads + threadIdx.x;
  if (i >= packs) return;
  const Pack<T> in = static_cast<const Pack<T>*>(t.at[0])[i];
  Pack<T> out;
  for (int j = 0; j < row_pack; ++j) out.of[j] = T(function(as_float(in.of[j])));
  static_cast<Pack<T>*>(t.at[1])[i] = out;
}

template <class T, class Function>
__global__ void of_two(Tensors t, std::int64_t packs, Function function) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * row_threads + threadIdx.x;
  if (i >= packs) return;
  const Pack<T> a = static_cast<const Pack<T>*>(t.at[0])[i];
  const Pack<T> b = static_cast<const Pack<T>*>(t.at[1])[i];
  Pack<T> out;
  for (int j = 0; j < row_pack; ++j) out.of[j] = T(function(as_float(a.of[j]), as_float(b.of[j])));
  static_cast<Pack<T>*>(t.at[2])[i] = out;
}

// From gate, up and dy: the gradients of gate and up.
template <class T>
__global__ void silu_multiply_backward(Tensors t, std::int64_t packs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * row_threads + threadIdx.x;
  if (i >= packs) return;
  const Pack<T> gate = static_cast<const Pack<T>*>(t.at[0])[i];
  const Pack<T> up = static_cast<const Pack<T>*>(t.at[1])[i];
  const Pack<T> dy = static_cast<const Pack<T>*>(t.at[2])[i];
  Pack<T> dgate, dup;
  for (int j = 0; j < row_pack; ++j) {
    const float g = as_float(gate.of[j]), s = sigmoid(g), d = as_float(dy.of[j]);
    dgate.of[j] = T(d * as_float(up.of[j]) * s * (1 + g * (1 - s)));
    dup.of[j] = T(d * g * s);
  }
  static_cast<Pack<T>*>(t.at[3])[i] = dgate;
  static_cast<Pack<T>*>(t.at[4])[i] = dup;
}

template <class T>
__global__ void cast_to_fp32(Tensors t, std::int64_t packs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * row_threads + threadIdx.x;
  if (i >= packs) return;
  const Pack<T> in = static_cast<const Pack<T>*>(t.at[0])[i];
  float4* out = static_cast<float4*>(t.at[1]) + 2 * i;
  out[0] = {as_float(in.of[0]), as_float(in.of[1]), as_float(in.of[2]), as_float(in.of[3])};
  out[1] = {as_float(in.of[4]), as_float(in.of[5]), as_float(in.of[6]), as_float(in.of[7])};
}

}  // namespace shardwise
