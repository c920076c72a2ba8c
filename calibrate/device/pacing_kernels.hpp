// Kernels that belong to measuring itself.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "catalog/units.hpp"

namespace shardwise {

// Holds the stream until *open becomes 1, so that all that is timed is in the queue before the GPU
// begins with it (as NVBench does). After a fifth of a second it gives up and sets *gave_up.
void launch_hold(volatile int* open, volatile int* gave_up, cudaStream_t stream);

void launch_nothing(cudaStream_t stream);  // an empty kernel

// Uniform in [-1, 1): random bits decide how much power a product takes. dtype: bf16, fp16, fp32,
// tf32 (an fp32 in memory) or fp8 (e4m3).
void fill_randomly(void* data, Bytes bytes, const std::string& dtype, cudaStream_t stream);

std::int64_t element_bytes(const std::string& dtype);

}  // namespace shardwise
