#include "calibrate/device/gemm_product.hpp"

#include <string_view>

#include "calibrate/device/cublas_library.hpp"
#include "calibrate/device/pacing_kernels.hpp"

namespace shardwise {
namespace {

// PyTorch's cuBLASLt workspace on Hopper, 32 MiB (aten/src/ATen/cuda/CUDABlas.cpp); more than the
// older GPUs are given, which their algorithms do not use.
constexpr Bytes workspace_bytes(std::int64_t{32} << 20);

struct DtypeRow {
  const char* name;
  cudaDataType_t in;
  cudaDataType_t out;
  cublasComputeType_t compute;
};
constexpr DtypeRow dtypes[] = {
    {"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
    {"fp16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F},
    {"tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    {"fp32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
};

struct EpilogueRow {
  const char* name;
  cublasLtEpilogue_t epilogue;
};
constexpr EpilogueRow epilogues[] = {{"none", CUBLASLT_EPILOGUE_DEFAULT},
                                     {"accumulate", CUBLASLT_EPILOGUE_DEFAULT},
                                     {"bias", CUBLASLT_EPILOGUE_BIAS},
                                     {"gelu_bias", CUBLASLT_EPILOGUE_GELU_BIAS}};

// cuBLASLt counts columns first: our row-major out[m, n] is its n x m matrix. `first` is our second
// factor, `second` our first one.
struct LayoutRow {
  const char* name;
  cublasOperation_t first, second;
};
constexpr LayoutRow layouts[] = {{"tn", CUBLAS_OP_T, CUBLAS_OP_N},   // x[m, k] w[n, k]^T
                                 {"nn", CUBLAS_OP_N, CUBLAS_OP_N},   // a[m, k] b[k, n]
                                 {"nt", CUBLAS_OP_N, CUBLAS_OP_T}};  // a[k, m]^T b[k, n]

template <class Row, std::size_t n>
const Row& named(const Row (&rows)[n], const std::string& name) {
  for (const Row& row : rows)
    if (name == row.name) return row;
  not_supported("a product with " + name);
}

}  // namespace

struct GemmProduct::Parts {
  const CublasLt& api = cublas_lt();
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, out = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t chosen{};
  float beta = 0;  // 1: what is in `out` is added to
  GpuBuffer first_data, second_data, out_data, bias, scale, workspace;

  Parts() { check(api.create(&handle), "opening cuBLASLt"); }

  ~Parts() {
    if (preference != nullptr) api.preference_destroy(preference);
    for (const auto layout : {first, second, out})
      if (layout != nullptr) api.layout_destroy(layout);
    if (product != nullptr) api.matmul_destroy(product);
    api.destroy(handle);
  }

  template <class T>
  void set_product(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(api.matmul_set(product, attribute, &value, sizeof value), "describing the product");
  }

  // A column-major matrix of rows x columns, `batch` of them one behind another.
  cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                int batch) {
    cublasLtMatrixLayout_t made = nullptr;
    check(api.layout_create(&made, type, static_cast<std::uint64_t>(rows),
                            static_cast<std::uint64_t>(columns), rows),
          "describing a matrix");
    const std::int64_t stride = rows * columns;
    check(api.layout_set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
          "describing a matrix");
    check(api.layout_set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
          "describing a matrix");
    return made;
  }

  void describe(const BenchPoint& point);
  void allocate(const BenchPoint& point, cudaStream_t stream);
  void scale_fp8(cudaStream_t stream);
  void choose();
};

void GemmProduct::Parts::describe(const BenchPoint& point) {
  const DtypeRow& dtype = named(dtypes, point.labels.at("dtype"));
  const LayoutRow& order = named(layouts, point.labels.at("layout"));
  const EpilogueRow& after = named(epilogues, point.labels.at("epilogue"));
  const std::int64_t m = point.sizes.at("m"), n = point.sizes.at("n"), k = point.sizes.at("k");
  const int batch = static_cast<int>(point.sizes.at("batch"));
  check(api.matmul_create(&product, dtype.compute, CUDA_R_32F), "describing the product");
  set_product(CUBLASLT_MATMUL_DESC_TRANSA, order.first);
  set_product(CUBLASLT_MATMUL_DESC_TRANSB, order.second);
  set_product(CUBLASLT_MATMUL_DESC_EPILOGUE, after.epilogue);
  const bool first_turned = order.first == CUBLAS_OP_T, second_turned = order.second == CUBLAS_OP_T;
  first = layout(dtype.in, first_turned ? k : n, first_turned ? n : k, batch);
  second = layout(dtype.in, second_turned ? m : k, second_turned ? k : m, batch);
  const bool accumulate = std::string_view(after.name) == "accumulate";
  beta = accumulate ? 1 : 0;
  out = layout(accumulate ? CUDA_R_32F : dtype.out, n, m, batch);
}

void GemmProduct::Parts::allocate(const BenchPoint& point, cudaStream_t stream) {
  const std::string& dtype = point.labels.at("dtype");
  const std::int64_t m = point.sizes.at("m"), n = point.sizes.at("n"), k = point.sizes.at("k");
  const std::int64_t in = element_bytes(dtype) * point.sizes.at("batch");
  const std::string& epilogue = point.labels.at("epilogue");
  const std::int64_t wide = epilogue == "accumulate" ? 4
                            : dtype == "fp8"         ? 2
                                                     : element_bytes(dtype);
  first_data = GpuBuffer(Bytes(n * k * in));
  second_data = GpuBuffer(Bytes(m * k * in));
  out_data = GpuBuffer(Bytes(m * n * wide * point.sizes.at("batch")));
  workspace = GpuBuffer(workspace_bytes);
  fill_randomly(first_data.data(), first_data.bytes(), dtype, stream);
  fill_randomly(second_data.data(), second_data.bytes(), dtype, stream);
  if (beta == 1) fill_randomly(out_data.data(), out_data.bytes(), "fp32", stream);
  if (epilogue == "bias" || epilogue == "gelu_bias") {
    bias = GpuBuffer(Bytes(n * wide));
    fill_randomly(bias.data(), bias.bytes(), dtype == "fp8" ? "bf16" : dtype, stream);
    set_product(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.as<const void>());
  }
  if (dtype == "fp8") scale_fp8(stream);
}

// fp8 factors come with a scale each, here 1, and sums are kept as training keeps them (fast
// accumulation, torch._scaled_mm's choice for the forward pass).
void GemmProduct::Parts::scale_fp8(cudaStream_t stream) {
  const float one = 1;
  scale = GpuBuffer(Bytes(sizeof one));
  check(cudaMemcpyAsync(scale.data(), &one, sizeof one, cudaMemcpyHostToDevice, stream),
        "copying a scale");
  check(cudaStreamSynchronize(stream), "copying a scale");
  set_product(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale.as<const void>());
  set_product(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale.as<const void>());
  set_product(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
}

void GemmProduct::Parts::choose() {
  check(api.preference_create(&preference), "preparing the heuristic");
  const auto most = static_cast<std::uint64_t>(workspace_bytes.value);
  check(
      api.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
      "preparing the heuristic");
  int found = 0;
  check(api.heuristic(handle, product, first, second, out, out, preference, 1, &chosen, &found),
        "asking for an algorithm");
  if (found == 0) not_supported("cuBLASLt knows no algorithm for this product");
}

GemmProduct::GemmProduct(const BenchPoint& point, cudaStream_t stream)
    : parts_(std::make_unique<Parts>()) {
  parts_->describe(point);
  parts_->allocate(point, stream);
  parts_->choose();
}

GemmProduct::~GemmProduct() = default;

void GemmProduct::enqueue(cudaStream_t stream) const {
  const Parts& p = *parts_;
  const float alpha = 1;
  check(p.api.matmul(p.handle, p.product, &alpha, p.first_data.data(), p.first,
                     p.second_data.data(), p.second, &p.beta, p.out_data.data(), p.out,
                     p.out_data.data(), p.out, &p.chosen.algo, p.workspace.data(),
                     static_cast<std::size_t>(p.workspace.bytes().value), stream),
        "multiplying");
}

RunOnce prepare_gemm(Gpu& gpu, const BenchPoint& point) {
  const auto product = std::make_shared<GemmProduct>(point, gpu.stream());
  return
      [&gpu, product] { return gpu.timed([&](cudaStream_t stream) { product->enqueue(stream); }); };
}

}  // namespace shardwise
