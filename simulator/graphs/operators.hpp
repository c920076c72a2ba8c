// Operators: one layer of the model as tensors and the operators between them.
//
// A LayerGraph says for every operator which kernels it runs forward and backward, which tensors
// it reads and writes, and which it keeps for its backward pass, as autograd does. Everything that
// is asked later follows from it: time (the kernels), the allocation stream (liveness of the
// tensors, layer_script), recomputation (which operators run again), parameter bytes.
//
// Shapes are per rank: T tokens of one microbatch after context parallelism, Ts = T / tensor where
// norms and residuals are sharded along the sequence, h hidden, a heads / tensor, and so on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "catalog/collective.hpp"
#include "catalog/dtype.hpp"
#include "catalog/framework.hpp"
#include "catalog/lane_loop.hpp"
#include "catalog/profile.hpp"
#include "catalog/units.hpp"
#include "simulator/graphs/memory_category.hpp"

namespace shardwise {

// C[m,n] = A[m,k] B[k,n], `batch` times. `tokens` of experts are balanced over the batch.
struct GemmWork {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  DType dtype = DType::bf16;
  bool accumulate = false;   // into an fp32 main gradient
  bool grouped = false;      // by a loop over `batch` products that are launched one by one
  bool at_once = false;      // but one kernel computes the whole group
  bool by_torch = false;     // one kernel of PyTorch's own for the group
  bool looped = false;       // the same within one operator of PyTorch's, each alone on the GPU
  bool across_rows = false;  // GemmShape::across_rows
  bool joined = false;       // columns of the product before it, which one launch computes
  int operators = 0;         // of PyTorch's own, for each of `batch`; 0: one for all of them
  bool padding = false;      // GemmShape::padding, and what it copies
  std::int64_t padding_transposes = 0, padding_copies = 0;
  friend bool operator==(const GemmWork&, const GemmWork&) = default;
};

// Weights of a group are one tensor of three dimensions, not one for each of its products.
constexpr bool stacks_weights(const GemmWork& work) { return work.by_torch || work.looped; }

// The gradient of a weight [in, out] from `rows` of inputs and of output gradients.
inline GemmWork weight_gradient(std::int64_t in, std::int64_t out, std::int64_t rows, DType dtype,
                                std::int64_t batch = 1) {
  GemmWork work{in, out, rows, batch, dtype};
  work.across_rows = true;
  return work;
}

// Softmax attention of `heads` query heads per sequence; window limits how far back a query looks.
struct AttentionWork {
  std::int64_t batch = 1;
  int heads = 1, kv_heads = 1, head_dim = 128;
  std::int64_t queries = 0, keys = 0;
  bool causal = true;
  bool restarts = false;  // of a window: it is a chunk, before which nothing is seen
  bool masked = false;    // reads which pairs count, and computes the others too
  bool backward = false;
  bool deterministic = false;  // sums are taken in one order
  AttentionKernel kernel = AttentionKernel::flash;
  bool fp32_operands = false;    // 16 bits otherwise
  bool narrow_operands = false;  // 8 bits with scales of blocks (MXFP8)
  bool tf32_products = false;    // of fp32 operands, where the products are kernels of their own
  bool products_alone = false;   // what runs on the scores between them is told apart
  int pieces = 1;                // kernels of this shape, one after the other (ring attention)
  int context = 1;               // ranks that a sequence's queries are dealt to, evenly in pairs
  friend bool operator==(const AttentionWork&, const AttentionWork&) = default;
};

// Kernels that are bound by memory traffic.
struct MemoryWork {
  Bytes moved;
  int launches = 1;
  MemoryAccess access = MemoryAccess::streaming;
  bool plain = false;    // operators of PyTorch's own, also where the framework's are fused
  bool routing = false;  // of the choice of experts, with what moves tokens to them
  bool looped = false;   // launched one by one, by a call that also launches other kernels
  // Elements that its kernels take one by one, by an index that is divided out for each: where an
  // operand is broadcast or strided, or has another type (PyTorch
  // aten/src/ATen/native/cuda/CUDALoops.cuh, gpu_kernel_impl: not contiguous, or cast).
  std::int64_t singly = 0;
  LaneSteps lanes{};  // what they compute meanwhile
};

// The parallel axis along which a layer communicates.
enum class CommAxis : std::uint8_t { tensor, context, expert };

struct CommWork {
  Collective collective = Collective::all_reduce;
  Bytes size;  // as in collective_model: the gathered size of gathers and scatters
  CommAxis axis = CommAxis::tensor;
  bool beside_compute = false;   // may run behind this operator's own kernels (ring attention)
  int messages = 1;              // that carry it, each a call
  bool of_experts = false;       // between the tensor ranks of an expert, where those are others
  std::int64_t scored_rows = 0;  // of `size`: each takes along its scores of all experts of a node
};

// The CPU reads a result of the kernels before: it issues the next one when they are done. A loop
// does so before each of `turns` equal parts of what follows, up to the one of no turns, which ends
// it and waits for nothing.
struct ReadBack {
  int turns = 1;
};

using Kernel = std::variant<GemmWork, AttentionWork, MemoryWork, CommWork, ReadBack>;

struct Tensor {
  std::string_view name;
  std::int64_t bytes = 0;
  MemoryCategory category = MemoryCategory::temporaries;  // `activations` once it is saved
  std::int64_t gradient_bytes = 0;                        // 0: no gradient flows through it
  bool statistic = false;  // norm and softmax statistics, which papers leave out
  bool outlives = false;   // its backward pass, with the model's output (OutputLife)
  bool gathered = false;   // a collective writes it beside the result that is made of it
};

using TensorIndex = int;

enum class OperatorKind : std::uint8_t {
  matmul,
  attention,
  pointwise,
  communication,
  lookup,
  loss
};

struct Operator {
  std::string_view name;
  OperatorKind kind = OperatorKind::pointwise;
  std::vector<TensorIndex> inputs;
  std::vector<TensorIndex> outputs;
  std::vector<TensorIndex> saves;  // inputs or outputs that backward needs
  std::vector<Kernel> forward;
  std::vector<Kernel> forward_alone;    // of a pass without gradients; empty: as `forward`
  std::vector<Kernel> backward;         // for the inputs
  std::vector<Kernel> backward_weight;  // for the weights
  Bytes forward_temporary, backward_temporary;
  int forward_temporaries = 1, backward_temporaries = 1;  // tensors of one size that make each up
  MemoryCategory temporary_category = MemoryCategory::temporaries;
  std::int64_t weight_gradient_elements = 0;  // made by this operator's backward pass
  int weight_gradients = 1;                   // tensors of one size that they are
  bool stored_gradient = false;    // of the weights: made in the format that they are stored in
  bool passes_gradient = false;    // the inputs' gradient *is* the output's (residual add)
  bool crosses_graphs = false;     // its result goes from one compiled graph to the next, so that
                                   // it is kept as it is
  bool unlisted = false;           // selective-op does not know it, and runs it again
  bool ends_output = false;        // of the microbatch before, as this one runs (OutputLife)
  bool in_place_gradient = false;  // gradients overwrite saved tensors: their own, or the first

