// Output of NVIDIA's nvbandwidth: the text with its matrices, and `nvbandwidth -j`.
//
//   Running host_to_device_memcpy_ce.
//   memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
//              0         1
//    0     55.64     55.63
//   SUM host_to_device_memcpy_ce 111.27
//
//   bench "copy", sizes {row, column}, labels {test, direction, engine, device}, quantity
//   "bytes_per_s" (of both directions together where `direction` says bidirectional);
//   bench "latency", quantity "time_s", where a test counts nanoseconds
#pragma once

#include <string_view>

#include "calibrate/imported_log.hpp"

namespace shardwise {

bool looks_like_nvbandwidth(std::string_view text);
void import_nvbandwidth(std::string_view text, ImportedLog& log);

bool looks_like_nvbandwidth_json(std::string_view text);
void import_nvbandwidth_json(std::string_view text, ImportedLog& log);

// Labels of a test by its name: "device_to_device_bidirectional_memcpy_read_ce" is direction
// "device_to_device_bidirectional_read", engine "ce".
std::map<std::string, std::string> nvbandwidth_labels(std::string_view test);

}  // namespace shardwise
