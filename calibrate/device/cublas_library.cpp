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
  library_.resolve("cublasLtCreate", create);
  library_.resolve("cublasLtDestroy", destroy);
  library_.resolve("cublasLtGetVersion", version);
  library_.resolve("cublasLtMatmul", matmul);
  library_.resolve("cublasLtMatmulAlgoGetHeuristic", heuristic);
  library_.resolve("cublasLtMatmulDescCreate", matmul_create);
  library_.resolve("cublasLtMatmulDescDestroy", matmul_destroy);
  library_.resolve("cublasLtMatmulDescSetAttribute", matmul_set);
  library_.resolve("cublasLtMatrixLayoutCreate", layout_create);
  library_.resolve("cublasLtMatrixLayoutDestroy", layout_destroy);
  library_.resolve("cublasLtMatrixLayoutSetAttribute", layout_set);
  library_.resolve("cublasLtMatmulPreferenceCreate", preference_create);
  library_.resolve("cublasLtMatmulPreferenceDestroy", preference_destroy);
  library_.resolve("cublasLtMatmulPreferenceSetAttribute", preference_set);
}

const CublasLt& cublas_lt() {
  static const CublasLt library;
  return complete(library);
}

Cublas::Cublas() : library_(names_of("libcublas")) {
  library_.resolve("cublasCreate_v2", create);
  library_.resolve("cublasDestroy_v2", destroy);
  library_.resolve("cublasSetStream_v2", set_stream);
#ifdef SHARDWISE_GROUPED_GEMM
  library_.resolve("cublasGemmGroupedBatchedEx", grouped);
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
