// Norms, by the kernels that frameworks run: one of their own, PyTorch's LayerNorm, or operators.
#include <utility>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {
namespace {

MemoryWork row_sums(double bytes, int launches) {
  return traffic(bytes, launches, MemoryAccess::reduction);
}

// PyTorch's own LayerNorm reads its input for the statistics and again for the result. Backward
// reads it and the gradient for two sums of each row, again for the result, and in a kernel of its
// own for the gradients of weight and bias, one element after the other whatever their width
// (aten/src/ATen/native/cuda/layer_norm_kernel.cu; linkedin/Liger-Kernel @ead96b618
// benchmark/data/all_benchmark_data.csv: A100 and H100, fp32 and 16 bits).
MemoryWork layer_norm_forward(double element, std::int64_t n) {
  return row_sums(3 * element * as_double(n), 1);
}
MemoryWork layer_norm_backward(double element, std::int64_t n) {
  MemoryWork work = row_sums(5 * element * as_double(n), 2);
  work.singly = 3 * n;
  return work;
}

}  // namespace

// Eager RMSNorm computes in fp32 and keeps the fp32 input and, for the gradient of a trained
// weight, the normalised 16-bit tensor (transformers modeling_llama.py:62-67), or the fp32 one that
// a wide norm multiplies (modeling_gemma.py:73-76, modeling_olmo2.py:59-64).
TensorIndex GraphBuilder::eager_norm(std::string_view name, TensorIndex x, std::int64_t rows,
                                     std::int64_t width) {
  const std::int64_t n = rows * width;
  const TensorIndex upcast = tensor_bytes("norm_fp32", 4 * n, MemoryCategory::temporaries, 0);
  const TensorIndex normed = own_code().wide_norms
                                 ? tensor_bytes("norm_wide", 4 * n, MemoryCategory::temporaries, 0)
                                 : tensor("norm_half", n);
  const TensorIndex out = tensor(name, n);
  Operator op;
  op.name = name;
  op.inputs = {x};
  op.outputs = {upcast, normed, out};
  op.saves = {upcast};
  if (trains_base_) op.saves.push_back(normed);
  // The operators of the same lines, counted where PyTorch 2.3 dispatches them, each reading and
  // writing its operands (calibrate/count_norm_operators.py): 8 forward, 16 backward, 14 of them
  // where the weight is frozen. Only the mean and the sums are reductions.
  const double each = as_double(n);
  op.forward = {traffic(14 * each, 4), row_sums(4 * each, 1), one_by_one(18 * each, 3, 3 * each)};
  op.backward = {traffic((trains_base_ ? 64.0 : 58.0) * each, trains_base_ ? 10 : 9),
                 row_sums((trains_base_ ? 6.0 : 4.0) * each, trains_base_ ? 2 : 1),
                 one_by_one(22 * each, 4, 4 * each)};
  op.forward_temporary = Bytes(4 * n);
  op.backward_temporary = Bytes(8 * n);
  op.weight_gradient_elements = trains_base_ ? width : 0;
  add(std::move(op));
  return out;
}

// The same where the input is fp32 already, and LayerNorm, which autocast runs in fp32: the input
// is kept as it is, or as its fp32 copy; RMSNorm keeps the normalised tensor for a trained weight,
// LayerNorm makes it again. The result is fp32 (torch.autocast's list of fp32 operators).
TensorIndex GraphBuilder::fp32_norm(std::string_view name, TensorIndex x, std::int64_t rows,
                                    std::int64_t width) {
  const std::int64_t n = rows * width;
  const bool rms = workload_.model.norms.kind == NormKind::rms;
  const auto fp32 = [&](std::string_view what, std::int64_t gradient) {
    return tensor_bytes(what, 4 * n, MemoryCategory::temporaries, gradient);
  };
  Operator op;
  op.name = name;
  op.inputs = {x};
  if (bytes_of(x) == 4 * n) {
    op.saves = {x};
  } else {
    op.outputs = {fp32("norm_fp32", 0)};
    op.saves = op.outputs;
  }
  if (rms && trains_base_) {
    op.outputs.push_back(fp32("normalised", 0));
    op.saves.push_back(op.outputs.back());
  }
  const TensorIndex out = fp32(name, 4 * n);
  const bool copies = bytes_of(x) != 4 * n;
  op.outputs.push_back(out);
  // LayerNorm is one kernel; RMSNorm six forward and fourteen backward, on fp32 throughout, of
  // which a mean and two sums reduce (counted by calibrate/count_norm_operators.py).
  const double each = as_double(n);
  if (rms) {
    op.forward = {row_sums(4 * each, 1), traffic(8 * each, 3), one_by_one(16 * each, 2, 2 * each)};
    op.backward = {row_sums(8 * each, 2), traffic(64 * each, 9),
                   one_by_one(20 * each, 3, 3 * each)};
  } else {
    op.forward = {layer_norm_forward(4, n)};
    op.backward = {layer_norm_backward(4, n)};
  }
  if (copies) {  // autocast's, and that of the gradient back to 16 bits
    op.forward.push_back(one_by_one(6 * each, 1, each));
    op.backward.push_back(traffic(6 * each, 1));
  }
  if (rms) op.backward_temporary = Bytes(8 * n);
  op.weight_gradient_elements = trains_base_ ? width * (workload_.model.norms.bias ? 2 : 1) : 0;
  add(std::move(op));
  return out;
}

