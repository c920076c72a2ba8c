#include "simulator/costs/attention_model.hpp"

#include <algorithm>
#include <cmath>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr int kHeadDimStep = 32;       // fused kernels pad the head dimension to a multiple
constexpr double kForwardFlops = 4;    // per pair and head dimension: two matrix products
constexpr double kBackwardFlops = 10;  // five
constexpr double kKeysOfSplit = 64;    // of the memory-efficient kernel, backward

std::size_t index(FusedAttention k) { return static_cast<std::size_t>(k); }

// Where a family lacks a kernel, what its users run instead.
constexpr std::array<FusedAttention, fused_attention_count> fallback{
    FusedAttention::flash2,            // memory_efficient
    FusedAttention::flash2,            // flash1
    FusedAttention::memory_efficient,  // flash2
    FusedAttention::flash2,            // flash3
    FusedAttention::flash2,            // cudnn
    FusedAttention::cudnn,             // cudnn_mxfp8
};

double mix(double a, double b, double share) { return a + share * (b - a); }

AttentionRate mix(const AttentionRate& a, const AttentionRate& b, double share) {
  return {mix(a.fraction, b.fraction, share),
          mix(a.ramp_tokens, b.ramp_tokens, share),
          mix(a.causal_rate, b.causal_rate, share),
          mix(a.lone_block_rate, b.lone_block_rate, share),
          mix(a.fp32_fraction, b.fp32_fraction, share),
          mix(a.mask_columns, b.mask_columns, share),
          share > 0 ? b.split_blocks : a.split_blocks,
          mix(a.deterministic_rate, b.deterministic_rate, share),
          share > 0 ? b.whole_windows : a.whole_windows};
}

const AttentionRate& direction(const AttentionRow& row, bool backward) {
  return backward ? row.backward : row.forward;
}

constexpr std::array<FusedAttention, fused_attention_count> every_kernel{
    FusedAttention::memory_efficient, FusedAttention::flash1, FusedAttention::flash2,
    FusedAttention::flash3,           FusedAttention::cudnn,  FusedAttention::cudnn_mxfp8};

// Those of the oldest releases that hold `cudnn`; nullptr: the family does not run the kernel.
const AttentionCalibration* rows_of(const FamilyCalibration& family, FusedAttention kernel,
                                    const std::optional<LibraryRelease>& cudnn) {
  const AttentionCalibration* found = nullptr;
  for (const AttentionCalibration& c : family.attention) {
    if (c.kernel != kernel || (c.before && !(cudnn && *cudnn < *c.before))) continue;
    if (found == nullptr || !found->before || (c.before && *c.before < *found->before)) found = &c;
  }
  return found;
}

// As a kernel computes a window that takes all pairs (AttentionRate::whole_windows).
AttentionWork without_window(AttentionWork w) {
  const std::int64_t all = w.queries * w.context;
  if (w.keys >= all) return w;
  w.keys = all;
  w.causal = w.restarts = false;
  return w;
}

}  // namespace

Bytes tensor_bytes(const AttentionWork& w) {
  const std::int64_t queries = w.batch * w.queries * w.heads * w.head_dim;
  const std::int64_t keys = w.batch * w.keys * w.kv_heads * w.head_dim;
  const std::int64_t tensors = w.backward ? 4 : 2;
  return Bytes((w.fp32_operands ? 4 : 2) * tensors * (queries + keys));
}

double visible_pairs(std::int64_t queries, std::int64_t keys, bool causal, bool restarts) {
  const double q = static_cast<double>(queries), k = static_cast<double>(keys);
  if (!causal) return q * k;
  if (restarts && keys < queries) {
    const double rest = static_cast<double>(queries % keys);
    return ((q - rest) * k + rest * rest) / 2;
  }
  return keys >= queries ? q * k / 2 : k * (q - k / 2);
}

double visible_pairs(const AttentionWork& w) {
  return visible_pairs(w.queries * w.context, w.keys, w.causal, w.restarts) / w.context;
}

