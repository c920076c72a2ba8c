#include "calibrate/device/attention_kernels.hpp"
#include "calibrate/device/gpu_benches.hpp"
#include "calibrate/device/pacing_kernels.hpp"

namespace shardwise {
namespace {

AttentionShape shape_of(const BenchPoint& point) {
  const auto size = [&](const char* key) { return static_cast<int>(point.sizes.at(key)); };
  return {size("batch"),    size("heads"),    size("kv_heads"),
          size("sequence"), size("head_dim"), point.labels.at("causal") == "yes"};
}

// All tensors of both passes; those of the backward pass only where it is asked for.
struct Memory {
  GpuBuffer q, k, v, o, log_sums, d_o, d_q, pulls, d_k, d_v;

  Memory(const AttentionShape& shape, const std::string& dtype, bool backward,
         cudaStream_t stream) {
    const std::int64_t queries = std::int64_t{shape.batch} * shape.heads * shape.sequence;
    const std::int64_t keys = std::int64_t{shape.batch} * shape.kv_heads * shape.sequence;
    const auto halves = [&](std::int64_t rows) {
      GpuBuffer buffer(Bytes(2 * rows * shape.head_dim));
      fill_randomly(buffer.data(), buffer.bytes(), dtype, stream);
      return buffer;
    };
    q = halves(queries);
    k = halves(keys);
    v = halves(keys);
    o = halves(queries);
    log_sums = GpuBuffer(Bytes(4 * queries));
    if (!backward) return;
    d_o = halves(queries);
    d_q = GpuBuffer(Bytes(4 * queries * shape.head_dim));
    pulls = GpuBuffer(Bytes(4 * queries));
    d_k = halves(queries);
    d_v = halves(queries);
  }

  AttentionTensors tensors() const {
    return {q.data(),   k.data(),        v.data(),          o.data(),   log_sums.as<float>(),
            d_o.data(), d_q.as<float>(), pulls.as<float>(), d_k.data(), d_v.data()};
  }
};

void require_support(const Gpu& gpu, const AttentionShape& shape) {
  if (gpu.compute_capability() < 80) not_supported("our attention needs compute capability 8.0");
  if (shape.sequence % attention_tile != 0) not_supported("our attention works on tiles of 64");
  if (shape.head_dim != 64 && shape.head_dim != 128)
    not_supported("our attention has head dimensions 64 and 128");
}

}  // namespace

RunOnce prepare_attention(Gpu& gpu, const BenchPoint& point) {
  const AttentionShape shape = shape_of(point);
  require_support(gpu, shape);
  const std::string dtype = point.labels.at("dtype");
  const bool backward = point.labels.at("pass") == "backward";
  const auto memory = std::make_shared<Memory>(shape, dtype, backward, gpu.stream());
  // The backward pass reads what a forward pass wrote.
  launch_attention_forward(dtype, shape, memory->tensors(), gpu.stream());
  check(cudaGetLastError(), "launching attention");
  const auto launch = backward ? launch_attention_backward : launch_attention_forward;
  return [&gpu, memory, launch, shape, dtype] {
    return gpu.timed([&](cudaStream_t stream) {
      launch(dtype, shape, memory->tensors(), stream);
      check(cudaGetLastError(), "launching attention");
    });
  };
}

}  // namespace shardwise
