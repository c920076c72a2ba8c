#include "calibrate/device/together.hpp"

namespace shardwise {
namespace {

struct HostCopy {
  PinnedBuffer host;
  GpuBuffer gpu;
  explicit HostCopy(Bytes bytes) : host(bytes), gpu(bytes) {}
};

// GPUs whose peers cannot be reached copy through the host all the same: that is their rate.
void allow_access(int from, int to) {
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, from, to), "asking for peer access");
  if (possible == 0) return;
  const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
  if (error != cudaErrorPeerAccessAlreadyEnabled) check(error, "allowing peer access");
  cudaGetLastError();
}

}  // namespace

RunOnce prepare_copy_together(RankGroup& group, const BenchPoint& point) {
  const Bytes bytes(point.sizes.at("bytes"));
  const bool to_gpu = point.labels.at("direction") == "host_to_device";
  const auto copies = std::make_shared<std::vector<std::unique_ptr<HostCopy>>>();
  on_each(group.gpus(), [&](std::size_t) { copies->push_back(std::make_unique<HostCopy>(bytes)); });
  return [&group, copies, bytes, to_gpu] {
    const auto& gpus = group.gpus();
    return timed_together(gpus, [&] {
      on_each(gpus, [&](std::size_t i) {
        void* host = (*copies)[i]->host.data();
        void* gpu = (*copies)[i]->gpu.data();
        check(cudaMemcpyAsync(to_gpu ? gpu : host, to_gpu ? host : gpu,
                              static_cast<std::size_t>(bytes.value), cudaMemcpyDefault,
                              gpus[i]->stream()),
              "copying");
      });
    });
  };
}

RunOnce prepare_peer_copy(RankGroup& group, const BenchPoint& point) {
  const auto bytes = static_cast<std::size_t>(point.sizes.at("bytes"));
  std::vector<Gpu*> pair;
  for (const char* end : {"from", "to"})
    pair.push_back(group.gpus().at(std::stoul(point.labels.at(end))));
  const bool both = point.labels.at("direction") == "device_to_device_bidirectional";
  // A source and a target on each of the two.
  const auto buffers = std::make_shared<std::vector<GpuBuffer>>();
  on_each(pair, [&](std::size_t i) {
    allow_access(pair[i]->index(), pair[1 - i]->index());
    for (int k = 0; k < 2; ++k) buffers->emplace_back(Bytes(static_cast<std::int64_t>(bytes)));
  });
  const std::vector<Gpu*> senders(pair.begin(), pair.begin() + (both ? 2 : 1));
  return [pair, senders, buffers, bytes] {
    return timed_together(senders, [&] {
      on_each(senders, [&](std::size_t i) {
        const std::size_t other = 1 - i;
        check(cudaMemcpyPeerAsync((*buffers)[2 * other + 1].data(), pair[other]->index(),
                                  (*buffers)[2 * i].data(), pair[i]->index(), bytes,
                                  pair[i]->stream()),
              "copying to a peer");
      });
    });
  };
}

}  // namespace shardwise
