// GemmProduct: one product through cuBLASLt, described once and then run again and again, with the
// algorithm that cuBLASLt's own heuristic takes first, as PyTorch does.
#pragma once

#include <memory>

#include "calibrate/device/gpu_benches.hpp"

namespace shardwise {

class GemmProduct {
 public:
  // Matrices are allocated on the current GPU and filled at random. Throws CudaFailure.
  GemmProduct(const BenchPoint& point, cudaStream_t stream);
  ~GemmProduct();
  GemmProduct(const GemmProduct&) = delete;
  GemmProduct& operator=(const GemmProduct&) = delete;

  void enqueue(cudaStream_t stream) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace shardwise