AttentionModel::AttentionModel(const Gpu& gpu, const Profile& profile,
                               const AttentionChoice& choice)
    : multiprocessors_(std::max(1, gpu.sm_count)),
      style_(static_cast<std::size_t>(choice.style)),
      traffic_(profile.eager_attention),
      gemm_(gpu, profile, choice.load),
      memory_(gpu, profile) {
  half_ = choice.half.value_or(gemm_.supports(DType::bf16) ? DType::bf16 : DType::fp16);
  const FamilyCalibration& family = profile.row(gpu.family);
  for (const FusedAttention kind : every_kernel) {
    const AttentionCalibration* found = rows_of(family, kind, choice.cudnn);
    if (found == nullptr) continue;
    const AttentionCalibration& c = *found;
    Kernel& k = kernels_[index(kind)];
    require(!c.rows.empty() && c.rows.size() <= k.rows.size(), "attention rows of a kernel");
    std::copy(c.rows.begin(), c.rows.end(), k.rows.begin());
    k.row_count = c.rows.size();
    k.tile_queries = c.tile_queries;
  }
  flash_ = available(choice.fused.value_or(family.default_attention));
  const FlopsPerSecond half =
      gpu.rate(DType::fp16)
          .value_or(gpu.rate(DType::bf16).value_or(gemm_.sustained_rate(DType::bf16)));
  for (Kernel& k : kernels_) k.dense = half;
  Kernel& narrow = kernels_[index(FusedAttention::cudnn_mxfp8)];
  narrow.dense = gpu.rate(DType::mxfp8).value_or(half);
  if (!gpu.rate(DType::mxfp8)) narrow.row_count = 0;
  single_ = gemm_.sustained_rate(DType::fp32);
  if (gpu.compute_capability >= 8 && gemm_.supports(DType::tf32))
    single_ = FlopsPerSecond(gemm_.sustained_rate(DType::tf32).value / 3);
  rate_scale_ = sustained_scale(gpu, profile);
  rate_scale_ *= kept_under_load(gpu, profile, DType::bf16, choice.load);
}

FusedAttention AttentionModel::available(FusedAttention wanted) const {
  for (std::size_t tries = 0; tries <= fused_attention_count; ++tries) {
    if (kernels_[index(wanted)].row_count > 0) return wanted;
    wanted = fallback[index(wanted)];
  }
  require(false, "a family runs some fused attention kernel");
  return wanted;
}

double AttentionModel::longest_blocks(const AttentionWork& w, const Kernel& kernel,
                                      const AttentionRate& rate, double total) const {
  const double keys = static_cast<double>(w.keys);
  // Sums of fp32 stay where they end up.
  if (rate.split_blocks == 0 || w.fp32_operands)
    return kernel.tile_queries * (keys + rate.ramp_tokens) / rate.lone_block_rate;
  const double heads = static_cast<double>(w.batch) * w.heads;
  const double splits =
      std::clamp(std::floor(rate.split_blocks / heads), 1.0, std::ceil(keys / kKeysOfSplit));
  const double blocks = heads * splits;
  return std::ceil(blocks / multiprocessors_) * total / blocks / rate.lone_block_rate;
}

