// GraphBuilder: the operators that every layer is put together from.
//
// Each function appends one operator (or a short run of them) and returns the tensor it makes.
// What an operator saves is what PyTorch's autograd, Megatron's or torch.compile's versions of it
// save; the style comes from the framework's row.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "simulator/graphs/operators.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// How a linear layer is cut over the tensor-parallel ranks.
enum class Cut { none, columns, rows };

// A linear of the whole model: y = x W, `in` x `out`, before any cut.
struct LinearSpec {
  std::string_view name;
  std::int64_t in = 0;
  std::int64_t out = 0;
  Cut cut = Cut::none;
  bool bias = false;
  bool adapted = false;         // carries a LoRA/DoRA pair
  bool quantizable = true;      // false for embeddings, heads, routers
  bool low_precision = true;    // computed in fp8/fp4 where the workload says so
  bool input_again = false;     // backward makes the input again that an adapter reads
  bool wide = false;            // a product of fp32, which reads its input as it is
  bool outside_layers = false;  // of the head: what compiles the layers alone leaves it
};

// Whether trained weights have 16 bits where they are used, whatever they are stored in: ZeRO-3
// gathers them so (FSDP's MixedPrecision). Without one, where all is stored in 16 bits, fp32
// adapters stay what they are.
bool gathers_in_16_bits(const Workload& workload, const ParallelPlan& plan);
bool adapters_gathered_in_16_bits(const Workload& workload, const ParallelPlan& plan);

// Whether torch.autocast computes in 16 bits with weights that are of another format where they are
// used: fp32 (ZeRO-3 gathers them in 16 bits), or frozen ones of the other 16 bits. The residual
// stream is fp32 then, and every linear casts its own input: embedding and norms make it so, or
// PyTorch's sum of fp16 and bf16 in the first layer (c10/core/ScalarType.cpp, promoteTypes).
bool casts_weights(const Workload& workload, const ParallelPlan& plan);

// Whether experts' products are fp32 beside others of 16 bits, as their weights are where they are
// used: torch.autocast does not know PyTorch's grouped product, for which transformers casts the
// input to the weights' format (transformers 5.23.0 integrations/moe.py:374-382).
bool widens_experts(const Workload& workload, const ParallelPlan& plan);

// Whether quantised linears hand on fp32, as bitsandbytes' do where they read it (0.43.3,
// nn/modules.py, Linear4bit.forward: out.to(inp_dtype)): everywhere behind norms that PEFT's
// prepare_model_for_kbit_training has made fp32, which it is not called for where FSDP shards.
bool returns_wide(const Workload& workload, const ParallelPlan& plan);

// Whether the residual stream is fp32 beside 16-bit products, for either reason.
bool widens_stream(const Workload& workload, const ParallelPlan& plan);

// Whether a microbatch's 16-bit gradient is added to one that is kept, by a kernel of its own: not
// where the matmul adds in place, where one microbatch makes the whole gradient per step, or where
// each microbatch's gradient is reduced at once and only a shard is added to.
bool adds_gradient(const Workload& workload, const ParallelPlan& plan);
// The head's gradient is summed slice by slice in the format that its shards are reduced in.
bool sums_head_sharded(const Workload& workload, const ParallelPlan& plan);

// Whether a compiled graph ends where a bucket of gradients is full: under DistributedDataParallel
// torch.compile goes back from the end of what it compiles and begins another graph before the
// product whose weight fills one (PyTorch 2.15 torch/_dynamo/backends/distributed.py).
bool cuts_graphs(const Workload& workload, const ParallelPlan& plan);

// All that a layer's graph sees of stages, data ranks and how states are sharded over them.
struct SeenSharding {
  bool widens_stream = false, adds_gradient = false, gathers_adapters = false;
  bool sums_head_sharded = false, widens_experts = false, cuts_graphs = false;
  friend auto operator<=>(const SeenSharding&, const SeenSharding&) = default;
};
SeenSharding seen_sharding(const Workload& workload, const ParallelPlan& plan);

