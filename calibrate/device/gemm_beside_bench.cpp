// A product while a collective runs on the same GPU: how much slower is it for the multiprocessors
// and the memory bandwidth that NCCL takes?
#ifdef SHARDWISE_WITH_NCCL

#include <algorithm>
#include <cmath>

#include "calibrate/device/collective_call.hpp"
#include "calibrate/device/gemm_product.hpp"
#include "calibrate/device/together.hpp"

namespace shardwise {
namespace {

// A second stream of a GPU, with a mark for its end.
struct SideStream {
  cudaStream_t stream = nullptr;
  cudaEvent_t end = nullptr;
  SideStream() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    check(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "creating an event");
  }
  ~SideStream() {
    cudaStreamDestroy(stream);
    cudaEventDestroy(end);
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
};

BenchPoint product_of(const BenchPoint& point) {
  BenchPoint product = point;
  product.labels = {{"dtype", point.labels.at("dtype")}, {"layout", "tn"}, {"epilogue", "none"}};
  product.sizes["batch"] = 1;
  return product;
}

class Pair {
 public:
  Pair(RankGroup& group, const BenchPoint& point) : group_(group), collective_(group, point) {
    on_each(gpus(), [&](std::size_t i) {
      sides_.push_back(std::make_unique<SideStream>());
      side_streams_.push_back(sides_[i]->stream);
      main_streams_.push_back(gpus()[i]->stream());
      products_.push_back(std::make_unique<GemmProduct>(product_of(point), gpus()[i]->stream()));
    });
  }

  Sample run() {
    if (times_ == 0) count_collectives();
    if (group_.others() != nullptr) group_.others()->barrier();
    for (int i = 0; i < times_; ++i) collective_.enqueue(side_streams_);
    on_each(gpus(), [&](std::size_t i) {
      check(cudaEventRecord(sides_[i]->end, side_streams_[i]), "marking the end");
    });
    on_each(gpus(), [&](std::size_t i) {
      gpus()[i]->begin();
      products_[i]->enqueue(main_streams_[i]);
      gpus()[i]->end();
    });
    Sample sample;
    on_each(gpus(), [&](std::size_t i) {
      sample.busy = std::max(sample.busy, gpus()[i]->elapsed());
      // The collectives must have gone on for as long as the product.
      sample.disturbed = sample.disturbed || cudaEventQuery(sides_[i]->end) == cudaSuccess;
      cudaGetLastError();  // "not ready" is no failure
    });
    on_each(gpus(), [&](std::size_t i) {
      check(cudaStreamSynchronize(side_streams_[i]), "waiting for the collective");
    });
    sample.value = sample.busy.value;
    return sample;
  }

 private:
  const std::vector<Gpu*>& gpus() const { return collective_.gpus(); }

  // So many collectives that they take four times as long as the product alone; the same on all
  // ranks.
  void count_collectives() {
    const auto once = [&] { collective_.enqueue(main_streams_); };
    const auto multiply = [&] {
      on_each(gpus(), [&](std::size_t i) { products_[i]->enqueue(main_streams_[i]); });
    };
    timed_together(gpus(), once);
    timed_together(gpus(), multiply);
    const Seconds collective = timed_together(gpus(), once).busy;
    const Seconds product = timed_together(gpus(), multiply).busy;
    double times = std::clamp(std::ceil(4 * (product / collective)), 2.0, 400.0);
    if (group_.others() != nullptr) times = group_.others()->greatest({times})[0];
    times_ = static_cast<int>(times);
  }

  RankGroup& group_;
  CollectiveCall collective_;
  std::vector<std::unique_ptr<SideStream>> sides_;
  std::vector<cudaStream_t> side_streams_, main_streams_;
  std::vector<std::unique_ptr<GemmProduct>> products_;
  int times_ = 0;
};

}  // namespace

RunOnce prepare_gemm_beside(RankGroup& group, const BenchPoint& point) {
  const auto pair = std::make_shared<Pair>(group, point);
  return [pair] { return pair->run(); };
}

}  // namespace shardwise

#endif