Seconds AttentionModel::fused_time(const AttentionWork& asked, const Kernel& kernel) const {
  int head_dim = (asked.head_dim + kHeadDimStep - 1) / kHeadDimStep * kHeadDimStep;
  head_dim = std::max(head_dim, kernel.rows[0].head_dim);
  std::size_t high = 0;
  while (high + 1 < kernel.row_count && kernel.rows[high].head_dim < head_dim) ++high;
  const std::size_t low = high > 0 ? high - 1 : 0;
  const AttentionRow &a = kernel.rows[low], &b = kernel.rows[high];
  const double share =
      low == high ? 0
                  : std::clamp(double(head_dim - a.head_dim) / (b.head_dim - a.head_dim), 0.0, 1.0);
  const AttentionRate r = mix(direction(a, asked.backward), direction(b, asked.backward), share);
  const AttentionWork w = r.whole_windows ? without_window(asked) : asked;

  const double tile = kernel.tile_queries;
  const double heads = static_cast<double>(w.batch) * w.heads;
  const double q = static_cast<double>(w.queries);
  const double padded_q = std::ceil(q / tile) * tile;
  const double seen = visible_pairs(w) / q + (w.causal ? tile / 2 : 0);
  const double total = heads * padded_q * (seen + r.ramp_tokens);
  const double longest = longest_blocks(w, kernel, r, total);
  const bool as_products = w.fp32_operands && r.fp32_fraction == 0;
  const auto share_of_dense = [&](double measured) {
    return std::min(1.0, measured * rate_scale_) * kernel.dense.value;
  };
  const double reached = as_products       ? single_.value
                         : w.fp32_operands ? share_of_dense(r.fp32_fraction)
                                           : share_of_dense(r.fraction);
  const double in_order = w.deterministic ? r.deterministic_rate : 1;
  const double rate = (w.causal ? r.causal_rate : 1) * in_order * reached / multiprocessors_;
  // A mask takes as long whatever the operands of the products are.
  const double mask = w.masked ? r.mask_columns * reached / share_of_dense(r.fraction) : 0;
  const double flops = (w.backward ? kBackwardFlops : kForwardFlops) * (head_dim + mask);
  const Seconds compute(flops * std::max(total / multiprocessors_, longest) / rate);
  const Seconds traffic = tensor_bytes(w) / memory_.bandwidth(MemoryAccess::streaming);
  // Backward is three kernels: row sums of dO O, the gradients, the conversion of dQ.
  return (w.backward ? 3.0 : 1.0) * memory_.start() + std::max(compute, traffic);
}

Seconds AttentionModel::eager_time(const AttentionWork& w) const {
  const std::int64_t products = w.batch * w.heads, d = w.head_dim;
  const double scores =
      static_cast<double>(products) * static_cast<double>(w.queries) * static_cast<double>(w.keys);
  const DType dtype = w.tf32_products ? DType::tf32 : w.fp32_operands ? DType::fp32 : half_;
  const Seconds scores_of_keys = gemm_.time({w.queries, w.keys, d, products, dtype});
  const Seconds values = gemm_.time({w.queries, d, w.keys, products, dtype});
  const ScoreTraffic& beside = traffic_.of(w.fp32_operands);
  const auto run = [&](const ScoreKernels& k, MemoryAccess access) {
    const int kernels = k.kernels[style_];
    if (w.products_alone || kernels == 0) return Seconds(0);
    return memory_.time(ceil_bytes(k.bytes[style_] * scores), kernels, access);
  };
  if (!w.backward)
    return scores_of_keys + values + run(beside.forward_softmax, MemoryAccess::reduction) +
           run(beside.forward_elementwise, MemoryAccess::streaming);
  // dP = dO V', dQ = dS K, and dV = P' dO, dK = dS' Q.
  const Seconds of_keys = gemm_.time({w.keys, d, w.queries, products, dtype});
  return scores_of_keys + values + 2.0 * of_keys +
         run(beside.backward_softmax, MemoryAccess::reduction) +
         run(beside.backward_elementwise, MemoryAccess::streaming);
}

Seconds AttentionModel::time(const AttentionWork& w) const {
  if (w.batch <= 0 || w.heads <= 0 || w.queries <= 0 || w.keys <= 0) return Seconds(0);
  const double pieces = w.pieces;
  if (w.kernel == AttentionKernel::eager) return pieces * eager_time(w);
  const FusedAttention kernel =
      w.fp32_operands || w.kernel == AttentionKernel::memory_efficient
          ? available(FusedAttention::memory_efficient)
      : w.kernel == AttentionKernel::flash1 ? available(FusedAttention::flash1)
      : w.kernel == AttentionKernel::flash2 ? available(FusedAttention::flash2)
      : w.narrow_operands                   ? available(FusedAttention::cudnn_mxfp8)
      : w.kernel == AttentionKernel::cudnn  ? available(FusedAttention::cudnn)
                                            : flash_;
  return pieces * fused_time(w, kernels_[index(kernel)]);
}

}  // namespace shardwise
