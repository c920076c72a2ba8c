// What goes wrong on a GPU, as an exception that the benches' one entry catches (gpu_device.cpp).
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "calibrate/measuring/bench_device.hpp"

namespace shardwise {

struct CudaFailure {
  RunStatus status = RunStatus::failed;
  std::string why;
};

// Throws CudaFailure where `error` is one. Out of memory is told apart from a bench that failed,
// and that from a GPU that answers nothing any more: then every further call repeats the error.
void check(cudaError_t error, const char* doing);

[[noreturn]] void not_supported(const std::string& why);

}  // namespace shardwise
