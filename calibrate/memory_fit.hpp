// MemoryFit: how fast kernels that only move bytes are, on one kind of GPU.
//
//   t = start + moved / (fraction x memory bandwidth)     (simulator/costs/memory_bound_model.hpp)
//
// `moved` counts every byte that is read and every byte that is written once. Robust regression
// over copies inside the GPU and the row and element kernels of shardwise-calibrate, by access.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibrate/measurement.hpp"
#include "catalog/device_profile.hpp"

namespace shardwise {

struct MovedBytes {
  Bytes moved;
  Seconds time;
  MemoryAccess access = MemoryAccess::streaming;
};

// What tells bytes and a time: copies "device_local" (twice their size: read and written) and the
// kernels of memory_kernel_rows(). A copy without a size counts as one of a gigabyte.
std::vector<MovedBytes> moved_bytes(const std::vector<Measurement>& measurements);

// "memory.streaming_fraction", "memory.reduction_fraction" and, where small sizes tell it,
// "memory.start_us". A fraction that would exceed 1 ends at 1, and a note says so.
std::map<std::string, MeasuredConstant> fit_memory(const std::vector<MovedBytes>& points,
                                                   BytesPerSecond bandwidth,
                                                   std::vector<std::string>& notes);

}  // namespace shardwise