// A count that was computed: at least so many.
inline std::int64_t ceil_count(double n) { return static_cast<std::int64_t>(std::ceil(n)); }

// What kernels read and write in order, unless said otherwise.
inline MemoryWork traffic(double bytes, int launches,
                          MemoryAccess access = MemoryAccess::streaming) {
  return {ceil_bytes(bytes), launches, access};
}

// The same by kernels that take their elements one by one (MemoryWork::singly).
inline MemoryWork one_by_one(double bytes, int launches, double elements) {
  MemoryWork work = traffic(bytes, launches);
  work.singly = ceil_count(elements);
  return work;
}

// PyTorch's own operators, in a framework whose others are not.
inline void issue_as_plain(Operator& op) {
  for (std::vector<Kernel>* pass : {&op.forward, &op.backward})
    for (Kernel& k : *pass)
      if (auto* work = std::get_if<MemoryWork>(&k)) work->plain = true;
}

constexpr double as_double(std::int64_t n) { return static_cast<double>(n); }

// An operand of a product of less than 16 bits, by rows and by columns.
struct NarrowCast {
  double bytes_each = 0;  // of an element
  int kernels = 0;
};
NarrowCast cast_both_ways(const Workload& w, bool gradient);

// Whether operands are made NVFP4 by torchao's kernels, in every forward and backward pass.
bool casts_by_torchao(const Workload& w);
enum class FourBitOperand : std::uint8_t { input, weight, gradient };
// Adds the kernel that looks for the largest values and the one that writes rows and columns, of n
// elements of one product's operand or of all experts' at once.
void cast_four_bits(std::vector<Kernel>& pass, FourBitOperand what, bool of_experts, double n);

class GraphBuilder {
 public:
  GraphBuilder(const Workload& workload, const ParallelPlan& plan, bool trainable_base);

  std::int64_t tokens() const { return tokens_; }                    // T
  std::int64_t sequence_tokens() const { return sequence_tokens_; }  // Ts
  int tensor() const { return tensor_; }
  std::int64_t element() const { return element_; }  // bytes of one activation element
  std::int64_t stream_element() const { return stream_element_; }  // of the residual stream
  // Bytes of one element of a weight's gradient as autograd hands it on.
  std::int64_t gradient_element() const { return casts_weights_ ? cast_from_ : element_; }
  const Workload& workload() const { return workload_; }
  const ParallelPlan& plan() const { return plan_; }
  bool trains_base() const { return trains_base_; }
  bool eager() const { return workload_.framework.layers.kernels == KernelStyle::eager; }
  ModelCode own_code() const { return workload_.own_code(); }

  // The tensor that the layer before hands over, [Ts, h].
  TensorIndex input(std::int64_t elements);
  TensorIndex tensor(std::string_view name, std::int64_t elements);
  // The same tensor, in the dtype of the residual stream.
  TensorIndex in_stream(TensorIndex t);
  TensorIndex stream_tensor(std::string_view name, std::int64_t elements);
  // What a collective writes beside the result that is made of it.
  TensorIndex gathered_bytes(std::int64_t bytes, MemoryCategory category);
  // What is kept of a narrow product's input: by columns, with its scales.
  TensorIndex narrow_input(std::int64_t elements, DType narrow);
  TensorIndex tensor_bytes(std::string_view name, std::int64_t bytes, MemoryCategory category,
                           std::int64_t gradient_bytes);

