// Traces of PyTorch's profiler (Kineto): `torch.profiler.profile(...).export_chrome_trace(FILE)`.
//
//   bench "step"         quantity "time_s": from the start of one ProfilerStep to that of the next;
//                        sizes {steps}
//   bench "step_memory"  quantity "bytes", labels {kind: allocated | reserved}: the peak
//                        (needs profile_memory=True)
//   bench "kernel"       quantity "time_s" per step, labels {class, device}, sizes {calls} per step
//   bench "gemm"         quantity "time_s", sizes {m, n, k, batch}, labels {dtype, device}
//                        (needs record_shapes=True), for aten::mm, addmm and bmm
//   bench "memory_kernel" quantity "time_s", sizes {elements, bytes}, labels {kernel:
//                        element_by_element, device} (needs record_shapes=True): PyTorch's kernels
//                        that divide out an index for each element (calibrate/memory_fit.hpp)
//
// Only whole steps count: the last one of a trace has no successor and is measured by its own
// duration only where it is the only one. Kernels before the first step are left out.
#pragma once

#include <string_view>
#include <vector>

#include "calibrate/imported_log.hpp"
#include "calibrate/kernel_class.hpp"

namespace shardwise {

bool looks_like_kineto(std::string_view text);
void import_kineto(std::string_view text, const std::vector<KernelClass>& classes,
                   ImportedLog& log);

}  // namespace shardwise
