// Logs of nccl-tests and rccl-tests, as people paste them.
//
//   #       size         count      type   redop    root     time   algbw   busbw  #wrong ...
//           8192          2048     float     sum      -1    31.25    0.26    0.46       0 ...
//
// Read: several runs one after another, out-of-place and in-place columns or only one of them, with
// and without the columns redop, root and #wrong (versions 1.x to 2.2x, one with `error`), lines
// that mpirun, srun, pods or Markdown prefixed, logs without header. A row counts only if its time
// and its bandwidth agree: algbw = size / time.
//
//   bench "collective", sizes {bytes, ranks, nodes}, labels {collective, dtype, placement, device},
//   quantity "time_s"
//
// The number of ranks comes from the list of devices, else from busbw / algbw, which is
// 2(n-1)/n for all-reduce and (n-1)/n for the others (nccl-tests doc/PERFORMANCE.md).
#pragma once

#include <string_view>

#include "calibrate/imported_log.hpp"

namespace shardwise {

bool looks_like_nccl_tests(std::string_view text);
void import_nccl_tests(std::string_view text, ImportedLog& log);

// "all_reduce" for "./build/all_reduce_perf_mpi" or "allreduce"; empty where none is named.
std::string collective_named(std::string_view text);

}  // namespace shardwise
