// NCCL, looked for when the program runs. Without its header at build time, or itself at run time,
// collectives are told to be unsupported.
#pragma once

#ifdef SHARDWISE_WITH_NCCL

#include <nccl.h>

#include "calibrate/device/shared_library.hpp"

namespace shardwise {

class Nccl {
 public:
  Nccl();
  bool complete() const { return library_.complete(); }
  const std::string& missing() const { return library_.missing(); }

  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetErrorString) error_text = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRank) join = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;

 private:
  SharedLibrary library_;
};

const Nccl& nccl();  // looked for once; throws CudaFailure where it is not complete

void check(ncclResult_t result, const char* doing);

}  // namespace shardwise

#endif
