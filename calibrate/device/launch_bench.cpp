#include <chrono>

#include "calibrate/device/gpu_benches.hpp"
#include "calibrate/device/pacing_kernels.hpp"

namespace shardwise {
namespace {

// Fewer than the 1024 launches that a stream takes before the host has to wait.
constexpr int most_kernels = 900;

void launch_all(int kernels, cudaStream_t stream) {
  for (int i = 0; i < kernels; ++i) launch_nothing(stream);
  check(cudaGetLastError(), "launching");
}

Sample per_kernel(Sample sample, int kernels) {
  sample.value /= kernels;
  return sample;
}

// From one kernel to the next on the GPU, all of them being in the queue.
RunOnce gpu_gap(Gpu& gpu, int kernels) {
  return [&gpu, kernels] {
    return per_kernel(gpu.timed([&](cudaStream_t stream) { launch_all(kernels, stream); }),
                      kernels);
  };
}

// The CPU's time for a launch, the GPU being held so that it does not matter.
RunOnce host_issue(Gpu& gpu, int kernels) {
  return [&gpu, kernels] {
    using Clock = std::chrono::steady_clock;
    std::chrono::duration<double> took{};
    Sample sample = gpu.timed([&](cudaStream_t stream) {
      const auto begun = Clock::now();
      launch_all(kernels, stream);
      took = Clock::now() - begun;
    });
    sample.value = took.count();
    return per_kernel(sample, kernels);
  };
}

struct Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  Graph(cudaStream_t stream, int kernels) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a graph");
    launch_all(kernels, stream);
    check(cudaStreamEndCapture(stream, &graph), "capturing a graph");
    check(cudaGraphInstantiateWithFlags(&ready, graph, 0), "making a graph");
  }
  ~Graph() {
    if (ready != nullptr) cudaGraphExecDestroy(ready);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

// From one kernel to the next inside a CUDA graph.
RunOnce graph_gap(Gpu& gpu, int kernels) {
  const auto graph = std::make_shared<Graph>(gpu.stream(), kernels);
  return [&gpu, graph, kernels] {
    return per_kernel(gpu.timed([&](cudaStream_t stream) {
      check(cudaGraphLaunch(graph->ready, stream), "launching a graph");
    }),
                      kernels);
  };
}

struct KindRow {
  const char* kind;
  RunOnce (*prepare)(Gpu&, int);
};
constexpr KindRow kinds[] = {
    {"gpu_gap", gpu_gap}, {"host_issue", host_issue}, {"graph", graph_gap}};

}  // namespace

RunOnce prepare_launch(Gpu& gpu, const BenchPoint& point) {
  const auto kernels = static_cast<int>(point.sizes.at("kernels"));
  if (kernels > most_kernels) not_supported("more kernels than a stream takes at once");
  for (const KindRow& row : kinds)
    if (point.labels.at("kind") == row.kind) return row.prepare(gpu, kernels);
  not_supported("launches of the kind " + point.labels.at("kind"));
}

}  // namespace shardwise
