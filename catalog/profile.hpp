// Profile: the calibration that every forecast rests on. Datasheets say what a GPU could do; a
// profile says what kernels reach on it, by GPU family (Gpu::family), and how sure that is.
//
// `catalog/profiles/published.json` is the default and holds micro-benchmarks that others
// published; `shardwise calibrate` writes another one. Each group of constants carries its trust,
// its source and its spread, so that an answer can name the weakest number it rests on. A
// constant that comes from training runs says so and names them. Fractions are of the datasheet's
// dense rate or of the memory bandwidth; the equations are in gemm_model, attention_model and
// memory_bound_model.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/dtype.hpp"
#include "catalog/fitted.hpp"
#include "catalog/framework.hpp"
#include "catalog/gpu.hpp"
#include "catalog/lane_loop.hpp"
#include "catalog/library_release.hpp"
#include "catalog/link_calibration.hpp"
#include "catalog/provenance.hpp"
#include "catalog/result.hpp"
#include "catalog/spread.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// How much a group of constants is worth.
struct Evidence {
  Trust trust = Trust::assumed;
  double spread = 0.2;  // relative half width of an 80 % interval of the time it predicts
  Provenance provenance;
};

// One output tile of a matrix kernel: `sms` multiprocessors compute m x n elements of C together.
// Both orientations, m x n and n x m, are meant.
struct GemmTile {
  int m = 128;
  int n = 128;
  int sms = 1;
  double rate = 1.0;  // relative to the family's best tile, with full waves and a long k
};

struct GemmCalibration {
  std::vector<GemmTile> tiles;
  // Two ceilings, by the format of the operands. `issue`: what the multiprocessors reach while
  // clocks are high. `sustained`: what the whole chip keeps up under its power limit with random
  // data. 0 where the family lacks the format.
  std::array<double, dtype_count> issue_fraction{};
  std::array<double, dtype_count> sustained_fraction{};
  double wave_rounding = 1;    // 1: a last partial wave costs a full one; 0: it costs its share
  double ramp_bytes = 0;       // [B of a row of k] prologue and epilogue of a tile, as extra k
  double memory_fraction = 0;  // while operands stream
  double split_k_starts = 1;   // fixed cost of splitting k, in kernel starts
  // Of the dense 16-bit rate, what PyTorch's kernel for a group of products reaches; 0: as others.
  double torch_grouped_fraction = 0;
  Seconds start;  // fixed part of a kernel: launch, fill, drain
  // Chips of one family differ in power per multiprocessor, and their sustained rate with it:
  // (W per SM / reference)^exponent, unless the GPU has a measured best rate of its own.
  double best_fraction = 1;  // best 16-bit rate over all shapes on the reference GPU
  double reference_watts_per_sm = 1;
  double power_exponent = 0;
  // A card that its owner holds to less power: (W held to / W of the board)^exponent. The chip and
  // its voltages stay, so that other cards of the family tell of it only where nothing else does.
  double power_limit_exponent = 0;
  Evidence evidence;
};

// How the operands of a matrix product lie in memory, for every family.
struct GemmLayout {
  // Where C is fp32 and added to (weight gradients): time^p = (what a 16-bit C takes)^p + (traffic
  // beyond that)^p; 0: the longer of both. A tile reads and writes C behind its last product.
  double accumulate_exponent = 0;
  int alignment_bytes = 16;    // rows must be multiples of this for the widest loads
  double misaligned_rate = 1;  // relative rate where they are not
  // The same where the tensor cores of a multiprocessor do no more in a cycle, as on GeForce and in
  // TF32: what is loaded element by element keeps them waiting less.
  double slow_cores_misaligned_rate = 1;
  int slow_flop_per_cycle = 0;
  // What such a kernel does at most in a cycle of a multiprocessor, however fast its cores; 0: any.
  int misaligned_flop_per_cycle = 0;
  // misaligned_rate and misaligned_flop_per_cycle, over what they are on average, by what is out of
  // line: the result's rows alone, an operand's, or those of a weight gradient, which sums over
  // rows. Slow cores make no difference between them.
  std::array<double, 3> misaligned_by_side{1, 1, 1};
  // Cycles of a multiprocessor for each element that PyTorch copies into the other order of rows
  // and columns, by a kernel that joins no loads; 0: not known.
  double transposing_cycles = 0;
  // Computing and traffic of one product: time^p = computing^p + traffic^p; 0: the longer of both.
  double overlap_exponent = 0;
  // 16-bit formats without tensor cores for them: rate / the rate of fp32, by format.
  std::array<double, dtype_count> emulated_rate{};
  Evidence evidence;
};

