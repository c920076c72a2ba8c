#include <array>
#include <string_view>

#include "calibrate/measuring/bench_plan.hpp"

namespace shardwise {
namespace {

// [B per element] of the kernels of calibrate/device/row_kernels.cu, in 16-bit formats.
struct RowTraffic {
  std::string_view kernel;
  int read, written;
};
constexpr std::array<RowTraffic, 13> by_row{{
    {"rms_norm", 2, 2},
    {"rms_norm_backward", 4, 2},
    {"layer_norm", 2, 2},
    {"softmax", 2, 2},
    {"softmax_backward", 4, 2},
    {"cross_entropy", 4, 2},
    {"gather", 2, 2},
    {"add", 4, 2},
    {"gelu", 2, 2},
    {"gelu_backward", 4, 2},
    {"silu_multiply", 4, 2},
    {"silu_multiply_backward", 6, 4},
    {"cast_to_fp32", 2, 4},
}};

template <class Value>
std::optional<Value> member(const std::map<std::string, Value>& of, const char* key) {
  const auto found = of.find(key);
  if (found == of.end()) return std::nullopt;
  return found->second;
}

std::optional<Bytes> of_kernel(const std::map<std::string, std::int64_t>& sizes,
                               const std::string& kernel) {
  if (const auto parameters = member(sizes, "parameters")) {
    // Adam: four fp32 read, three written. NF4: half a byte, an fp32 scale a block, two written.
    if (kernel == "adam") return Bytes(28 * *parameters);
    const auto block = member(sizes, "block");
    if (!block || *block == 0) return std::nullopt;
    return Bytes(*parameters / 2 + 4 * *parameters / *block + 2 * *parameters);
  }
  const auto rows = member(sizes, "rows"), columns = member(sizes, "columns");
  for (const RowTraffic& row : by_row)
    if (row.kernel == kernel && rows && columns)
      return Bytes(*rows * *columns * (row.read + row.written));
  return std::nullopt;
}

}  // namespace

std::optional<Bytes> bytes_moved(const std::string& bench,
                                 const std::map<std::string, std::int64_t>& sizes,
                                 const std::map<std::string, std::string>& labels) {
  if (bench == "memory_kernel") return of_kernel(sizes, member(labels, "kernel").value_or(""));
  const auto bytes = member(sizes, "bytes");
  if (bench != "copy" || !bytes) return std::nullopt;
  // On one GPU a copy is read and written in the same memory.
  return Bytes(member(labels, "direction") == "device_local" ? 2 * *bytes : *bytes);
}

}  // namespace shardwise
