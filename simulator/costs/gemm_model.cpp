#include "simulator/costs/gemm_model.hpp"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/normal.hpp>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

double ceil_ratio(double a, double b) { return std::ceil(a / b); }

// The 16-bit format that the GPU computes, if any: bf16 where there is a choice.
std::optional<DType> half_format(const Gpu& gpu) {
  if (gpu.rate(DType::bf16)) return DType::bf16;
  if (gpu.rate(DType::fp16)) return DType::fp16;
  return std::nullopt;
}

double output_bytes(const GemmShape& s) {
  return s.dtype == DType::fp32 || s.dtype == DType::tf32 ? 4 : 2;
}

double result_elements(const GemmShape& s) {
  return static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n);
}

double operand_and_result_bytes(const GemmShape& s, double element_bytes) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n);
  const double k = static_cast<double>(s.k);
  return static_cast<double>(s.batch) * (m + n) * k * element_bytes +
         result_elements(s) * output_bytes(s);
}

// C in fp32 is read and written.
double accumulated_bytes(const GemmShape& s) { return result_elements(s) * (8 - output_bytes(s)); }

// A kernel's computing and its traffic hide behind each other, but for its first tiles and its
// last, and not wholly where they take about as long.
double together(double computing, double traffic, double exponent) {
  const double longer = std::max(computing, traffic), shorter = std::min(computing, traffic);
  if (exponent <= 0 || longer <= 0) return longer;
  return longer * std::pow(1 + std::pow(shorter / longer, exponent), 1 / exponent);
}

// Of rows of elements; the scales of a block format lie apart from them.
bool aligned(const GemmShape& s, int alignment_bytes) {
  const double scaled_bits = 8 * bytes_per_element(s.dtype);
  const double bits = s.dtype == DType::mxfp8 ? 8 : s.dtype == DType::nvfp4 ? 4 : scaled_bits;
  const auto whole = [&](std::int64_t length) {
    return std::fmod(static_cast<double>(length) * bits, 8.0 * alignment_bytes) == 0;
  };
  return whole(s.across_rows && bits >= 16 ? s.m : s.k) && whole(s.n);
}

// Of all multiprocessors in a second, at the clock that rates are stated at.
double cycles_per_second(const Gpu& gpu) {
  return gpu.sm_count * gpu.tensor_clock_mhz.value_or(gpu.boost_clock_mhz) * 1e6;
}

// Bytes of an element of a format that a compiler pads; 0: of another.
std::int64_t width(DType dtype) {
  const double bytes = bytes_per_element(dtype);
  return bytes >= 2 ? static_cast<std::int64_t>(bytes) : 0;
}

bool slow_cores(const Gpu& gpu, const GemmLayout& layout, DType dtype) {
  const std::optional<FlopsPerSecond> dense = gpu.rate(dtype);
  // Rates and clocks are rounded where they were read.
  return dense && dense->value < 1.05 * layout.slow_flop_per_cycle * cycles_per_second(gpu);
}

// What is out of line (GemmLayout::misaligned_by_side). REQUIRES that something is.
std::size_t side_out_of_line(const GemmShape& s, int alignment_bytes) {
  if (s.across_rows) return 2;
  GemmShape operands = s;
  operands.n = 0;
  return aligned(operands, alignment_bytes) ? 0 : 1;
}

// The rate that a card reaches at its board's power, over the family's row.
double scale_at_full_power(const Gpu& gpu, const Profile& profile) {
  const GemmCalibration& c = profile.row(gpu.family).gemm;
  const std::optional<DType> half = half_format(gpu);
  if (half) {
    const double sustained = c.sustained_fraction[static_cast<std::size_t>(*half)];
    if (const MeasuredMatmul* m = profile.matmul(gpu.id)) {
      const double fraction = std::min(1.0, m->rate / *gpu.rate(*half));
      return fraction / (m->sustained && sustained > 0 ? sustained : c.best_fraction);
    }
    if (gpu.efficiency.gemm_peak_fraction)
      return std::min(1.0, *gpu.efficiency.gemm_peak_fraction) / c.best_fraction;
  }
  if (c.power_exponent == 0 || gpu.power_w <= 0 || gpu.sm_count <= 0) return 1;
  return std::pow(gpu.power_w / gpu.sm_count / c.reference_watts_per_sm, c.power_exponent);
}

}  // namespace

double waves(double blocks, double slots, double rounding) {
  const double share = blocks / slots;
  if (share <= 1) return 1;
  return share + rounding * (std::ceil(share) - share);
}

double slowest_rate(int chips, double spread) {
  require(chips >= 1, "some chips");
  const double below = (chips - 0.375) / (chips + 0.25);
  return 1 - spread * boost::math::quantile(boost::math::normal(), below);
}

double kept_under_load(const Gpu& gpu, const Profile& profile, DType format, ChipLoad load) {
  if (gpu.capped_rates || load.training_chips == 0) return 1;
  return profile.row(gpu.family).training_load.matmul[static_cast<std::size_t>(format)] *
         slowest_rate(load.training_chips, profile.chips.rate_spread);
}

