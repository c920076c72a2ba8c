// MemoryFit: how fast kernels that only move bytes are, on one kind of GPU.
//
//   t = start + moved / (fraction x memory bandwidth)     (simulator/costs/memory_bound_model.hpp)
//
// `moved` counts every byte that is read and every byte that is written once. Robust regression
// over copies inside the GPU and the row and element kernels of shardwise-calibrate, by access.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
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

// "memory.streaming_fraction", "memory.reduction_fraction", "memory.gather_fraction" and, where
// small sizes tell it, "memory.start_us". A fraction above 1 ends at 1, and a note says so.
std::map<std::string, MeasuredConstant> fit_memory(const std::vector<MovedBytes>& points,
                                                   BytesPerSecond bandwidth,
                                                   std::vector<std::string>& notes);

// A kernel that takes elements one by one: PyTorch's, where operands are broadcast, strided or of
// different types. `most_moved`: every operand and the result once, a result of the widest type.
struct SingleElements {
  double elements = 0;  // of the result
  Bytes most_moved;
  Seconds time;
};
inline constexpr std::string_view element_by_element = "element_by_element";
std::vector<SingleElements> single_elements(const std::vector<Measurement>& measurements);

// "memory.cycles_per_element": the median of those that memory does not bound (bytes at `streaming`
// for less than three quarters of the time) and that take at least ten times `start`. Nothing where
// there are none, or the GPU's multiprocessors or clock are not known.
std::optional<MeasuredConstant> fit_cycles(const std::vector<SingleElements>& points,
                                           const Gpu& gpu, BytesPerSecond streaming, Seconds start);

}  // namespace shardwise
