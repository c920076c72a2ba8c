// Memory of the current GPU, or pinned memory of the host, given back when it goes out of scope.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "calibrate/device/cuda_failure.hpp"
#include "catalog/units.hpp"

namespace shardwise {

class GpuBuffer {
 public:
  GpuBuffer() = default;
  explicit GpuBuffer(Bytes bytes) : bytes_(bytes) {
    check(cudaMalloc(&data_, static_cast<std::size_t>(bytes.value)), "allocating on the GPU");
  }
  GpuBuffer(GpuBuffer&& other) noexcept { swap(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~GpuBuffer() { cudaFree(data_); }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  Bytes bytes() const { return bytes_; }

 private:
  void swap(GpuBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* data_ = nullptr;
  Bytes bytes_;
};

class PinnedBuffer {
 public:
  explicit PinnedBuffer(Bytes bytes) {
    check(cudaMallocHost(&data_, static_cast<std::size_t>(bytes.value)), "pinning host memory");
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() { cudaFreeHost(data_); }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace shardwise