double sustained_scale(const Gpu& gpu, const Profile& profile) {
  const double full = scale_at_full_power(gpu, profile);
  if (gpu.allowed_w() >= gpu.power_w) return full;
  return full *
         std::pow(gpu.allowed_w() / gpu.power_w, profile.row(gpu.family).gemm.power_limit_exponent);
}

GemmModel::GemmModel(const Gpu& gpu, const Profile& profile, ChipLoad load)
    : layout_(profile.gemm_layout) {
  const GemmCalibration& c = profile.row(gpu.family).gemm;
  require(!c.tiles.empty() && 2 * c.tiles.size() <= candidates_.size(),
          "a family has between one and eight tiles");
  multiprocessors_ = std::max(1, gpu.sm_count);
  wave_rounding_ = c.wave_rounding;
  ramp_bytes_ = c.ramp_bytes;
  start_ = c.start;
  split_start_ = c.split_k_starts * c.start;
  if (const std::optional<DType> half = half_format(gpu))
    torch_grouped_ = c.torch_grouped_fraction * gpu.rate(*half)->value;
  bandwidth_ = BytesPerSecond(c.memory_fraction * gpu.memory_bandwidth.value);
  for (const GemmTile& t : c.tiles) {
    const double slots = std::max(1.0, std::floor(multiprocessors_ / t.sms));
    const Candidate upright{double(t.m), double(t.n), slots, t.sms * t.rate};
    candidates_[candidate_count_++] = upright;
    if (t.m != t.n)
      candidates_[candidate_count_++] = {upright.n, upright.m, slots, upright.sms_rate};
  }
  const double scale = sustained_scale(gpu, profile);
  for (const DTypeRow& r : dtype_rows) {
    Ceilings& own = ceilings_[index(r.dtype)];
    own = ceilings(gpu, c, r.dtype, scale);
    const double kept = kept_under_load(gpu, profile, r.dtype, load);
    own.issue_per_sm *= kept;
    own.sustained = FlopsPerSecond(kept * own.sustained.value);
  }
  for (const DType d : {DType::fp16, DType::bf16})
    if (!supports(d)) ceilings_[index(d)] = stand_in(gpu, layout_, d);
  if (!supports(DType::tf32)) {
    ceilings_[index(DType::tf32)] = ceilings_[index(DType::fp32)];
    ceilings_[index(DType::tf32)].native = false;
  }
  for (Ceilings& narrow : ceilings_)
    if (!narrow.native && narrow.issue_per_sm == 0) {
      narrow = ceilings_[index(half_format(gpu).value_or(DType::fp16))];
      narrow.native = false;
    }
  for (const DTypeRow& r : dtype_rows) {
    Ceilings& own = ceilings_[index(r.dtype)];
    own.slow = slow_cores(gpu, layout_, r.dtype);
    own.misaligned = own.slow ? layout_.slow_cores_misaligned_rate : layout_.misaligned_rate;
    if (const std::optional<FlopsPerSecond> peak = gpu.rate(r.dtype))
      balance_[index(r.dtype)] = peak->value / gpu.memory_bandwidth.value;
  }
  if (gpu.sm_count > 0) transposed_ = layout_.transposing_cycles / cycles_per_second(gpu);
  // cuBLAS's kernels; what others do with such rows is not known.
  if (gpu.vendor == "nvidia")
    misaligned_most_ = layout_.misaligned_flop_per_cycle * cycles_per_second(gpu);
}

GemmModel::Ceilings GemmModel::ceilings(const Gpu& gpu, const GemmCalibration& c, DType dtype,
                                        double scale) const {
  const std::optional<FlopsPerSecond> dense = gpu.rate(dtype);
  if (!dense || c.issue_fraction[index(dtype)] <= 0) return {};
  const double issue = std::min(1.0, c.issue_fraction[index(dtype)] * std::max(1.0, scale));
  const double sustained = std::min(issue, c.sustained_fraction[index(dtype)] * scale);
  return {issue * dense->value / multiprocessors_, FlopsPerSecond(sustained * dense->value), true,
          dtype == DType::fp32};
}

GemmModel::Ceilings GemmModel::stand_in(const Gpu& gpu, const GemmLayout& layout,
                                        DType dtype) const {
  const Ceilings& fp32 = ceilings_[index(DType::fp32)];
  const double rate = layout.emulated_rate[index(dtype)];
  if (fp32.native && rate > 0)
    return {rate * fp32.issue_per_sm, FlopsPerSecond(rate * fp32.sustained.value), false, true};
  Ceilings other = ceilings_[index(half_format(gpu).value_or(DType::fp32))];
  require(other.native, "a GPU computes in fp32 or in a 16-bit format");
  other.native = false;
  return other;
}

