#include "calibrate/device/nccl_library.hpp"

#ifdef SHARDWISE_WITH_NCCL

#include "calibrate/device/cuda_failure.hpp"

namespace shardwise {

Nccl::Nccl() : library_({"libnccl.so.2", "libnccl.so"}) {
  library_.resolve(version, "ncclGetVersion");
  library_.resolve(error_text, "ncclGetErrorString");
  library_.resolve(unique_id, "ncclGetUniqueId");
  library_.resolve(join, "ncclCommInitRank");
  library_.resolve(destroy, "ncclCommDestroy");
  library_.resolve(group_start, "ncclGroupStart");
  library_.resolve(group_end, "ncclGroupEnd");
  library_.resolve(all_reduce, "ncclAllReduce");
  library_.resolve(all_gather, "ncclAllGather");
  library_.resolve(reduce_scatter, "ncclReduceScatter");
  library_.resolve(broadcast, "ncclBroadcast");
  library_.resolve(send, "ncclSend");
  library_.resolve(receive, "ncclRecv");
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
