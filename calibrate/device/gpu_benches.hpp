// The benches of one GPU: each prepares a point (sizes and labels as calibrate/measuring/
// bench_plan.hpp has them) on the GPU that is current, and throws CudaFailure where it cannot.
#pragma once

#include "calibrate/device/gpu.hpp"
#include "calibrate/measuring/bench_device.hpp"

namespace shardwise {

using RunOnce = std::function<Sample()>;

RunOnce prepare_gemm(Gpu& gpu, const BenchPoint& point);
RunOnce prepare_gemm_grouped(Gpu& gpu, const BenchPoint& point);
RunOnce prepare_attention(Gpu& gpu, const BenchPoint& point);
RunOnce prepare_memory_kernel(Gpu& gpu, const BenchPoint& point);
RunOnce prepare_copy(Gpu& gpu, const BenchPoint& point);
RunOnce prepare_launch(Gpu& gpu, const BenchPoint& point);
RunOnce prepare_memory_held(Gpu& gpu, const BenchPoint& point);

// The GPU for the measuring loop: every bench above, its failures caught. `gpu` must outlive it.
BenchDevice bench_device(Gpu& gpu);

// A figure that is told, not timed: known well at once.
RunOnce always(Bytes bytes);

// What the loop needs of a prepared bench: failures caught at each run.
Prepared guarded(const std::function<RunOnce()>& prepare);

}  // namespace shardwise