// The quickest way to issue the product's tiles, apart from power and memory.
double GemmModel::issue_time(const GemmShape& s, double issue_per_sm, double element_bytes) const {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n);
  const double k = static_cast<double>(s.k), batch = static_cast<double>(s.batch);
  const double ramp = ramp_bytes_ / element_bytes;
  // Partial sums are fp32: every part is written, and all are read and added once.
  const double partial_bytes = 4 * m * n * batch / bandwidth_.value;
  double best = HUGE_VAL;
  for (std::size_t i = 0; i < candidate_count_; ++i) {
    const Candidate& c = candidates_[i];
    const double blocks = ceil_ratio(m, c.m) * ceil_ratio(n, c.n) * batch;
    const double per_k = 2 * c.m * c.n / (c.sms_rate * issue_per_sm);
    best = std::min(best, waves(blocks, c.slots, wave_rounding_) * per_k * (k + ramp));
    for (int split = 2; split <= max_split_k_ && blocks * split / 2 < c.slots; split *= 2) {
      const double w = waves(blocks * split, c.slots, wave_rounding_);
      const double adding = split_start_.value + partial_bytes * (split + 1);
      best = std::min(best, w * per_k * (std::ceil(k / split) + ramp) + adding);
    }
  }
  return best;
}

// Inductor times a product whose lengths are out of line beside one that zeros fill up, whose
// operands it copies unless an element-wise kernel or a norm made them in rows, and takes that if
// the first takes 1.1 times as long; products that memory bounds, by half of what the card's peaks
// say, stay as they are (PyTorch 2.15 torch/_inductor/fx_passes/pad_mm.py: is_mm_compute_bound,
// should_exclude_padding_time, is_padded_faster). It times PyTorch's own copies, and runs compiled
// ones, which stream.
Seconds GemmModel::unless_padded(const GemmShape& s, Seconds as_is) const {
  const auto whole = [&](std::int64_t length) {
    const std::int64_t step = layout_.alignment_bytes / std::max<std::int64_t>(1, width(s.dtype));
    return length == 1 ? length : (length + step - 1) / step * step;
  };
  GemmShape filled = s;
  filled.m = whole(s.m), filled.n = whole(s.n), filled.k = whole(s.k);
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n);
  const double k = static_cast<double>(s.k);
  if (m * n * k / (m * k + n * k + m * n) <= 0.5 * balance_[index(s.dtype)]) return as_is;
  const double each = static_cast<double>(width(s.dtype));
  const auto transposed = static_cast<double>(s.padding_transposes);
  const auto copied = static_cast<double>(s.padding_copies);
  const Seconds padded = time_as_is(filled);
  // Both kinds fill what they copy into first.
  const double timed =
      transposed * (transposed_ + each / bandwidth_.value) + copied * 3 * each / bandwidth_.value;
  if (as_is.value <= 1.1 * (padded.value + timed)) return as_is;
  return padded + Seconds(2 * each * (transposed + copied) / bandwidth_.value);
}

Seconds GemmModel::time(const GemmShape& s) const {
  const Seconds as_is = time_as_is(s);
  const bool padding = s.padding && width(s.dtype) > 0 && as_is > Seconds(0) &&
                       !ceilings_[index(s.dtype)].on_cores && !aligned(s, layout_.alignment_bytes);
  return padding ? unless_padded(s, as_is) : as_is;
}

Seconds GemmModel::time_as_is(const GemmShape& s) const {
  if (s.m <= 0 || s.n <= 0 || s.k <= 0 || s.batch <= 0) return Seconds(0);
  const Ceilings& c = ceilings_[index(s.dtype)];
  const double element_bytes = bytes_per_element(s.dtype);
  // Kernels of the CUDA cores load element by element (CUTLASS @044405ce10 include/cutlass/gemm/
  // device/default_gemm_configuration.h: kAlignmentA 1 for OpClassSimt, 128 bits for tensor cores).
  const bool by_element = !c.on_cores && !aligned(s, layout_.alignment_bytes);
  const bool by_side = by_element && !c.slow;
  const double side =
      by_side ? layout_.misaligned_by_side[side_out_of_line(s, layout_.alignment_bytes)] : 1;
  const double slowdown = by_element ? 1 / (c.misaligned * side) : 1;
  const Flops work(2 * static_cast<double>(s.m) * static_cast<double>(s.n) *
                   static_cast<double>(s.k) * static_cast<double>(s.batch));
  const double issue = issue_time(s, c.issue_per_sm, element_bytes);
  const double power = (work / c.sustained).value;
  const double memory = operand_and_result_bytes(s, element_bytes) / bandwidth_.value;
  double computing = slowdown * std::max(issue, power);
  if (by_element && misaligned_most_ > 0)
    computing = std::max(computing, work.value / (side * misaligned_most_));
  const double plain = together(computing, memory, layout_.overlap_exponent);
  if (!s.accumulate) return start_ + Seconds(plain);
  const double added = accumulated_bytes(s) / bandwidth_.value;
  return start_ + Seconds(together(plain, added, layout_.accumulate_exponent));
}

Seconds GemmModel::time_by_torch(const GemmShape& s) const {
  if (torch_grouped_ <= 0) return time(s);
  const double flops = 2 * static_cast<double>(s.m) * static_cast<double>(s.n) *
                       static_cast<double>(s.k) * static_cast<double>(s.batch);
  return std::max(time(s), start_ + Seconds(flops / torch_grouped_));
}

}  // namespace shardwise
