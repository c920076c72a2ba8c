#include "calibrate/device/gpu.hpp"

#include "calibrate/device/pacing_kernels.hpp"

namespace shardwise {
namespace {

int attribute(cudaDeviceAttr what, int gpu) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, what, gpu), "asking for an attribute");
  return value;
}

std::string bus_id(int gpu) {
  char text[32] = "";
  check(cudaDeviceGetPCIBusId(text, sizeof text, gpu), "asking for the PCI bus");
  return text;
}

}  // namespace

Gpu::Gpu(int index, const Nvml& nvml) : index_(index), nvml_(nvml) {
  compute_capability_ = 10 * attribute(cudaDevAttrComputeCapabilityMajor, index) +
                        attribute(cudaDevAttrComputeCapabilityMinor, index);
  facts_ = nvml.by_bus(bus_id(index));
}

// The context may be gone already: then these fail, and nobody minds.
Gpu::~Gpu() {
  if (stream_ == nullptr) return;
  cudaSetDevice(index_);
  cudaEventDestroy(begun_);
  cudaEventDestroy(ended_);
  cudaStreamDestroy(stream_);
  cudaFreeHost(const_cast<int*>(gate_));
}

void Gpu::activate() {
  const bool first = stream_ == nullptr;
  const auto before = first ? used() : std::nullopt;
  check(cudaSetDevice(index_), "choosing the GPU");
  if (!first) return;
  check(cudaFree(nullptr), "creating the context");
  if (const auto after = used(); before && after) context_bytes_ = *after - *before;
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  check(cudaEventCreate(&begun_), "creating an event");
  check(cudaEventCreate(&ended_), "creating an event");
  void* gate = nullptr;
  check(cudaHostAlloc(&gate, 2 * sizeof(int), cudaHostAllocMapped), "pinning host memory");
  gate_ = static_cast<volatile int*>(gate);
  // Twice the cache, so that no replacement policy keeps a part of what was in it.
  flush_ = GpuBuffer(Bytes(2 * std::int64_t{attribute(cudaDevAttrL2CacheSize, index_)} + 4096));
}

std::optional<Bytes> Gpu::used() const { return facts_ ? nvml_.used(*facts_) : std::nullopt; }

ClockState Gpu::clock_state() const { return facts_ ? nvml_.clock_state(*facts_) : ClockState{}; }

void Gpu::hold() {
  gate_[0] = 0;
  gate_[1] = 0;
  int* on_gpu = nullptr;
  check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&on_gpu), const_cast<int*>(gate_), 0),
        "mapping host memory");
  launch_hold(on_gpu, on_gpu + 1, stream_);
  check(cudaGetLastError(), "holding the stream");
}

Sample Gpu::timed(const std::function<void(cudaStream_t)>& enqueue, Start start) {
  check(cudaMemsetAsync(flush_.data(), 0, static_cast<std::size_t>(flush_.bytes().value), stream_),
        "flushing the L2 cache");
  if (start == Start::held) hold();
  begin();
  try {
    enqueue(stream_);
  } catch (...) {
    release();  // never leave the GPU waiting
    throw;
  }
  end();
  release();
  Sample sample;
  sample.busy = elapsed();
  sample.value = sample.busy.value;
  sample.disturbed = start == Start::held && gave_up();
  return sample;
}

void Gpu::release() { gate_[0] = 1; }

void Gpu::begin() { check(cudaEventRecord(begun_, stream_), "marking the begin"); }

void Gpu::end() { check(cudaEventRecord(ended_, stream_), "marking the end"); }

Seconds Gpu::elapsed() {
  check(cudaEventSynchronize(ended_), "waiting for the GPU");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begun_, ended_), "reading a time");
  return Seconds(static_cast<double>(milliseconds) * 1e-3);
}

}  // namespace shardwise
