#ifdef SHARDWISE_WITH_NCCL

#include <algorithm>
#include <array>

#include "calibrate/device/collective_call.hpp"
#include "calibrate/device/together.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t element = 2;  // bf16

using Call = void (*)(const CollectiveCall&, std::size_t gpu, ncclComm_t, cudaStream_t);

void all_reduce(const CollectiveCall& c, std::size_t i, ncclComm_t comm, cudaStream_t stream) {
  check(nccl().all_reduce(c.from(i), c.to(i), c.elements(1), ncclBfloat16, ncclSum, comm, stream),
        "all_reduce");
}

void all_gather(const CollectiveCall& c, std::size_t i, ncclComm_t comm, cudaStream_t stream) {
  check(nccl().all_gather(c.from(i), c.to(i), c.elements(c.ranks()), ncclBfloat16, comm, stream),
        "all_gather");
}

void reduce_scatter(const CollectiveCall& c, std::size_t i, ncclComm_t comm, cudaStream_t stream) {
  check(nccl().reduce_scatter(c.from(i), c.to(i), c.elements(c.ranks()), ncclBfloat16, ncclSum,
                              comm, stream),
        "reduce_scatter");
}

void broadcast(const CollectiveCall& c, std::size_t i, ncclComm_t comm, cudaStream_t stream) {
  check(nccl().broadcast(c.from(i), c.to(i), c.elements(1), ncclBfloat16, 0, comm, stream),
        "broadcast");
}

void all_to_all(const CollectiveCall& c, std::size_t i, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t each = c.elements(c.ranks());
  for (int peer = 0; peer < c.ranks(); ++peer) {
    const std::size_t at = each * static_cast<std::size_t>(peer * element);
    check(nccl().send(c.from(i) + at, each, ncclBfloat16, peer, comm, stream), "all_to_all");
    check(nccl().receive(c.to(i) + at, each, ncclBfloat16, peer, comm, stream), "all_to_all");
  }
}

// Each rank sends to the next and receives from the one before, as nccl-tests' sendrecv does.
void send_recv(const CollectiveCall& c, std::size_t i, ncclComm_t comm, cudaStream_t stream) {
  const int rank = c.rank(i), ranks = c.ranks();
  check(nccl().send(c.from(i), c.elements(1), ncclBfloat16, (rank + 1) % ranks, comm, stream),
        "send_recv");
  check(nccl().receive(c.to(i), c.elements(1), ncclBfloat16, (rank + ranks - 1) % ranks, comm,
                       stream),
        "send_recv");
}

struct CollectiveRow {
  const char* name;
  Call call;
};
constexpr std::array<CollectiveRow, 6> collectives{{{"all_reduce", all_reduce},
                                                    {"all_gather", all_gather},
                                                    {"reduce_scatter", reduce_scatter},
                                                    {"all_to_all", all_to_all},
                                                    {"broadcast", broadcast},
                                                    {"send_recv", send_recv}}};

Call named(const std::string& name) {
  for (const CollectiveRow& row : collectives)
    if (name == row.name) return row.call;
  not_supported("no collective of this name");
}

// Many of a small one in a row, so that the processes' different begins do not count.
int repetitions(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{32} << 20) / bytes, 1, 50));
}

}  // namespace

CollectiveCall::CollectiveCall(RankGroup& group, const BenchPoint& point)
    : all_(group.communicators(static_cast<int>(point.sizes.at("ranks")))),
      call_(named(point.labels.at("collective"))),
      bytes_(point.sizes.at("bytes")) {
  if (elements(all_.ranks) == 0) not_supported("less than an element for each rank");
  gpus_.assign(group.gpus().begin(),
               group.gpus().begin() + static_cast<std::ptrdiff_t>(all_.of_gpu.size()));
  on_each(gpus_, [&](std::size_t) {
    from_.emplace_back(Bytes(bytes_));
    to_.emplace_back(Bytes(bytes_));
    check(cudaMemset(from_.back().data(), 0, static_cast<std::size_t>(bytes_)), "clearing memory");
    check(cudaDeviceSynchronize(), "clearing memory");  // our streams do not wait for the default
  });
}

std::size_t CollectiveCall::elements(int parts) const {
  return static_cast<std::size_t>(bytes_ / element / parts);
}

void CollectiveCall::enqueue(const std::vector<cudaStream_t>& streams) const {
  on_every_rank(all_, [&](std::size_t i, ncclComm_t comm) { call_(*this, i, comm, streams[i]); });
}

RunOnce prepare_collective(RankGroup& group, const BenchPoint& point) {
  const auto call = std::make_shared<CollectiveCall>(group, point);
  const int times = repetitions(point.sizes.at("bytes"));
  std::vector<cudaStream_t> streams;
  for (const Gpu* gpu : call->gpus()) streams.push_back(gpu->stream());
  return [&group, call, streams, times] {
    if (group.others() != nullptr) group.others()->barrier();
    Sample sample = timed_together(call->gpus(), [&] {
      for (int i = 0; i < times; ++i) call->enqueue(streams);
    });
    sample.value /= times;
    return sample;
  };
}

}  // namespace shardwise

#endif
