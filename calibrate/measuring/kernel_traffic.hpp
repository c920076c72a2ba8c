// What the memory-bound kernels of shardwise-calibrate read and write: one table for the grid that
// is measured, for the rate that is shown and for the fit.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/profile.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// A kernel of calibrate/device/row_kernels.cu over rows x columns elements of 16 bits.
struct RowTraffic {
  std::string_view kernel;
  MemoryAccess access;
  int read, written;   // [B per element], each tensor once
  int read_again = 0;  // [B per element] of a second pass over the row
};

inline constexpr std::array<RowTraffic, 13> row_traffic{{
    {"gather", MemoryAccess::gather, 2, 2},
    {"rms_norm", MemoryAccess::reduction, 2, 2, 2},
    {"rms_norm_backward", MemoryAccess::reduction, 4, 2, 4},
    {"layer_norm", MemoryAccess::reduction, 2, 2, 2},
    {"softmax", MemoryAccess::reduction, 2, 2, 2},
    {"softmax_backward", MemoryAccess::reduction, 4, 2, 4},
    {"cross_entropy", MemoryAccess::reduction, 2, 2, 2},
    {"add", MemoryAccess::streaming, 4, 2},
    {"gelu", MemoryAccess::streaming, 2, 2},
    {"gelu_backward", MemoryAccess::streaming, 4, 2},
    {"silu_multiply", MemoryAccess::streaming, 4, 2},
    {"silu_multiply_backward", MemoryAccess::streaming, 6, 4},
    {"cast_to_fp32", MemoryAccess::streaming, 2, 4},
}};

// A second pass over a row finds it in a cache up to here, and reads memory again beyond: eight
// blocks of 256 threads share a multiprocessor, and the L2 of no data-centre card holds more than
// 48 KiB for each of its blocks (A100: 40 MiB over 8 x 108; H100: 50 over 8 x 132).
inline constexpr Bytes cached_row(32 << 10);

struct KernelTraffic {
  Bytes moved;
  MemoryAccess access = MemoryAccess::streaming;
};

// Of a "memory_kernel" by its labels and sizes; nothing for one that is not known. Adam counts in
// its fused form and per tensor alike.
std::optional<KernelTraffic> kernel_traffic(const std::map<std::string, std::int64_t>& sizes,
                                            const std::map<std::string, std::string>& labels);

}  // namespace shardwise