  TensorIndex norm(std::string_view name, TensorIndex x, std::int64_t rows, std::int64_t width);
  TensorIndex head_norm(TensorIndex x, std::int64_t rows, std::int64_t width, std::int64_t head);
  // All-gathers a sequence-sharded tensor; without sequence parallelism it is the same tensor.
  // Where products read it that are quantised alike, it may travel in 8 bits.
  TensorIndex gather_sequence(TensorIndex x, std::int64_t width, bool quantizable = true);
  // What another linear reads of `source`, of which `gathered` was made for the first one.
  TensorIndex gathered_again(TensorIndex gathered, TensorIndex source, std::int64_t width);
  // Sums the partial results of row-cut linears, back to [Ts, h].
  TensorIndex reduce_partial(TensorIndex x, std::int64_t width);
  // Of quantised experts: each product of one of `experts` reads a 16-bit copy of its own weight.
  void dequantize_experts(Operator& op, std::int64_t elements, std::int64_t experts) const;
  TensorIndex own_copy(const LinearSpec& spec, TensorIndex x, std::int64_t elements);
  TensorIndex linear(const LinearSpec& spec, TensorIndex source, std::int64_t rows);
  TensorIndex residual_add(TensorIndex x, TensorIndex branch, std::int64_t elements);
  TensorIndex dropout(TensorIndex x, std::int64_t elements);
  // The sum of `x` and the bias that its linear has left to an operator of its own.
  TensorIndex with_bias(TensorIndex x, std::int64_t elements, bool biased);
  // As a product reads it: an fp32 tensor is copied to 16 bits under autocast.
  TensorIndex cast_input(TensorIndex x, std::int64_t elements);
  // One operator of `launches` kernels that reads and writes `passes` times `elements`.
  TensorIndex pointwise(std::string_view name, std::vector<TensorIndex> inputs,
                        std::vector<TensorIndex> saves, std::int64_t out_elements,
                        double forward_bytes, double backward_bytes, int launches);

  // The tensor is a view of one of `bytes`, which lives as long.
  void widen(TensorIndex t, std::int64_t bytes) {
    graph_.tensors[static_cast<std::size_t>(t)].bytes = bytes;
  }

  // The tensor stays as long as the model's output, whether a checkpoint makes it again or not: to
  // the end of the backward pass (`from_forward`) or longer (OutputLife).
  void outlive(TensorIndex t, bool from_forward = false) {
    graph_.tensors[static_cast<std::size_t>(t)].outlives =
        from_forward || workload_.framework.loss.output_life != OutputLife::backward;
  }
  void categorize(TensorIndex t, MemoryCategory category) {
    graph_.tensors[static_cast<std::size_t>(t)].category = category;
  }
  // Not as large as the tensor: where only a part of it has a gradient at one time.
  void resize_gradient(TensorIndex t, std::int64_t bytes) {
    graph_.tensors[static_cast<std::size_t>(t)].gradient_bytes = bytes;
  }
  // Parameters so far. What runs once more with the same weights is counted once: it is undone.
  const LayerParameters& counted() const { return graph_.parameters; }
  void recount(const LayerParameters& parameters) { graph_.parameters = parameters; }

  Operator& last() { return graph_.operators.back(); }
  std::size_t operators() const { return graph_.operators.size(); }
  // Operators from `first` on do what the one before them does, in the same launches: projections
  // that are told apart here and are one in the model's class.
  void join_launches(std::size_t first);
  // The operators from `first` on, what they make and their weights' gradients are fp32: tensors
  // from `tensor` on.
  void widen(std::size_t first, std::size_t tensor);
  std::size_t tensors() const { return graph_.tensors.size(); }
  Operator& add(Operator op);
  void count_fetches(std::int64_t elements, std::int64_t times);  // of `times` tensors
  void count_other(std::int64_t elements) { graph_.parameters.other += elements; }
  void count_table(std::int64_t elements) {
    (workload_.model.narrow_tables ? graph_.parameters.table : graph_.parameters.other) += elements;
  }
  void count_expert_modules(int modules);  // where each is a module of its own
  void count_experts(std::int64_t experts, std::int64_t in, std::int64_t out, bool bias);
  LayerGraph finish(TensorIndex output);
  std::int64_t bytes_of(TensorIndex t) const {
    return graph_.tensors[static_cast<std::size_t>(t)].bytes;
  }

  // Whether a linear and its adapter are one function (FrameworkAdapters::fused).
  bool fuses_adapters() const;

