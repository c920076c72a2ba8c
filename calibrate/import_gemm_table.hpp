// Tables of matrix products: mamf-finder's output of every version, and any table with a shape and
// a rate in each line.
//
//   2916 |   25.6(mean)   25.6(median)   25.8(max) @ 13312x15360x6144     | best: ...
//   mean:   35.1 TFLOPS @ 15360x3072x1024 (MxNxK)
//   #  MxNxK                mean median    max   best     W   MHz
//   18  3072x2816x20480     828.4  828.6  831.6  828.4   506  1980
//   Trial 7 finished with value: {'TFLOPS': 291.58} and parameters: {'M': 6912, 'N': 512, 'K': 64}
//   m,n,k,dtype,tflops          (comma, tab or bar separated, any order; also time_us or time_ms)
//
//   bench "gemm", sizes {m, n, k}, labels {dtype, statistic, device}, quantity "flops_per_s"
//
// `statistic` is mean, median, max, burst (short runs at boost clock) or sustained (under the power
// limit). Formats without a stated dtype are left without one.
#pragma once

#include <string_view>

#include "calibrate/imported_log.hpp"

namespace shardwise {

bool looks_like_gemm_table(std::string_view text);
void import_gemm_table(std::string_view text, ImportedLog& log);

// "torch.bfloat16", "bf16", "c10::BFloat16" are "bf16"; empty where the name is not known.
std::string gemm_dtype(std::string_view name);

}  // namespace shardwise
