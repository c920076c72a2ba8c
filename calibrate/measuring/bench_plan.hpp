// The grids: which points are measured on a GPU, in quick and in full mode. What each bench's sizes
// and labels mean stands here, where they are made; the CUDA program gives them their kernels.
//
//   gemm            out[m, n] = a b over k, `batch` of them. layout: tn is x[m, k] w[n, k]^T (a
//                   linear layer forward), nn the gradient of its input, nt that of its weight.
//                   epilogue: none, bias, gelu_bias, accumulate (into an fp32 out).
//   gemm_grouped    `experts` products of m, n, k in one call.
//   attention       scores of `sequence` x `sequence` (half of them where causal) in `batch` x
//                   `heads` heads of `head_dim`; pass: forward, backward (dq, dk, dv from do).
//   memory_kernel   one kernel over rows x columns elements (adam: over `parameters`).
//   copy            `bytes` in one direction: device_local, host_to_device, device_to_host; host:
//                   pinned, pageable, none. `from`, `to`: device_to_device, of two GPUs, one way or
//                   (device_to_device_bidirectional) both at once, the time of the slower.
//   launch          seconds per kernel; kind: gpu_gap (back to back), host_issue (the CPU's part),
//                   graph.
//   memory_held     bytes that the driver shows as used; by: context, cublas (beyond a
//                   product's matrices and workspace), nccl_communicator.
//   copy_together   as copy, on `gpus` GPUs at once: the slowest.
//   collective      as nccl-tests: `bytes` of the larger buffer of one rank, `ranks`, `nodes`.
//   gemm_beside     a gemm of m, n, k while a collective of `bytes` runs on the same GPU.
#pragma once

#include "calibrate/measuring/bench_point.hpp"
#include "catalog/units.hpp"

namespace shardwise {

inline constexpr std::int64_t kib = 1 << 10;
inline constexpr std::int64_t mib = 1 << 20;

enum class CalibrationMode { quick, full };

struct GpuTraits {
  int compute_capability = 0;  // 89: 8.9
  Bytes memory;
};

struct GroupTraits {
  int gpus = 1;   // of this process
  int ranks = 1;  // of all processes: equal to gpus where there is one process
  int nodes = 1;
};

BenchPlan gpu_plan(CalibrationMode mode, const GpuTraits& gpu);
BenchPlan gemm_plan(CalibrationMode mode, const GpuTraits& gpu);
BenchPlan kernel_plan(CalibrationMode mode, const GpuTraits& gpu);  // attention and memory kernels
BenchPlan copy_plan(CalibrationMode mode);                          // copies, launches, memory held

// Of all GPUs together: empty for one GPU.
BenchPlan machine_plan(CalibrationMode mode, const GroupTraits& group);

Seconds gpu_budget(CalibrationMode mode);
Seconds machine_budget(CalibrationMode mode);

}  // namespace shardwise