// Fused attention kernels that store no scores.
enum class FusedAttention { memory_efficient, flash1, flash2, flash3, cudnn, cudnn_mxfp8 };
inline constexpr std::size_t fused_attention_count = 6;
inline constexpr std::array<std::string_view, fused_attention_count> fused_attention_names{
    "memory_efficient", "flash1", "flash2", "flash3", "cudnn", "cudnn_mxfp8"};
constexpr std::string_view name(FusedAttention k) {
  return fused_attention_names[static_cast<std::size_t>(k)];
}

// The rate that a fused attention kernel tends to with long sequences, and what it loses before.
struct AttentionRate {
  double fraction = 0;            // of the dense rate of its operands, not causal
  double ramp_tokens = 0;         // fixed cost of a thread block, as extra keys
  double causal_rate = 1;         // relative rate where causal, beside the masked half
  double lone_block_rate = 1;     // share of a multiprocessor that one block alone can use
  double fp32_fraction = 0;       // as `fraction`, with fp32 operands; 0: that of plain products
  double mask_columns = 0;        // columns of a head that take as long as a mask that is read
  int split_blocks = 0;           // blocks up to which the keys of heads are split; 0: no such end
  double deterministic_rate = 1;  // relative rate where sums are taken in one order
  bool whole_windows = false;     // in a window it computes all pairs, those that nobody sees too
};

struct AttentionRow {
  int head_dim = 128;
  AttentionRate forward, backward;
};

struct AttentionCalibration {
  FusedAttention kernel = FusedAttention::flash2;
  std::optional<LibraryRelease> before;  // of cuDNN: rates of its releases before this one; absent:
                                         // of those of today, and where nobody tells the release
  int tile_queries = 128;                // queries per thread block
  std::vector<AttentionRow> rows;        // ascending head_dim; interpolated
  Evidence evidence;
};

// Kernels over stored scores, by KernelStyle.
struct ScoreKernels {
  std::array<double, 3> bytes{};  // [B per score] of all of them
  std::array<int, 3> kernels{};
};

// What attention with stored scores runs beside its matrix products: the softmax row by row, scale,
// mask and casts element by element.
struct ScoreTraffic {
  ScoreKernels forward_softmax, forward_elementwise;
  ScoreKernels backward_softmax, backward_elementwise;
};

struct EagerAttentionTraffic {
  ScoreTraffic half, fp32;  // where scores have 16 bits (and their softmax is fp32), and 32
  Evidence evidence;
  const ScoreTraffic& of(bool fp32_scores) const { return fp32_scores ? fp32 : half; }
};

// Kinds of kernels that only move bytes.
enum class MemoryAccess {
  streaming,  // element-wise: copies, residual adds, activations, optimizer steps
  reduction,  // row by row: norms, softmax, cross-entropy
  gather,     // scattered rows: embedding, token permutation
};
inline constexpr std::size_t memory_access_count = 3;

// What kernels find in the L2 cache because the one before wrote it there.
struct CacheCalibration {
  BytesPerSecond each;  // that one multiprocessor moves while all of them stream through the cache
  // Bytes of a kernel over the size of the cache: up to `full` it finds all, from `empty` on none.
  double full = 0;
  double empty = 1;
};

// t = start + the longer of bytes / (fraction x bandwidth)
//                     and elements x cycles / (multiprocessors x clock)
struct MemoryCalibration {
  std::array<double, memory_access_count> fraction{};
  Seconds start;  // also the gap between two dependent small kernels on one stream
  // Of one multiprocessor, for an element of a kernel that takes them one by one; 0: not known.
  double cycles_per_element = 0;
  std::optional<CacheCalibration> cache;  // absent: not measured, all bytes come from memory
  Evidence evidence;
};

