#include "calibrate/device/cuda_failure.hpp"

namespace shardwise {

void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // an error that does not stick is forgotten by this
  const std::string why = std::string(doing).append(": ").append(cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) throw CudaFailure{RunStatus::out_of_memory, why};
  const bool lost = cudaFree(nullptr) != cudaSuccess;
  throw CudaFailure{lost ? RunStatus::lost : RunStatus::failed, why};
}

void not_supported(const std::string& why) { throw CudaFailure{RunStatus::unsupported, why}; }

}  // namespace shardwise
