#include "calibrate/measuring/kernel_traffic.hpp"

namespace shardwise {
namespace {

template <class Value>
Value member(const std::map<std::string, Value>& of, const char* key) {
  const auto found = of.find(key);
  return found == of.end() ? Value{} : found->second;
}

}  // namespace

std::optional<KernelTraffic> kernel_traffic(const std::map<std::string, std::int64_t>& sizes,
                                            const std::map<std::string, std::string>& labels) {
  const std::string kernel = member(labels, "kernel");
  const std::int64_t parameters = member(sizes, "parameters");
  // Adam: four fp32 read, three written. NF4: half a byte, an fp32 scale a block, two written.
  if (kernel == "adam") return KernelTraffic{Bytes(28 * parameters)};
  if (const std::int64_t block = member(sizes, "block"); kernel == "nf4_dequantise" && block > 0)
    return KernelTraffic{Bytes(parameters / 2 + 4 * parameters / block + 2 * parameters)};
  const std::int64_t rows = member(sizes, "rows"), columns = member(sizes, "columns");
  for (const RowTraffic& row : row_traffic) {
    if (row.kernel != kernel) continue;
    const bool again = Bytes(row.read * columns) > cached_row;
    const int each = row.read + row.written + (again ? row.read_again : 0);
    return KernelTraffic{Bytes(rows * columns * each), row.access};
  }
  return std::nullopt;
}

}  // namespace shardwise