// What issuing work costs the CPU.
struct HostCalibration {
  std::array<Seconds, 3> per_kernel{};  // by KernelStyle
  Seconds per_looped_launch;            // one of many that a single call launches, in C++
  Seconds per_grouped_product;          // of such a call, the Python around each product
  Seconds per_narrow_product;           // the same of 8 bits and less
  Seconds per_streamed_product;         // and C++ around it, where they go to several streams
  Seconds per_graph_forward;            // a captured part of a layer: its launch and what is around
  Seconds per_graph_backward;
  Seconds per_collective;  // wrapper, work object, events, stream switch
  // Of a checkpoint beyond what runs again, in the time of an eager operator: a reentrant one; one
  // that is not, which calls Python for every tensor that autograd saves.
  double reentrant_checkpoint = 0, checkpoint = 0, per_checkpointed_tensor = 0;
  // Of a linear or norm whose weight is a DTensor, in the same measure: in each pass.
  double dtensor_forward = 0, dtensor_backward = 0;
  double mxfp8_weight_cast = 0;  // in the same measure: of a weight that is kept so, after a step
  double step_operators = 0;     // around an optimizer's step, in the time of an operator
  int launch_queue = 0;          // kernels that may wait for the GPU before the CPU does
  double rank_spread = 0;  // by which the slowest process of a group is slower than their mean
  std::vector<FittedField> fitted;
  Seconds communicator_creation;  // between two ranks, the first time that they talk
  Evidence evidence;
};

// Memory that a process holds outside its tensors.
struct ContextCalibration {
  Bytes cuda_context;
  Bytes eager_modules;        // more, where CUDA loads every kernel at the start
  Bytes cublas_workspace;     // each, inside the caching allocator
  int cublas_workspaces = 1;  // one per (handle, stream) in use while training
  Evidence evidence;
};

// What a chip keeps of its benchmarked matrix rates in a training step, on the mean of its kind.
// Benchmarks run one kernel for milliseconds; a step keeps a chip busy for hours, at the clock that
// the power limit then leaves.
struct TrainingLoad {
  std::array<double, dtype_count> matmul;  // by the format of the operands; attention as bf16
  Evidence evidence;
  std::vector<std::string> fitted_on;  // files of catalog/runs, where no benchmark tells it

  TrainingLoad() { matmul.fill(1.0); }
};

// How chips of one kind differ at the clock that their power limit leaves.
struct ChipCalibration {
  double rate_spread = 0;  // standard deviation of matrix rates over their mean
  Evidence evidence;
};

// What keeps a chip busy: a benchmark of milliseconds, or training with others, of which each step
// waits for the slowest.
struct ChipLoad {
  int training_chips = 0;  // that wait for each other; 0: a benchmark
};

struct FamilyCalibration {
  std::string family;  // Gpu::family
  GemmCalibration gemm;
  TrainingLoad training_load;
  std::vector<AttentionCalibration> attention;
  FusedAttention default_attention = FusedAttention::flash2;  // of PyTorch's SDPA
  MemoryCalibration memory;
  ContextCalibration context;
};

// A 16-bit matrix rate that was measured on one kind of GPU.
struct MeasuredMatmul {
  std::string gpu;  // Gpu::id
  FlopsPerSecond rate;
  bool sustained = false;  // else the best over shapes, in short runs
  Provenance provenance;
};

// Host RAM that training processes take beside what is offloaded.
struct HostMemoryFacts {
  Bytes process_resident;  // of one Python process with torch, transformers and CUDA's libraries
  Bytes checkpoint_shard;  // one file of a checkpoint, the most that is read at a time
};

struct Profile {
  std::string name;
  Provenance provenance;
  std::vector<FamilyCalibration> families;  // never empty; the first serves unknown families
  std::vector<MeasuredMatmul> matmuls;
  GemmLayout gemm_layout;
  EagerAttentionTraffic eager_attention;
  LaneLoops lane_loops;
  Evidence lane_evidence;
  HostCalibration host;
  HostMemoryFacts host_memory;
  ChipCalibration chips;
  LinkCalibration links;
  Spread spread;  // of real runs around the forecast; no rows where the profile names none

  const FamilyCalibration& row(std::string_view family) const;
  const MeasuredMatmul* matmul(std::string_view gpu) const;  // nullptr where nobody measured
};

// Reads a profile, and the link calibration and the spread that it names, which lie beside it.
Result<Profile> load_profile(const std::string& path);

}  // namespace shardwise
