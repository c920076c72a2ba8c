#include "calibrate/device/cublas_library.hpp"

#include "calibrate/device/cuda_failure.hpp"

namespace shardwise {
namespace {

// The version that the headers are of; then any.
std::vector<std::string> names_of(const std::string& library) {
  return {library + ".so." + std::to_string(CUBLAS_VER_MAJOR), library + ".so"};
}

template <class Library>
const Library& complete(const Library& library) {
  if (!library.complete()) not_supported(library.missing() + " is not here");
  return library;
}

}  // namespace

CublasLt::CublasLt() : library_(names_of("libcublasLt")) {
  library_.resolve(create, "cublasLtCreate");
  library_.resolve(destroy, "cublasLtDestroy");
  library_.resolve(version, "cublasLtGetVersion");
  library_.resolve(matmul, "cublasLtMatmul");
  library_.resolve(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library_.resolve(matmul_create, "cublasLtMatmulDescCreate");
  library_.resolve(matmul_destroy, "cublasLtMatmulDescDestroy");
  library_.resolve(matmul_set, "cublasLtMatmulDescSetAttribute");
  library_.resolve(layout_create, "cublasLtMatrixLayoutCreate");
  library_.resolve(layout_destroy, "cublasLtMatrixLayoutDestroy");
  library_.resolve(layout_set, "cublasLtMatrixLayoutSetAttribute");
  library_.resolve(preference_create, "cublasLtMatmulPreferenceCreate");
  library_.resolve(preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library_.resolve(preference_set, "cublasLtMatmulPreferenceSetAttribute");
}

const CublasLt& cublas_lt() {
  static const CublasLt library;
  return complete(library);
}

Cublas::Cublas() : library_(names_of("libcublas")) {
  library_.resolve(create, "cublasCreate_v2");
  library_.resolve(destroy, "cublasDestroy_v2");
  library_.resolve(set_stream, "cublasSetStream_v2");
#ifdef SHARDWISE_GROUPED_GEMM
  library_.resolve(grouped, "cublasGemmGroupedBatchedEx");
#endif
}

const Cublas& cublas() {
  static const Cublas library;
  return complete(library);
}

void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string why =
      std::string(doing).append(": cuBLAS status ").append(std::to_string(status));
  check(cudaDeviceSynchronize(), doing);  // a GPU that is lost is told here
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw CudaFailure{RunStatus::out_of_memory, why};
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) not_supported(why);
  throw CudaFailure{RunStatus::failed, why};
}

}  // namespace shardwise