// (x - mean) / sqrt(variance + eps), times a weight, plus another where norms have one, in the
// format of x (the class of rasbt/LLMs-from-scratch ch04/01_main-chapter-code/gpt.py). Kept are x,
// which the variance reads, what the quotient divides and what the weight multiplies. Operators and
// the values that they read and write, counted where PyTorch dispatches them: forward two
// reductions of 1, four of operands that are broadcast, 2 each, and two of one value a row;
// backward five reductions of 1, six of 16 together, seven with a broadcast operand of 13, and
// three of a value a row. Of these an addition and a reduction are the shift's. Beside the gradient
// three tensors live at once.
TensorIndex GraphBuilder::written_out_layer_norm(std::string_view name, TensorIndex x,
                                                 std::int64_t rows, std::int64_t width) {
  const std::int64_t n = rows * width;
  const std::int64_t bytes = bytes_of(x);
  const auto kept = [&](std::string_view what, std::int64_t gradient) {
    return tensor_bytes(what, bytes, MemoryCategory::temporaries, gradient);
  };
  Operator op;
  op.name = name;
  op.inputs = {x};
  op.outputs = {kept("norm_centred", 0), kept("normalised", 0)};
  op.saves = {x, op.outputs[0], op.outputs[1]};
  const TensorIndex out = kept(name, bytes);
  op.outputs.push_back(out);
  const double all = as_double(bytes), each = as_double(n), column = all / as_double(width);
  const bool shifts = workload_.model.norms.bias;
  const int added = shifts ? 1 : 0;
  op.forward = {row_sums(2 * all, 2),
                one_by_one((6 + 2 * added) * all, 3 + added, (3 + added) * each),
                traffic(4 * column, 2)};
  op.backward = {row_sums((4 + added) * all, 4 + added), traffic(16 * all, 6),
                 one_by_one(13 * all, 7, 7 * each), traffic(7 * column, 3)};
  op.forward_temporary = Bytes(shifts ? bytes : 0);
  op.backward_temporary = Bytes(3 * bytes);
  op.weight_gradient_elements = trains_base_ ? width * (shifts ? 2 : 1) : 0;
  add(std::move(op));
  return out;
}

TensorIndex GraphBuilder::norm(std::string_view name, TensorIndex x, std::int64_t rows,
                               std::int64_t width) {
  return norm_by(eager() && !workload_.framework.layers.fused_norms, name, x, rows, width);
}

// Of queries and keys, over the width of each head or of all. Heads that are normed one by one may
// share their weights, as many as one of them is wide (transformers 5.23.0 models/qwen3/
// modeling_qwen3.py: Qwen3RMSNorm(self.head_dim)).
TensorIndex GraphBuilder::head_norm(TensorIndex x, std::int64_t rows, std::int64_t width,
                                    std::int64_t head) {
  const Framework& f = workload_.framework;
  const bool missed = workload_.model.code.keeps_head_norms && f.layers.patches_built_model &&
                      f.layers.runs_transformers && f.layers.kernels == KernelStyle::fused;
  const std::int64_t counted = graph_.parameters.other;
  const TensorIndex out =
      norm_by(missed || (eager() && !f.layers.fused_norms), "qk_norm", x, rows, width);
  if (workload_.model.qk_norm != QkNorm::head_dim) return out;
  graph_.parameters.other = counted + (graph_.parameters.other - counted) * head / width;
  last().weight_gradient_elements = last().weight_gradient_elements * head / width;
  return out;
}

TensorIndex GraphBuilder::norm_by(bool operators, std::string_view name, TensorIndex x,
                                  std::int64_t rows, std::int64_t width) {
  const Norms& norms = workload_.model.norms;
  const bool rms = norms.kind == NormKind::rms;
  if (norms.kind != NormKind::layer_no_weight) {
    count_other(width * (norms.bias ? 2 : 1));
    ++graph_.parameters.modules;
  }
  if (operators && norms.kind == NormKind::layer && own_code().layer_norm_operators)
    return written_out_layer_norm(name, x, rows, width);
  const bool autocast = workload_.framework.formats.autocast && element_ == 2;
  if (operators && (rms || autocast)) {
    const bool wide = bytes_of(x) == 4 * rows * width;
    return rms && !wide ? eager_norm(name, x, rows, width) : fp32_norm(name, x, rows, width);
  }
  const std::int64_t n = rows * width;
  const double e = as_double(element_);
  const TensorIndex statistics =
      tensor_bytes("norm_statistics", rows * (rms ? 4 : 8), MemoryCategory::temporaries, 0);
  graph_.tensors.back().statistic = true;
  const TensorIndex out = tensor(name, n);
  Operator op;
  op.name = name;
  op.inputs = {x};
  op.outputs = {statistics, out};
  op.saves = {x, statistics};
  const bool torch_kernel = eager() && !rms;
  op.forward = {torch_kernel ? layer_norm_forward(e, n) : row_sums(2 * e * as_double(n), 1)};
  op.backward = {torch_kernel ? layer_norm_backward(e, n) : row_sums(3 * e * as_double(n), 2)};
  op.weight_gradient_elements = trains_base_ ? width * (norms.bias ? 2 : 1) : 0;
  add(std::move(op));
  return out;
}

}  // namespace shardwise
