#include <vector>

#include "calibrate/device/gpu_benches.hpp"
#include "calibrate/device/memory_kernels.hpp"
#include "calibrate/device/pacing_kernels.hpp"

namespace shardwise {
namespace {

GpuBuffer filled(Bytes bytes, const std::string& dtype, cudaStream_t stream) {
  GpuBuffer buffer(bytes);
  fill_randomly(buffer.data(), bytes, dtype, stream);
  return buffer;
}

struct Tensors {
  std::vector<GpuBuffer> buffers;
  std::vector<void*> pointers;
  void add(GpuBuffer buffer) {
    pointers.push_back(buffer.data());
    buffers.push_back(std::move(buffer));
  }
};

RunOnce over_rows(Gpu& gpu, const BenchPoint& point, const RowKernel& kernel) {
  const std::string& dtype = point.labels.at("dtype");
  const std::int64_t rows = point.sizes.at("rows"), columns = point.sizes.at("columns");
  if (columns % row_pack != 0) not_supported("columns that are no multiple of 8");
  const auto tensors = std::make_shared<Tensors>();
  for (int i = 0; i < kernel.inputs; ++i)
    tensors->add(filled(Bytes(2 * rows * columns), dtype, gpu.stream()));
  // The widest output has 4 bytes an element.
  for (int i = 0; i < kernel.outputs; ++i) tensors->add(GpuBuffer(Bytes(4 * rows * columns)));
  const auto launch = dtype == "bf16" ? kernel.bf16 : kernel.fp16;
  return [&gpu, tensors, launch, rows, columns] {
    return gpu.timed([&](cudaStream_t stream) {
      launch(tensors->pointers.data(), rows, columns, stream);
      check(cudaGetLastError(), "launching");
    });
  };
}

// One kernel over each of `tensors` equal parts: with one part, what a fused optimizer does.
RunOnce adam(Gpu& gpu, const BenchPoint& point) {
  const std::int64_t tensors = point.sizes.at("tensors");
  const std::int64_t each = point.sizes.at("parameters") / tensors / 4 * 4;
  if (each == 0) not_supported("fewer than 4 parameters a tensor");
  const auto states = std::make_shared<Tensors>();
  for (int i = 0; i < 4; ++i) states->add(filled(Bytes(4 * each * tensors), "fp32", gpu.stream()));
  // The second moment is no square of anything here: zeros, so that its root is a number.
  check(cudaMemsetAsync(states->pointers[3], 0, static_cast<std::size_t>(4 * each * tensors),
                        gpu.stream()),
        "clearing memory");
  return [&gpu, states, each, tensors] {
    return gpu.timed([&](cudaStream_t stream) {
      const auto part = [&](int i, std::int64_t tensor) {
        return static_cast<float*>(states->pointers[static_cast<std::size_t>(i)]) + each * tensor;
      };
      for (std::int64_t t = 0; t < tensors; ++t)
        launch_adam(part(0, t), part(1, t), part(2, t), part(3, t), each, stream);
      check(cudaGetLastError(), "launching");
    });
  };
}

RunOnce nf4_dequantise(Gpu& gpu, const BenchPoint& point) {
  const std::int64_t count = point.sizes.at("parameters") / nf4_block * nf4_block;
  if (count == 0) not_supported("fewer parameters than one block");
  const auto tensors = std::make_shared<Tensors>();
  tensors->add(filled(Bytes(count / 2), "fp8", gpu.stream()));
  tensors->add(filled(Bytes(4 * count / nf4_block), "fp32", gpu.stream()));
  tensors->add(GpuBuffer(Bytes(2 * count)));
  return [&gpu, tensors, count] {
    return gpu.timed([&](cudaStream_t stream) {
      launch_nf4_dequantise(tensors->buffers[0].as<std::uint8_t>(), tensors->buffers[1].as<float>(),
                            tensors->pointers[2], count, stream);
      check(cudaGetLastError(), "launching");
    });
  };
}

}  // namespace

RunOnce prepare_memory_kernel(Gpu& gpu, const BenchPoint& point) {
  const std::string& name = point.labels.at("kernel");
  if (name == "adam") return adam(gpu, point);
  if (name == "nf4_dequantise") return nf4_dequantise(gpu, point);
  for (const RowKernel& kernel : row_kernels())
    if (name == kernel.name) return over_rows(gpu, point, kernel);
  not_supported("no kernel of this name");
}

}  // namespace shardwise
