// A short convolution between two gates (LFM2): one projection to B, C and x, each as wide as the
// hidden state; C times the convolution of B times x; one projection back.
//
// As transformers has it (5.23, models/lfm2/modeling_lfm2.py, Lfm2ShortConv) on causal-conv1d's
// kernel: autograd keeps the projection's result, of which B, C and x are views, B times x, which
// the convolution reads, its result, and what the projection back reads.
#include <cstdint>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

// One channel reads its own past alone: a kernel that streams.
TensorIndex convolve(GraphBuilder& b, TensorIndex x, std::int64_t rows, std::int64_t channels) {
  const double n = bytes_of_elements(b, rows * channels);
  const TensorIndex out =
      b.pointwise("short_convolution", {x}, {x}, rows * channels, 2 * n, 3 * n, 1);
  const std::int64_t taps = b.workload().model.convolution->taps * channels;
  b.count_other(taps);
  b.last().weight_gradient_elements = b.trains_base() ? taps : 0;
  return out;
}

}  // namespace

TensorIndex add_convolution(GraphBuilder& b, TensorIndex normed) {
  const std::int64_t h = b.workload().model.hidden, rows = b.tokens();
  const AdapterTargets& on = b.workload().adapter.targets;
  const std::int64_t channels = h / b.tensor();
  const TensorIndex x = b.gather_sequence(normed, h);
  const TensorIndex projected =
      b.linear({"convolution_in", h, 3 * h, Cut::columns, false, on.up}, x, rows);
  const double n = bytes_of_elements(b, rows * channels);
  const TensorIndex opened =
      b.pointwise("convolution_gate", {projected}, {projected}, rows * channels, 3 * n, 5 * n, 1);
  const TensorIndex mixed = convolve(b, opened, rows, channels);
  const TensorIndex closed = b.pointwise("convolution_output_gate", {projected, mixed},
                                         {projected, mixed}, rows * channels, 3 * n, 5 * n, 1);
  const TensorIndex out =
      b.linear({"convolution_out", h, h, Cut::rows, false, on.down}, closed, rows);
  return b.reduce_partial(out, h);
}

}  // namespace shardwise
