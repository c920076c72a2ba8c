// NCCL's communicators of one group: one for each GPU of this process.
#pragma once

#ifdef SHARDWISE_WITH_NCCL

#include <optional>
#include <vector>

#include "calibrate/device/nccl_library.hpp"
#include "catalog/units.hpp"

namespace shardwise {

struct Communicators {
  std::vector<ncclComm_t> of_gpu;  // as the group's GPUs
  int ranks = 0;
  int first_rank = 0;  // of this process
  std::optional<Bytes> held;

  ~Communicators() {
    for (const ncclComm_t one : of_gpu)
      if (one != nullptr) nccl().destroy(one);
  }
};

// One call on every GPU of this process, as one group.
template <class Call>
void on_every_rank(const Communicators& all, Call call) {
  check(nccl().group_start(), "grouping");
  for (std::size_t i = 0; i < all.of_gpu.size(); ++i) call(i, all.of_gpu[i]);
  check(nccl().group_end(), "a collective");
}

}  // namespace shardwise

#endif
