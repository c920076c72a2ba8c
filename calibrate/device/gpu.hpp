// One GPU of this process: its stream, its timer, its driver's facts.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "calibrate/device/gpu_buffer.hpp"
#include "calibrate/device/nvml.hpp"
#include "calibrate/measuring/bench_device.hpp"

namespace shardwise {

class Gpu {
 public:
  Gpu(int index, const Nvml& nvml);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int index() const { return index_; }
  int compute_capability() const { return compute_capability_; }  // 89: 8.9

  // Makes it the current GPU of the calling thread. The first call creates the context, the stream
  // and the buffer that flushes the L2 cache. Throws CudaFailure.
  void activate();

  cudaStream_t stream() const { return stream_; }

  // What the context took when it was created, as the driver shows it; and what is in use now.
  std::optional<Bytes> context_bytes() const { return context_bytes_; }
  std::optional<Bytes> used() const;
  ClockState clock_state() const;

  // The time on the GPU of what `enqueue` puts into the stream, from cold caches. `held`: the GPU
  // begins when all of it is in the queue; not possible where enqueue waits for the GPU itself.
  // REQUIRES: activate() was called on this thread last.
  enum class Start { held, at_once };
  Sample timed(const std::function<void(cudaStream_t)>& enqueue, Start start = Start::held);

  // The parts of it, for work on several GPUs at once. REQUIRES: each on the current GPU, but for
  // release().
  void hold();                                    // the stream, until released
  void release();                                 // lets the GPU begin
  bool gave_up() const { return gate_[1] == 1; }  // it began before it was released
  void begin();
  void end();
  Seconds elapsed();  // between begin and end; waits for the end

 private:
  int index_;
  int compute_capability_ = 0;
  const Nvml& nvml_;
  std::optional<Nvml::Device> facts_;
  std::optional<Bytes> context_bytes_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begun_ = nullptr;
  cudaEvent_t ended_ = nullptr;
  GpuBuffer flush_;
  volatile int* gate_ = nullptr;  // two ints in pinned memory: open, gave up
};

}  // namespace shardwise
