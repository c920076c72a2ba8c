#include "simulator/costs/cache_reuse.hpp"

#include <algorithm>
#include <variant>

namespace shardwise {
namespace {

double bytes_of(const GemmWork& w) {
  const auto m = static_cast<double>(w.m), n = static_cast<double>(w.n),
             k = static_cast<double>(w.k);
  return bytes_per_element(w.dtype) * static_cast<double>(w.batch) * (m * k + k * n + m * n);
}
double bytes_of(const AttentionWork& w) { return static_cast<double>(tensor_bytes(w).value); }
double bytes_of(const MemoryWork& w) { return static_cast<double>(w.moved.value); }
double bytes_of(const CommWork& w) { return static_cast<double>(w.size.value); }
double bytes_of(const ReadBack&) { return 0; }

double traffic(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& k : kernels)
    sum += std::visit([](const auto& work) { return bytes_of(work); }, k);
  return sum;
}

// The traffic of a pass, operator by operator, in the order in which they run.
class Passing {
 public:
  void add(double bytes) { until_.push_back(until_.back() + bytes); }
  // From the middle of the `made`-th operator to the start of the `read`-th.
  double between(std::size_t made, std::size_t read) const {
    return until_[read] - (until_[made] + until_[made + 1]) / 2;
  }

 private:
  std::vector<double> until_{0};
};

// Operator by tensor: who writes it, and who reads it first.
struct Ends {
  std::vector<std::size_t> writer, first_reader;
};

Ends ends_of(const LayerGraph& g) {
  const std::size_t none = g.operators.size();
  Ends e{std::vector<std::size_t>(g.tensors.size(), none),
         std::vector<std::size_t>(g.tensors.size(), none)};
  for (std::size_t i = 0; i < g.operators.size(); ++i) {
    for (const TensorIndex t : g.operators[i].outputs) e.writer[static_cast<std::size_t>(t)] = i;
    for (const TensorIndex t : g.operators[i].inputs) {
      std::size_t& first = e.first_reader[static_cast<std::size_t>(t)];
      first = std::min(first, i);
    }
  }
  return e;
}

}  // namespace

std::vector<ColdBytes> cold_bytes(const LayerGraph& g, const KernelModel& kernels) {
  const std::size_t n = g.operators.size();
  const Ends ends = ends_of(g);
  Passing forward, backward;
  for (std::size_t i = 0; i < n; ++i) {
    const Operator& last = g.operators[n - 1 - i];
    forward.add(traffic(g.operators[i].forward));
    backward.add(traffic(last.backward) + traffic(last.backward_weight));
  }
  const auto missed = [&](std::int64_t bytes, double passed) {
    return static_cast<double>(bytes) * (1 - kernels.cached_share(passed));
  };

  std::vector<ColdBytes> cold(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Operator& op = g.operators[i];
    double before = 0, after = 0;
    // What comes into the layer, and the gradient of what it gives, were made just before it.
    for (const TensorIndex t : op.inputs) {
      const auto k = static_cast<std::size_t>(t);
      before +=
          missed(g.tensors[k].bytes, ends.writer[k] < i ? forward.between(ends.writer[k], i) : 0);
    }
    for (const TensorIndex t : op.outputs) {
      const auto k = static_cast<std::size_t>(t);
      const std::size_t reader = ends.first_reader[k];  // whose backward pass ends the gradient
      after += missed(g.tensors[k].gradient_bytes,
                      reader < n ? backward.between(n - 1 - reader, n - 1 - i) : 0);
    }
    for (const TensorIndex t : op.saves)
      after += static_cast<double>(g.tensors[static_cast<std::size_t>(t)].bytes);
    cold[i] = {ceil_bytes(before), ceil_bytes(after)};
  }
  return cold;
}

}  // namespace shardwise
