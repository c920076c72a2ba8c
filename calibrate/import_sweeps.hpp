// Micro-benchmark points of catalog/runs (SCHEMA.md): records with a `kind` and without a model.
//
//   allreduce, allgather, reducescatter, alltoall   bench "collective"
//   p2p with a size (sendrecv_perf)                 bench "collective", send_recv
//   p2p without one, hbm_copy                       bench "copy", quantity "bytes_per_s"
//   gemm                                            bench "gemm", quantity "flops_per_s"
//
// Where no time was published, it follows from algbw or busbw (catalog/collective.hpp). `sweep` and
// `topology` become labels, so that points of one machine stay together.
#pragma once

#include <string_view>

#include "calibrate/imported_log.hpp"

namespace shardwise {

bool looks_like_sweeps(std::string_view text);
void import_sweeps(std::string_view text, ImportedLog& log);

}  // namespace shardwise
