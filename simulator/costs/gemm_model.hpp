// GemmModel: how long one matrix product takes on one GPU.
//
// C[m,n] = A[m,k] B[k,n] is cut into tiles of tm x tn; SMs / tile.sms of them run at once, in
// W waves. k may be split s ways where there are fewer tiles than multiprocessors:
//
//   blocks  = ceil(m / tm) ceil(n / tn) batch s
//   issue   = W(blocks) 2 tm tn (k / s + ramp) / (sms x rate of one SM x issue fraction x tile
//   rate)
//   power   = 2 m n k batch / (dense rate x sustained fraction)
//   memory  = bytes of A, B and C / (fraction x memory bandwidth)
//   time    = start + max(min over tiles and splits of issue, power, memory)
//
// where computing and memory do not wholly hide behind each other (overlap_exponent). An fp32 C
// that is added to is read and written behind a tile's last product, when its multiprocessor has
// nothing else to compute (accumulate_exponent).
//
// Wave quantisation: NVIDIA Matrix Multiplication Background User's Guide, section 4. W lies
// between blocks / slots and its ceiling by `wave_rounding`: idle multiprocessors leave power to
// the others, and persistent kernels share out a last wave. Every candidate grows with m, n, k and
// batch and shrinks with rate and bandwidth; so does the minimum. Constants: profile.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "catalog/profile.hpp"

namespace shardwise {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;     // independent products of this shape in one launch
  DType dtype = DType::bf16;  // of A and B; C is 16-bit, or 32-bit for fp32 and tf32
  bool accumulate = false;    // C is fp32 and added to: weight gradients into a main gradient
  // k counts the rows of both operands, which are m and n long: what k is puts no row out of line.
  // Products of 8 bits and less want it next to one another all the same.
  bool across_rows = false;
  // A compiler may pad lengths that are out of line, whichever is faster. `padding_transposes`
  // elements of an operand it copies into the other order for that, `padding_copies` as they are.
  bool padding = false;
  std::int64_t padding_transposes = 0, padding_copies = 0;
};

// Waves that `blocks` take on `slots`: at least one; `rounding` as GemmCalibration::wave_rounding.
double waves(double blocks, double slots, double rounding);

// What this very chip reaches, relative to its family's reference: from its own measured rate, or
// from its power per multiprocessor; less where its owner holds it to less power.
double sustained_scale(const Gpu& gpu, const Profile& profile);

// Rate of the slowest of `chips` over their mean, where rates are normally distributed with that
// standard deviation: expected value of an extreme order statistic (Blom's approximation).
// REQUIRES at least one.
double slowest_rate(int chips, double spread);

// What is left of a tensor rate under a load, over a benchmark of one chip.
double kept_under_load(const Gpu& gpu, const Profile& profile, DType format, ChipLoad load);

class GemmModel {
 public:
  GemmModel(const Gpu& gpu, const Profile& profile, ChipLoad load = {});

  Seconds time(const GemmShape& shape) const;
  // The same by PyTorch's kernel for a group of products, which on some cards does not reach what
  // others do. Its rate is below what power allows, so that a load takes nothing from it.
  Seconds time_by_torch(const GemmShape& shape) const;

  // Whether the GPU computes this format itself. Otherwise time() is that of its stand-in: fp32
  // arithmetic for 16-bit formats and tf32, bf16 for narrower ones.
  bool supports(DType dtype) const { return ceilings_[index(dtype)].native; }
  Seconds start() const { return start_; }  // of one kernel, in every time()
  FlopsPerSecond sustained_rate(DType dtype) const { return ceilings_[index(dtype)].sustained; }

 private:
  struct Ceilings {
    double issue_per_sm = 0;  // [FLOP/s]
    FlopsPerSecond sustained;
    bool native = false;
    bool on_cores = false;  // in fp32 arithmetic, without tensor cores
    double misaligned = 1;  // relative rate where rows are out of line
    bool slow = false;      // tensor cores: GemmLayout::slow_cores_misaligned_rate
  };
  struct Candidate {
    double m = 0, n = 0;
    double slots = 1;
    double sms_rate = 1;  // multiprocessors per tile x relative rate
  };
  static std::size_t index(DType d) { return static_cast<std::size_t>(d); }

  Ceilings ceilings(const Gpu& gpu, const GemmCalibration& c, DType dtype, double scale) const;
  Ceilings stand_in(const Gpu& gpu, const GemmLayout& layout, DType dtype) const;
  double issue_time(const GemmShape& shape, double issue_per_sm, double element_bytes) const;
  Seconds time_as_is(const GemmShape& shape) const;
  Seconds unless_padded(const GemmShape& shape, Seconds as_is) const;

  std::array<Ceilings, dtype_count> ceilings_{};
  std::array<Candidate, 16> candidates_{};  // every tile in both orientations
  std::size_t candidate_count_ = 0;
  double multiprocessors_ = 1;
  double wave_rounding_ = 1;
  double ramp_bytes_ = 0;
  int max_split_k_ = 8;
  Seconds start_, split_start_;
  double torch_grouped_ = 0;    // [FLOP/s] of PyTorch's kernel for a group; 0: as others
  double misaligned_most_ = 0;  // [FLOP/s] by kernels that load element by element; 0: no bound
  BytesPerSecond bandwidth_;    // that operands stream at
  double transposed_ = 0;       // [s] of an element that PyTorch copies into the other order
  std::array<double, dtype_count> balance_{};  // [FLOP/B] of peak rate and memory, by format
  GemmLayout layout_;
};

}  // namespace shardwise
