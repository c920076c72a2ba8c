#include "simulator/graphs/expert_rows.hpp"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/normal.hpp>

#include "simulator/graphs/expert_loop.hpp"
#include "simulator/graphs/visited_places.hpp"

namespace shardwise {
namespace {

// Products of 8 and 4 bits want rows in whole multiples of so many, at most.
constexpr int aligned_rows = 32;

// Rows of an expert that gets `mean` of them on average, each time filled up to a multiple: tokens
// choose it independently of each other, so that its number deviates by the root of the mean, even
// where balance is forced (Megatron-LM @d98e8a64dd megatron/core/transformer/moe/moe_utils.py,
// apply_random_logits). As many multiples as the number is beyond, from none on.
std::int64_t filled_rows(double mean, std::int64_t multiple) {
  const boost::math::normal rows(mean, std::max(1.0, std::sqrt(mean)));
  const double far = 8 * rows.standard_deviation();
  const auto size = static_cast<double>(multiple);
  double multiples = std::max(0.0, std::floor((mean - far) / size));
  for (double i = multiples; i * size < mean + far; ++i)
    multiples += boost::math::cdf(boost::math::complement(rows, i * size));
  return aligned_rows * std::llround(size * multiples / aligned_rows);
}

}  // namespace

DType expert_dtype(const Workload& w) {
  return bytes_per_element(w.compute) < 2.0 ? w.compute : w.product_dtype();
}

// Transformer Engine has then the grouped MLP of block formats: the product of the first linear
// ends in the activation, that of backward in its derivative, and with MXFP8 both cast what they
// make by rows and by columns (Transformer Engine @d0067d0da pytorch/ops/fused/grouped_mlp.py;
// Megatron-LM @d98e8a64dd experts.py, _make_fused_ops).
bool is_one_expert_kernel(const Workload& w) {
  return w.step_is_graph && !w.pads_experts && w.framework.layers.kernels == KernelStyle::fused &&
         (w.compute == DType::mxfp8 || w.compute == DType::nvfp4);
}

bool multiplies_by_torch(const GraphBuilder& b) {
  return b.workload().framework.experts.torch_grouped_products && !in_turn(b) &&
         bytes_per_element(expert_dtype(b.workload())) >= 2.0 && !b.own_code().feeds_all_experts;
}

// NVIDIA/Megatron-LM @d98e8a64dd megatron/core/fp8_utils.py, get_fp8_align_size (32 of MXFP8, else
// 16), fp4_utils.py, get_fp4_align_size (128), and 256 of the grouped MLP in one kernel
// (transformer/moe/moe_utils.py, get_align_size_for_quantization); the first three also where
// Transformer Engine pads (@d0067d0da pytorch/module/fp8_padding.py). torchtitan's dispatchers pad
// to 16 and 32 as well (pytorch/torchtitan @b5bcd76c66 components/quantization/float8.py, mx.py);
// its products of 4 bits, of which that release has none for experts, are taken to want 32.
int row_multiple(const Workload& w, DType dtype) {
  if (bytes_per_element(dtype) >= 2.0) return 1;
  if (is_one_expert_kernel(w)) return 256;
  if (dtype == DType::nvfp4) return w.framework.layers.kernels == KernelStyle::fused ? 128 : 32;
  return dtype == DType::mxfp8 ? 32 : 16;
}

ExpertShape expert_shape(const GraphBuilder& b) {
  const Workload& w = b.workload();
  const MixtureOfExperts& moe = *w.model.moe;
  const ParallelPlan& plan = b.plan();
  const int copies = b.own_code().feeds_all_experts ? moe.experts : moe.top_k;
  const std::int64_t mean = b.sequence_tokens() * copies * plan.expert_tensor;
  ExpertShape s;
  s.local = std::max(1, moe.experts / plan.expert);
  s.routed = std::llround(static_cast<double>(mean) * fullest_rank(w, plan.expert));
  s.width = moe.expert_ffn / plan.expert_tensor;
  s.dtype = expert_dtype(w);
  s.each = std::max<std::int64_t>(1, s.routed / s.local);
  s.padded = s.routed;
  if (const std::int64_t multiple = row_multiple(w, s.dtype); multiple > 1) {
    const std::int64_t filled = multiple * s.local;
    const double mean_rows = static_cast<double>(s.routed) / static_cast<double>(s.local);
    const bool whole = w.pads_experts || multiple <= aligned_rows;
    s.each = whole ? multiple * std::max<std::int64_t>(1, (s.routed + filled - 1) / filled)
                   : filled_rows(mean_rows, multiple);
    s.padded = s.local * s.each;
  }
  return s;
}

// An all-to-all leaves the rows by rank: a rank of several experts sorts them by expert, and back
// (Megatron-LM core_v0.16.0 megatron/core/transformer/moe/token_dispatcher.py,
// dispatch_postprocess, combine_preprocess), and so does one that has all experts. Transformer
// Engine pads them in a copy and takes them out by another, unless the dispatcher has laid them out
// so (experts.py, TEGroupedMLP.forward, quantization_padding) or every expert has one capacity,
// which is a multiple.
int row_copies(const GraphBuilder& b, const ExpertShape& s, bool back) {
  const Workload& w = b.workload();
  const Framework& f = w.framework;
  const bool spread = b.plan().expert > 1 || f.experts.moves_rows_by_maps;
  const bool sorts = spread && !f.experts.dispatches_once && s.local > 1;
  const bool wants_more = row_multiple(w, s.dtype) > 1 && f.layers.kernels == KernelStyle::fused;
  const bool laid_out = (f.experts.dispatches_once && f.experts.dispatches_by_map) ||
                        (w.pads_experts && s.padded == s.routed);
  return 1 + (sorts && (!back || f.experts.weighs_rows_apart) ? 1 : 0) +
         (wants_more && !laid_out ? 1 : 0);
}

}  // namespace shardwise
