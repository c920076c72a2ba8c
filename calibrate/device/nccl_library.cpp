#include "calibrate/device/nccl_library.hpp"

#ifdef SHARDWISE_WITH_NCCL

#include "calibrate/device/cuda_failure.hpp"

namespace shardwise {

Nccl::Nccl() : library_({"libnccl.so.2", "libnccl.so"}) {
  library_.resolve("ncclGetVersion", version);
  library_.resolve("ncclGetErrorString", error_text);
  library_.resolve("ncclGetUniqueId", unique_id);
  library_.resolve("ncclCommInitRank", join);
  library_.resolve("ncclCommDestroy", destroy);
  library_.resolve("ncclGroupStart", group_start);
  library_.resolve("ncclGroupEnd", group_end);
  library_.resolve("ncclAllReduce", all_reduce);
  library_.resolve("ncclAllGather", all_gather);
  library_.resolve("ncclReduceScatter", reduce_scatter);
  library_.resolve("ncclBroadcast", broadcast);
  library_.resolve("ncclSend", send);
  library_.resolve("ncclRecv", receive);
}

const Nccl& nccl() {
  static const Nccl library;
  if (!library.complete()) not_supported(library.missing() + " is not here");
  return library;
}

void check(ncclResult_t result, const char* doing) {
  if (result == ncclSuccess) return;
  const std::string why = std::string(doing).append(": NCCL: ").append(nccl().error_text(result));
  check(cudaDeviceSynchronize(), doing);  // a GPU that is lost is told here
  throw CudaFailure{RunStatus::failed, why};
}

}  // namespace shardwise

#endif
