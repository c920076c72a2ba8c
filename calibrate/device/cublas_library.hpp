// cuBLASLt and cuBLAS, looked for when the program runs. Types are those of NVIDIA's headers, so a
// wrong call does not compile.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <string>

#include "calibrate/device/shared_library.hpp"

namespace shardwise {

class CublasLt {
 public:
  CublasLt();
  bool complete() const { return library_.complete(); }
  const std::string& missing() const { return library_.missing(); }

  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) matmul_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) matmul_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;

 private:
  SharedLibrary library_;
};

const CublasLt& cublas_lt();  // looked for once; throws CudaFailure where it is not complete

#if CUBLAS_VERSION >= 120500
#define SHARDWISE_GROUPED_GEMM
#endif

class Cublas {
 public:
  Cublas();
  bool complete() const { return library_.complete(); }
  const std::string& missing() const { return library_.missing(); }

  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
#ifdef SHARDWISE_GROUPED_GEMM
  decltype(&cublasGemmGroupedBatchedEx) grouped = nullptr;
#endif

 private:
  SharedLibrary library_;
};

const Cublas& cublas();

void check(cublasStatus_t status, const char* doing);

}  // namespace shardwise
