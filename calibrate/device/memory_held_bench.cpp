// What the driver shows as used by things that no framework's allocator counts.
#include "calibrate/device/gemm_product.hpp"

namespace shardwise {

RunOnce always(Bytes bytes) {
  return [bytes] {
    Sample sample;
    sample.value = static_cast<double>(bytes.value);
    sample.busy = Seconds(1);
    return sample;
  };
}

namespace {

RunOnce context(Gpu& gpu) {
  if (!gpu.context_bytes()) not_supported("the driver does not tell the memory in use");
  return always(*gpu.context_bytes());
}

// Of a first product, beyond its matrices and the workspace that we allocate for it: kernels that
// are loaded, and what the library takes for itself.
RunOnce first_product(Gpu& gpu) {
  const auto before = gpu.used();
  BenchPoint point;
  point.labels = {{"dtype", "fp16"}, {"layout", "tn"}, {"epilogue", "none"}};
  point.sizes = {{"m", 256}, {"n", 256}, {"k", 256}, {"batch", 1}};
  std::optional<Bytes> after;
  {
    GemmProduct product(point, gpu.stream());
    product.enqueue(gpu.stream());
    check(cudaStreamSynchronize(gpu.stream()), "multiplying");
  }
  after = gpu.used();
  if (!before || !after) not_supported("the driver does not tell the memory in use");
  return always(std::max(Bytes(0), *after - *before));
}

}  // namespace

RunOnce prepare_memory_held(Gpu& gpu, const BenchPoint& point) {
  const std::string& by = point.labels.at("by");
  if (by == "context") return context(gpu);
  if (by == "cublas") return first_product(gpu);
  not_supported("memory held by " + by);
}

}  // namespace shardwise
