#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "calibrate/device/cuda_failure.hpp"
#include "calibrate/device/pacing_kernels.hpp"

namespace shardwise {
namespace {

constexpr unsigned long long patience_ns = 200'000'000;

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void hold(volatile int* open, volatile int* gave_up) {
  const unsigned long long begun = nanoseconds();
  while (*open == 0) {
    if (nanoseconds() - begun > patience_ns) {
      *gave_up = 1;
      return;
    }
  }
}

__global__ void nothing() {}

// A 32-bit integer hash (Mueller, "lowbias32"): enough to look random to an adder.
__device__ unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

template <class T>
__global__ void fill(T* data, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    data[i] = T(static_cast<float>(hash(static_cast<unsigned>(i))) * 0x1p-31f - 1.0f);
}

template <class T>
void fill_as(void* data, Bytes bytes, cudaStream_t stream) {
  const auto count = bytes.value / static_cast<std::int64_t>(sizeof(T));
  fill<T><<<1024, 256, 0, stream>>>(static_cast<T*>(data), count);
}

struct DtypeRow {
  const char* name;
  std::int64_t bytes;
  void (*fill)(void*, Bytes, cudaStream_t);
};
constexpr DtypeRow dtypes[] = {{"bf16", 2, fill_as<__nv_bfloat16>},
                               {"fp16", 2, fill_as<__half>},
                               {"fp32", 4, fill_as<float>},
                               {"tf32", 4, fill_as<float>},
                               {"fp8", 1, fill_as<__nv_fp8_e4m3>}};

const DtypeRow& row_of(const std::string& dtype) {
  for (const DtypeRow& row : dtypes)
    if (dtype == row.name) return row;
  not_supported("dtype " + dtype);
}

}  // namespace

void launch_hold(volatile int* open, volatile int* gave_up, cudaStream_t stream) {
  hold<<<1, 1, 0, stream>>>(open, gave_up);
}

void launch_nothing(cudaStream_t stream) { nothing<<<1, 1, 0, stream>>>(); }

void fill_randomly(void* data, Bytes bytes, const std::string& dtype, cudaStream_t stream) {
  row_of(dtype).fill(data, bytes, stream);
  check(cudaGetLastError(), "filling memory");
}

std::int64_t element_bytes(const std::string& dtype) { return row_of(dtype).bytes; }

}  // namespace shardwise
