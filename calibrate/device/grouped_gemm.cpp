// The products of a layer of experts in one grouped call of cuBLAS (12.5 and newer).
#include <numeric>

#include "calibrate/device/cublas_library.hpp"
#include "calibrate/device/gpu_benches.hpp"
#include "calibrate/device/pacing_kernels.hpp"

namespace shardwise {

#ifdef SHARDWISE_GROUPED_GEMM

namespace {

// out[e] = x[e] w[e]^T for each expert e, all row-major: as cuBLAS counts, n x m matrices.
class GroupedProduct {
 public:
  GroupedProduct(const BenchPoint& point, cudaStream_t stream)
      : experts_(static_cast<int>(point.sizes.at("experts"))),
        m_(static_cast<int>(point.sizes.at("m"))),
        n_(static_cast<int>(point.sizes.at("n"))),
        k_(static_cast<int>(point.sizes.at("k"))),
        type_(point.labels.at("dtype") == "bf16" ? CUDA_R_16BF : CUDA_R_16F) {
    const std::string& dtype = point.labels.at("dtype");
    if (dtype != "bf16" && dtype != "fp16") not_supported("grouped products of " + dtype);
    weights_ = filled(std::int64_t{n_} * k_, dtype, stream);
    tokens_ = filled(std::int64_t{m_} * k_, dtype, stream);
    out_ = filled(std::int64_t{m_} * n_, dtype, stream);
    pointers_ = GpuBuffer(Bytes(3 * experts_ * static_cast<std::int64_t>(sizeof(void*))));
    write_pointers(stream);
    check(api_.create(&handle_), "opening cuBLAS");
    check(api_.set_stream(handle_, stream), "opening cuBLAS");
  }
  ~GroupedProduct() { api_.destroy(handle_); }
  GroupedProduct(const GroupedProduct&) = delete;
  GroupedProduct& operator=(const GroupedProduct&) = delete;

  // One group of equal shapes: tokens are spread evenly.
  void enqueue() const {
    const cublasOperation_t turned = CUBLAS_OP_T, straight = CUBLAS_OP_N;
    const float alpha = 1, beta = 0;
    auto* const* pointers = pointers_.as<void*>();
    check(api_.grouped(handle_, &turned, &straight, &n_, &m_, &k_, &alpha, pointers, type_, &k_,
                       pointers + experts_, type_, &k_, &beta, pointers + 2 * experts_, type_, &n_,
                       1, &experts_, CUBLAS_COMPUTE_32F),
          "multiplying in groups");
  }

 private:
  GpuBuffer filled(std::int64_t elements, const std::string& dtype, cudaStream_t stream) const {
    GpuBuffer buffer(Bytes(2 * elements * experts_));
    fill_randomly(buffer.data(), buffer.bytes(), dtype, stream);
    return buffer;
  }

  void write_pointers(cudaStream_t stream) {
    std::vector<void*> pointers;
    for (const GpuBuffer* buffer : {&weights_, &tokens_, &out_})
      for (int e = 0; e < experts_; ++e)
        pointers.push_back(buffer->as<char>() + buffer->bytes().value / experts_ * e);
    check(cudaMemcpyAsync(pointers_.data(), pointers.data(), pointers.size() * sizeof(void*),
                          cudaMemcpyHostToDevice, stream),
          "copying pointers");
    check(cudaStreamSynchronize(stream), "copying pointers");
  }

  const Cublas& api_ = cublas();
  cublasHandle_t handle_ = nullptr;
  int experts_, m_, n_, k_;
  cudaDataType_t type_;
  GpuBuffer weights_, tokens_, out_, pointers_;
};

}  // namespace

RunOnce prepare_gemm_grouped(Gpu& gpu, const BenchPoint& point) {
  const auto product = std::make_shared<GroupedProduct>(point, gpu.stream());
  // Nothing says that the call never waits for the GPU, so it is not queued behind a held stream.
  return [&gpu, product] {
    return gpu.timed([&](cudaStream_t) { product->enqueue(); }, Gpu::Start::at_once);
  };
}

#else

RunOnce prepare_gemm_grouped(Gpu&, const BenchPoint&) {
  not_supported("grouped products need cuBLAS 12.5");
}

#endif

}  // namespace shardwise