  // The kernels of one of a microbatch's forward passes, of which the first is for gradients.
  const std::vector<Kernel>& run_by(int pass) const {
    return pass == 0 || forward_alone.empty() ? forward : forward_alone;
  }
};

// Elements of the largest tensor among the matrices whose gradients an operator makes; 0: none.
inline std::int64_t largest_matrix(const Operator& op) {
  std::int64_t most = 0;
  for (const Kernel& k : op.backward_weight)
    if (const auto* gemm = std::get_if<GemmWork>(&k)) {
      const std::int64_t each = std::int64_t{gemm->m} * gemm->n;
      most = std::max(most, each * (stacks_weights(*gemm) ? gemm->batch : 1));
    }
  return most;
}

// The sides of matrices, added up: what optimizers keep that factor or project a matrix.
struct MatrixSides {
  std::int64_t longer = 0, shorter = 0;

  void count(std::int64_t in, std::int64_t out, std::int64_t matrices) {
    longer += matrices * (in > out ? in : out);
    shorter += matrices * (in > out ? out : in);
  }
  MatrixSides& operator+=(const MatrixSides& o) {
    longer += o.longer;
    shorter += o.shorter;
    return *this;
  }
  friend bool operator==(const MatrixSides&, const MatrixSides&) = default;
};

// Parameters of one layer on one rank, by how they are stored and sharded.
struct LayerParameters {
  std::int64_t linear = 0;  // matrices that a quantised method quantises
  std::int64_t other = 0;   // norms, biases, embedding and head tables
  std::int64_t table = 0;   // embedding tables, where the model narrows them
  std::int64_t expert = 0;  // routed experts: their data-parallel group is smaller
  std::int64_t adapter = 0;
  std::int64_t expert_adapter = 0;  // on routed experts, which have fewer replicas
  std::int64_t cast = 0;            // of matmuls, tied ones too: what autocast copies to 16 bits
  std::int64_t largest_matrix = 0;  // elements; bounds what a dequantisation needs
  int modules = 0;                  // PyTorch modules that hold them; experts if called by a loop
  int fetches =
      0;  // all-gathers of theirs, where modules are fetched (FrameworkSharding::fetch_elements)
  MatrixSides linear_sides, expert_sides;  // of the matrices in `linear` and in `expert`

  std::int64_t base() const { return linear + other + table + expert; }
  friend bool operator==(const LayerParameters&, const LayerParameters&) = default;
};

struct LayerGraph {
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;  // in order of execution
  TensorIndex input = 0;
  TensorIndex output = 0;
  LayerParameters parameters;
};

// Parameters that have gradients.
inline int trained_tensors(const LayerGraph& graph) {
  int n = 0;
  for (const Operator& op : graph.operators)
    n += op.weight_gradient_elements > 0 ? op.weight_gradients : 0;
  return n;
}

}  // namespace shardwise