  // The weight of experts that are one tensor, their adapter added (sums_expert_adapters).
  TensorIndex sum_with_adapter(std::int64_t in, std::int64_t out, std::int64_t experts);

  // What the adapter of a linear adds to its result y; of `experts` linears, which share the rows.
  TensorIndex add_adapter(std::string_view name, TensorIndex x, TensorIndex y, std::int64_t rows,
                          std::int64_t in, std::int64_t out, std::int64_t experts = 0);

 private:
  void count_matrix(std::int64_t in, std::int64_t out, bool other);
  // What adding a microbatch's gradient to the one that is kept moves and launches, of a weight.
  struct Accumulation {
    double bytes = 0;
    int kernels = 0;
  };
  Accumulation accumulation() const;
  void sum_gradients();
  void cast_weights(Operator& op, std::int64_t elements, int tensors) const;
  void copy_along_sequence(Operator& op, Bytes forward, Bytes backward) const;
  void fuse_adapter(Operator& op, const LinearSpec& spec, TensorIndex x, std::int64_t rows,
                    std::int64_t in, std::int64_t out);
  void add_dequantization(Operator& op, std::int64_t elements) const;
  void add_unpacking(Operator& op, std::int64_t elements);
  void keep_quantized_input(Operator& op, TensorIndex input);
  TensorIndex norm_by(bool operators, std::string_view name, TensorIndex x, std::int64_t rows,
                      std::int64_t width);
  TensorIndex eager_norm(std::string_view name, TensorIndex x, std::int64_t rows,
                         std::int64_t width);
  TensorIndex written_out_layer_norm(std::string_view name, TensorIndex x, std::int64_t rows,
                                     std::int64_t width);
  TensorIndex fp32_norm(std::string_view name, TensorIndex x, std::int64_t rows,
                        std::int64_t width);
  // [rows, in] times [in, out], as one rank multiplies them.
  struct ProductShape {
    std::int64_t rows = 0, in = 0, out = 0;
  };
  void let_pad(Operator& op, const LinearSpec& spec, const ProductShape& product) const;
  // What the quantisation of both operands adds to a product (operand_casts.cpp).
  void cast_operands(Operator& op, TensorIndex x, const ProductShape& product);
  void cast_blocks_apart(Operator& op, bool first, const ProductShape& product);
  void cast_weight(Operator& op, std::int64_t weights);
  void save_narrow(Operator& op, TensorIndex source, std::int64_t weights);
  bool scales_rows() const;
  bool gathers_narrow() const;
  bool was_gathered(TensorIndex x) const;
  bool comes_from_norm(TensorIndex x) const;
  bool is_stream_or_normed(TensorIndex t) const;  // of the hidden width, read by several operators
  bool made_by_element(TensorIndex x) const;

  const Workload& workload_;
  const ParallelPlan& plan_;
  bool trains_base_;
  bool returns_wide_;
  int tensor_;
  std::int64_t tokens_;
  std::int64_t sequence_tokens_;
  std::int64_t element_;
  std::int64_t stream_element_;
  bool casts_weights_;
  std::int64_t cast_from_;  // bytes of one element of a weight that autocast copies
  bool follows_input_;      // quantised linears multiply in fp32, like the tensors that they read
  std::vector<std::pair<TensorIndex, TensorIndex>> gathered_from_;  // gathered, its source
  std::optional<TensorIndex> quantized_input_;  // the last one that a product has cast
  std::optional<std::pair<TensorIndex, TensorIndex>> narrow_copy_;  // the last input kept so
  TensorIndex adapted_ = -1, adapted_seen_ = -1;  // what the last adapter read, and its copy
  std::int64_t fetched_ = 0;                      // elements of a message that is not full yet
  LayerGraph graph_;
};

// Of activations.
inline double bytes_of_elements(const GraphBuilder& b, std::int64_t elements) {
  return as_double(elements * b.element());
}

}  // namespace shardwise
