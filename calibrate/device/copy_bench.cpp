#include <cstdlib>
#include <vector>

#include "calibrate/device/gpu_benches.hpp"

namespace shardwise {
namespace {

// From and to, whatever they are made of; they go with the last user of `keep`.
struct Ends {
  void* from = nullptr;
  void* to = nullptr;
  std::shared_ptr<void> keep;
};

std::shared_ptr<void> host_memory(Bytes bytes, bool pinned, void*& data) {
  if (pinned) {
    const auto buffer = std::make_shared<PinnedBuffer>(bytes);
    data = buffer->data();
    return buffer;
  }
  // Written to, so that every page is there before anything is timed.
  const auto buffer =
      std::make_shared<std::vector<char>>(static_cast<std::size_t>(bytes.value), char{1});
  data = buffer->data();
  return buffer;
}

struct Way {
  bool from_host, to_host;
};

Way way_of(const std::string& direction) {
  if (direction == "device_local") return {false, false};
  if (direction == "host_to_device") return {true, false};
  if (direction == "device_to_host") return {false, true};
  not_supported("copies " + direction);
}

Ends ends_of(const BenchPoint& point) {
  const Bytes bytes(point.sizes.at("bytes"));
  const Way way = way_of(point.labels.at("direction"));
  const bool pinned = point.labels.at("host") == "pinned";
  const auto on_gpu = std::make_shared<std::pair<GpuBuffer, GpuBuffer>>();
  std::shared_ptr<void> on_host;
  Ends ends;
  if (way.from_host)
    on_host = host_memory(bytes, pinned, ends.from);
  else
    ends.from = (on_gpu->first = GpuBuffer(bytes)).data();
  if (way.to_host)
    on_host = host_memory(bytes, pinned, ends.to);
  else
    ends.to = (on_gpu->second = GpuBuffer(bytes)).data();
  ends.keep =
      std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(on_gpu, on_host);
  return ends;
}

}  // namespace

RunOnce prepare_copy(Gpu& gpu, const BenchPoint& point) {
  const Ends ends = ends_of(point);
  const auto bytes = static_cast<std::size_t>(point.sizes.at("bytes"));
  // A pageable copy waits for the GPU on the host, so it cannot be queued behind a held stream.
  const auto start = point.labels.at("host") == "pageable" ? Gpu::Start::at_once : Gpu::Start::held;
  return [&gpu, ends, bytes, start] {
    return gpu.timed(
        [&](cudaStream_t stream) {
          check(cudaMemcpyAsync(ends.to, ends.from, bytes, cudaMemcpyDefault, stream), "copying");
        },
        start);
  };
}

}  // namespace shardwise
