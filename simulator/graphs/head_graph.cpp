// Logits and losses: the last layer of a model.
#include <algorithm>
#include <optional>
#include <string_view>

#include "simulator/graphs/cut_head.hpp"
#include "simulator/graphs/gathered_logits.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/loss_traffic.hpp"
#include "simulator/graphs/plain_softmax.hpp"
#include "simulator/graphs/sliced_head.hpp"

namespace shardwise {
namespace {

struct Logits {
  std::int64_t rows, width;  // tokens, vocabulary on this rank
  TensorIndex half;          // as the projection made them
};

// Rows whose logits have a gradient at one time: those of a slice where head and loss go by slices.
std::int64_t gradient_rows(const GraphBuilder& b, const Logits& l) {
  const Workload& w = b.workload();
  const std::optional<int> slice = w.framework.loss.head_slice;
  if (!slice || w.trains_base()) return l.rows;
  return std::min(l.rows, std::int64_t{*slice} * b.plan().microbatch * w.sequences_per_sample);
}

// `bytes` per logit under the logits category.
TensorIndex logit_tensor(GraphBuilder& b, std::string_view name, const Logits& l,
                         std::int64_t bytes, std::int64_t gradient_bytes) {
  return b.tensor_bytes(name, l.rows * l.width * bytes, MemoryCategory::logits,
                        gradient_rows(b, l) * l.width * gradient_bytes);
}

Operator loss_operator(std::string_view name, const Logits& l, double forward_bytes,
                       double backward_bytes, int launches) {
  const double n = static_cast<double>(l.rows) * static_cast<double>(l.width);
  Operator op;
  op.name = name;
  op.kind = OperatorKind::loss;
  op.forward = {MemoryWork{ceil_bytes(forward_bytes * n), launches, MemoryAccess::reduction}};
  op.backward = {MemoryWork{ceil_bytes(backward_bytes * n), launches, MemoryAccess::reduction}};
  return op;
}

// The logarithm of each row's sum of exponentials, by kernels of its own: forward the maximum, the
// difference to it, the exponential in place and the sum; backward again a difference and an
// exponential, and their product with the gradient
// (PyTorch aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl;
// torch/csrc/autograd/FunctionsManual.cpp, logsumexp_backward).
TensorIndex log_z(GraphBuilder& b, const Logits& l, TensorIndex logits, std::int64_t e) {
  const std::int64_t all = e * l.rows * l.width;
  const double width = static_cast<double>(e);
  const TensorIndex out = b.tensor_bytes("log_z", l.rows * e, MemoryCategory::logits, l.rows * e);
  Operator op = loss_operator("log_z", l, 6 * width, 6 * width, 4);
  std::get<MemoryWork>(op.backward.front()).launches = 3;
  op.inputs = {logits};
  op.outputs = {out};
  op.saves = {logits};
  op.forward_temporary = Bytes(all);
  op.backward_temporary = Bytes(2 * all);
  op.temporary_category = MemoryCategory::logits;
  b.add(std::move(op));
  return out;
}

// Of logits that are cut over tensor ranks, as a DTensor is: difference to the maximum,
// exponential, sum and result are kernels of their own between two all-reduces, and the gradient of
// the logits is made from log-softmax at once, (one-hot + exp) g, whose parts all live together
// (PyTorch 2.4 torch/distributed/tensor/parallel/loss.py, _log_softmax, _nll_loss_forward,
// _nll_loss_and_log_softmax_backward).
void cut_log_softmax(const Logits& l, std::int64_t e, Operator& log_softmax, Operator& pick) {
  const Bytes row_sums(4 * l.rows), whole(e * l.rows * l.width);
  const CommWork sum{Collective::all_reduce, row_sums, CommAxis::tensor, false};
  const double each = static_cast<double>(e);
  log_softmax.forward = loss_operator("", l, 8 * each, 0, 5).forward;
  log_softmax.forward.insert(log_softmax.forward.end(), {sum, sum});
  log_softmax.backward.clear();
  log_softmax.passes_gradient = true;
  log_softmax.forward_temporary += whole;
  pick.forward.push_back(sum);
  pick.backward = loss_operator("", l, 0, 8 * each, 5).backward;
  pick.backward_temporary = Bytes(3 * whole.value);
  pick.backward_temporaries = 3;
  pick.temporary_category = MemoryCategory::logits;
}

// torch.autocast takes the negative log-likelihood in fp32, but not the log-softmax, which
// cross_entropy asks for in the format of its logits (PyTorch aten/src/ATen/native/LossNLL.cpp:
// log_softmax(self, class_dim, self.scalar_type()); autocast_mode.h has nll_loss on fp32's list).
TensorIndex nll_in_fp32(GraphBuilder& b, const Logits& l, TensorIndex log_softmax) {
  const TensorIndex wide = logit_tensor(b, "log_softmax_fp32", l, 4, 4);
  Operator cast = loss_operator("upcast", l, 6, 6, 1);
  cast.inputs = {log_softmax};
  cast.outputs = {wide};
  b.add(std::move(cast));
  return wide;
}

// transformers before 4.50 leaves out the last logits of each sequence by a slice, which is copied
// where sequences are several: of one it is contiguous. Its gradient goes back into zeros for all
// logits (PyTorch slice_backward: a fill and a copy; counted in torch 2.15). FrameworkLoss's
// fp32_temporaries of 1 is that copy where the loss is dense and not written out by operators.
bool shifts_logits(const Framework& f) {
  return f.loss.fp32_temporaries == 1 && !f.attention.plain_softmax;
}

bool copies_shifted(const GraphBuilder& b) {
  return shifts_logits(b.workload().framework) &&
         b.plan().microbatch * b.workload().sequences_per_sample > 1;
}

void add_shift(const GraphBuilder& b, const Logits& l, double width, Operator& log_softmax) {
  if (!shifts_logits(b.workload().framework)) return;
  const double n = as_double(l.rows * l.width);
  const auto streaming = [&](double values, int launches) {
    return MemoryWork{ceil_bytes(values * width * n), launches, MemoryAccess::streaming};
  };
  if (copies_shifted(b)) log_softmax.forward.insert(log_softmax.forward.begin(), streaming(2, 1));
  log_softmax.backward.emplace_back(streaming(3, 2));
}

// transformers: logits go to fp32, log-softmax is saved, its gradient and the one before it are
// fp32 (src/transformers/loss/loss_utils.py:58-70; cross_entropy keeps the log-probabilities).
void dense_loss(GraphBuilder& b, const Logits& l, bool extra_copy) {
  const Framework& f = b.workload().framework;
  TensorIndex wide = l.half;
  const bool narrow = f.formats.autocast && f.loss.under_autocast && b.element() == 2;
  const bool upcasts = f.loss.upcasts && b.element() == 2 && !narrow;
  const int copies = upcasts ? (extra_copy ? 2 : 1) : 0;
  const std::int64_t e = upcasts ? 4 : b.element();
  for (int i = 0; i < copies; ++i) {
    const TensorIndex next = logit_tensor(b, "logits_fp32", l, 4, 4);
    Operator cast = loss_operator("upcast", l, i == 0 ? 6 : 8, i == 0 ? 6 : 0, 1);
    std::get<MemoryWork>(cast.forward.front()).singly = i == 0 ? l.rows * l.width : 0;
    cast.inputs = {wide};
    cast.outputs = {next};
    if (i == 0 && f.loss.output_holds_logits) {
      cast.saves = {f.loss.upcasts_itself ? l.half : next};
      b.outlive(cast.saves.front(), true);
    }
    cast.passes_gradient = i > 0;
    b.add(std::move(cast));
    wide = next;
  }
  // Slices go back one by one: each lets its log-softmax go and leaves as long a gradient.
  const TensorIndex log_softmax = logit_tensor(b, "log_softmax", l, e, f.loss.takes_slices ? 0 : e);
  const double width = static_cast<double>(e);
  Operator op = loss_operator("log_softmax", l, row_passes(l.width * e) * width, 4 * width, 1);
  if (f.attention.plain_softmax) run_plain_log_softmax(op, as_double(l.rows * l.width), width);
  // The forward function still has its 16-bit logits, unless the cast has kept them.
  const std::int64_t named =
      upcasts && f.loss.upcasts_itself && !f.loss.output_holds_logits ? 2 : 0;
  const int temporaries = shifts_logits(f) && !copies_shifted(b) ? 0 : f.loss.fp32_temporaries;
  op.forward_temporary = Bytes((e * temporaries + named) * l.rows * l.width);
  op.temporary_category = MemoryCategory::logits;
  op.inputs = {wide};
  op.outputs = {log_softmax};
  op.saves = {log_softmax};
  if (!upcasts && f.loss.output_holds_logits) {
    op.saves.push_back(wide);
    b.outlive(wide, true);
  }
  const OutputLife life = f.loss.output_life;
  op.ends_output = life == OutputLife::next_output;
  Operator pick = loss_operator("nll_loss", l, 0, narrow ? 4 : width, 1);
  add_shift(b, l, width, op);
  if (table_ranks(b.workload(), b.plan()) > 1 && f.parallel.dtensor)
    cut_log_softmax(l, e, op, pick);
  b.add(std::move(op));
  const TensorIndex loss = b.tensor_bytes("loss", 4, MemoryCategory::logits, 4);
  pick.ends_output = life == OutputLife::next_loss;
  pick.inputs = {narrow ? nll_in_fp32(b, l, log_softmax) : log_softmax};
  if (narrow) pick.saves = pick.inputs;
  if (b.workload().framework.loss.z_loss) pick.inputs.push_back(log_z(b, l, wide, e));
  pick.outputs = {loss};
  b.add(std::move(pick));
}

// c tanh(logits / c) by three kernels, each with a result of its own; backward needs that of the
// tangent, so one copy more is kept (transformers modeling_gemma2.py, Gemma2ForCausalLM.forward;
// PyTorch derivatives.yaml: tanh saves its result, a product with a number nothing).
Logits capped(GraphBuilder& b, const Logits& l) {
  const std::int64_t e = b.element();
  const double each = static_cast<double>(e);
  Logits last = l;
  for (const std::string_view name : {"logits_over_cap", "logits_tanh", "capped_logits"}) {
    const TensorIndex next = logit_tensor(b, name, l, e, e);
    const bool tangent = name == "logits_tanh";
    Operator op = loss_operator(name, l, 2 * each, (tangent ? 3 : 2) * each, 1);
    op.inputs = {last.half};
    op.outputs = {next};
    if (tangent) op.saves = {next};
    b.add(std::move(op));
    last.half = next;
  }
  return last;
}

TensorIndex upcast_logits(GraphBuilder& b, const Logits& l) {
  const TensorIndex wide = logit_tensor(b, "logits_fp32", l, 4, 4);
  Operator upcast = loss_operator("upcast", l, 6, 6, 1);
  upcast.inputs = {l.half};
  upcast.outputs = {wide};
  b.add(std::move(upcast));
  return wide;
}

// The gradient of a slice that was cut out by an index is as long as all logits: zeros, into which
// it is copied. Autograd adds up those of n slices, each but the first to what is there (PyTorch
// aten/src/ATen/native/TensorShape.cpp, slice_backward; torch/csrc/autograd/input_buffer.cpp). Of a
// logit: n written, one read and one written, n - 1 times two read and one written.
MemoryWork joined_slices(const Logits& l, std::int64_t each, std::int64_t slices) {
  const std::int64_t values = slices + 2 + 3 * (slices - 1);
  return {Bytes(values * each * l.rows * l.width), static_cast<int>(3 * slices - 1),
          MemoryAccess::streaming, true};
}

// Megatron: one fp32 copy, all after it in place; the saved softmax is that copy (megatron/core/
// tensor_parallel/cross_entropy.py:25-81,181). Compiled (core/fusions/fused_cross_entropy.py
// @d98e8a64dd, run under PyTorch 2.4.1, 2.15) the gradient is another, with the result beside it.
// Where the model returns its logits in fp32 the copy is its last operator: the 16-bit ones are
// free once it is made, and it lives beside the softmax until the loss is known.
void vocab_parallel_loss(GraphBuilder& b, const Logits& l) {
  const Framework& f = b.workload().framework;
  const bool compiled = f.loss.compiled_alone;
  const bool cast = f.loss.returns_fp32_logits && b.element() == 2;
  const TensorIndex read = cast ? upcast_logits(b, l) : l.half;
  const TensorIndex softmax = logit_tensor(b, "softmax_fp32", l, 4, 0);
  const TensorIndex loss = b.tensor_bytes("loss", 4, MemoryCategory::logits, 4);
  Operator op = compiled ? loss_operator("vocab_parallel_cross_entropy", l, 24, 18, 6)
                : cast   ? loss_operator("vocab_parallel_cross_entropy", l, 24, 8, 7)
                         : loss_operator("vocab_parallel_cross_entropy", l, 30, 14, 8);
  op.inputs = {read};
  op.outputs = {softmax, loss};
  op.saves = {softmax};
  op.in_place_gradient = cast;
  // One slice of whole logits after another: its copies go, its softmax stays, and its gradient
  // is written into zeros as long as all of them and of their format, beside their sum.
  const std::int64_t slice = std::min<std::int64_t>(l.rows, f.loss.slice_tokens.value_or(l.rows));
  const std::int64_t each = cast ? 4 : b.element();
  if (compiled) op.backward_temporary = Bytes((4 + 2) * slice * l.width);
  if (slice < l.rows) {
    op.backward_temporary += Bytes(each * l.rows * l.width);
    op.backward.push_back(joined_slices(l, each, (l.rows + slice - 1) / slice));
  }
  const bool joined = f.loss.joins_context_logits && b.plan().context > 1;
  op.forward_temporary =
      Bytes(4 * l.width * (slice * f.loss.fp32_temporaries + (joined ? l.rows : 0)));
  op.forward_temporaries = std::max(1, f.loss.fp32_temporaries + (joined ? 1 : 0));
  op.temporary_category = MemoryCategory::logits;
  op.forward.insert(op.forward.end(), table_ranks(b.workload(), b.plan()) > 1 ? 3 : 0,
                    CommWork{Collective::all_reduce, Bytes(4 * l.rows), CommAxis::tensor, false});
  b.add(std::move(op));
}

// One kernel that overwrites the logits with their gradient (flash-attention's cross-entropy, and
// Transformer Engine's, which exchanges the rows' maxima and sums between tensor ranks). Liger's
// reads them twice and scales the gradient in backward (liger-kernel 0.8.0 ops/cross_entropy.py);
// it gets an fp32 copy beside the model's own (transformers 5.16.1 loss_utils.py, ForCausalLMLoss).
void fused_loss(GraphBuilder& b, const Logits& l) {
  const double e = static_cast<double>(b.element());
  const bool wide = b.workload().framework.loss.kind == LossKind::fused_fp32 && b.element() == 2;
  const TensorIndex read = wide ? upcast_logits(b, l) : l.half;
  const TensorIndex loss = b.tensor_bytes("loss", 4, MemoryCategory::logits, 4);
  Operator op = wide ? loss_operator("fused_cross_entropy", l, 12, 8, 1)
                     : loss_operator("fused_cross_entropy", l, e, 2 * e, 1);
  op.inputs = {read};
  op.outputs = {loss};
  op.saves = {read};
  op.in_place_gradient = true;
  // The output of a wrapped forward function goes to fp32 when the loss is known.
  const int copies = b.workload().framework.loss.fp32_temporaries;
  const std::int64_t logits = l.rows * l.width;
  op.forward_temporary = Bytes((4 * copies + (wide ? 2 : 0)) * logits);
  op.temporary_category = MemoryCategory::logits;
  if (copies > 0)
    op.forward.push_back(MemoryWork{ceil_bytes((e + 4) * static_cast<double>(logits) * copies),
                                    copies, MemoryAccess::streaming, true});
  if (table_ranks(b.workload(), b.plan()) > 1)
    op.forward.push_back(
        CommWork{Collective::all_gather, Bytes(12 * l.rows * b.tensor()), CommAxis::tensor, false});
  b.add(std::move(op));
}

// Until 2.4 PyTorch's compiler makes the gradient of the negative log-likelihood a tensor of its
// own, in that operator's format: zero but at the labels, written and read back where the logits'
// gradient is made (pytorch pull request 129043, in 2.5, has it computed there).
void scatter_labels(Operator& op, const Logits& l, std::int64_t each) {
  const std::int64_t bytes = each * l.rows * l.width;
  op.backward.push_back(MemoryWork{Bytes(2 * bytes), 2, MemoryAccess::streaming});
  op.backward_temporary = Bytes(op.backward_temporary.value + bytes);
  op.backward_temporaries = std::max(op.backward_temporaries, 1) + 1;
  op.temporary_category = MemoryCategory::logits;
}

// torch.compile fuses upcast, softmax and loss into reductions over the 16-bit logits, which are
// all that is kept; backward makes their 16-bit gradient from them. Where the logits are returned
// too, autograd hands it zeros as the gradient of those (an output without one: a function of
// AOTAutograd materialises it), so three copies stand together: 6.2 bytes per logit counted by
// PyTorch 2.15's profiler on the CPU, 4.2 without.
void compiled_loss(GraphBuilder& b, const Logits& l) {
  const Framework& f = b.workload().framework;
  const LossTraffic t = compiled_loss_traffic(b.element());
  const TensorIndex loss = b.tensor_bytes("loss", 4, MemoryCategory::logits, 4);
  Operator op = loss_operator("compiled_cross_entropy", l, t.forward, t.backward, t.kernels);
  op.inputs = {l.half};
  op.outputs = {loss};
  op.saves = {l.half};
  if (f.loss.returns_logits &&
      !(f.layers.runs_transformers && b.workload().model.code.loss_ends_graph)) {
    const Bytes zeros(b.element() * l.rows * l.width);
    op.backward.push_back(MemoryWork{Bytes(2 * zeros.value), 1, MemoryAccess::streaming});
    op.backward_temporary = Bytes(2 * zeros.value);  // and the gradient, while it is made
    op.backward_temporaries = 2;
    op.temporary_category = MemoryCategory::logits;
    if (f.loss.output_holds_logits) b.outlive(l.half, true);
    op.ends_output = f.loss.output_life != OutputLife::backward;
  }
  if (f.loss.scatters_labels)
    scatter_labels(op, l, f.formats.autocast || f.loss.upcasts ? 4 : b.element());
  b.add(std::move(op));
}

// The loss from the logits, as the framework computes it.
TensorIndex add_loss(GraphBuilder& b, const Logits& l) {
  const Framework& f = b.workload().framework;
  switch (f.loss.kind) {
    case LossKind::vocab_parallel:
      vocab_parallel_loss(b, l);
      break;
    case LossKind::fused_half:
    case LossKind::fused_fp32:
      fused_loss(b, l);
      break;
    default:
      if (is_loss_compiled(f))
        compiled_loss(b, l);
      else
        dense_loss(b, b.workload().model.caps_logits ? capped(b, l) : l,
                   f.loss.kind == LossKind::dense_fp32_output);
      break;
  }
  if (const LoggedLogits& log = f.loss.logged; log.bytes > 0)
    b.last().forward.push_back(traffic(log.bytes * as_double(l.rows * l.width),
                                       log.launches(l.rows), MemoryAccess::reduction));
  return b.last().outputs.back();
}

// Final norm, projection and loss.
TensorIndex add_head(GraphBuilder& b, TensorIndex x, bool tied_here) {
  const Workload& w = b.workload();
  const Transformer& m = w.model;
  const bool trained = w.trains_head();
  const std::int64_t vocab = padded_vocabulary(w, b.plan());
  const std::int64_t width = m.embed_dim.value_or(m.hidden);
  const std::int64_t rows = b.tokens();
  if (m.norms.final) x = b.norm("final_norm", x, b.sequence_tokens(), m.hidden);
  // A whole head's gradient of its input is whole on every rank: nothing is summed.
  if (!w.framework.parallel.whole_tables || b.plan().sequence_parallel)
    x = b.gather_sequence(x, m.hidden, false);
  if (w.preference != nullptr && w.preference->scores)
    return add_loss(b, {rows, 1, b.linear({"score", m.hidden, 1}, x, rows)});
  if (m.embed_dim) x = b.linear({"project_out", m.hidden, width}, x, rows);
  const LossKind kind = w.framework.loss.kind;
  if (kind == LossKind::chunked || kind == LossKind::fused_linear)
    return sliced_head(b, x, vocab, width, tied_here);
  if (kind == LossKind::cut) return cut_head(b, x, vocab, width, tied_here);

  const bool adapted = w.framework.adapters.on_head && w.adapter.targets.lm_head;
  const bool quantized = w.framework.quantized.head && !tied_here && !trained;
  const std::int64_t ranks = table_ranks(w, b.plan());
  const Cut cut = w.framework.parallel.whole_tables ? Cut::none : Cut::columns;
  const bool narrow = w.framework.narrow.head && w.compute == DType::mxfp8;
  LinearSpec head{"lm_head", width, vocab, cut, m.biases.lm_head, adapted, quantized, narrow};
  head.outside_layers = true;
  const TensorIndex half = b.linear(head, x, rows);
  if (tied_here) {
    b.count_other(-(width * (vocab / ranks)));
    b.last().weight_gradient_elements = 0;  // it is added into the embedding's gradient
    if (trained) {
      const std::int64_t shared = width * (vocab / ranks);
      b.last().backward_temporary += Bytes(shared * b.element());
      if (!w.framework.gradients.fusion)
        b.last().backward_weight.push_back(
            traffic(3 * as_double(shared * b.gradient_element()), 1));
    }
  }
  const Logits logits{rows, vocab / ranks, half};
  b.categorize(half, MemoryCategory::logits);
  b.resize_gradient(half, gradient_rows(b, logits) * logits.width * b.element());
  if (!w.framework.loss.gathers_logits || ranks == 1) return add_loss(b, logits);
  Logits all{rows, vocab, 0};
  all.half = gathered_logits(b, half, rows * vocab, gradient_rows(b, all) * vocab);
  return add_loss(b, all);
}

}  // namespace

LayerGraph head_graph(const Workload& asked, const ParallelPlan& plan, bool tied_here) {
  // Of hybrids' prediction layers every recipe keeps 16 bits (Megatron-Bridge
  // recipes/nemotronh/nemotron_3_super.py, keep_mtp_spec_in_bf16); the projection has them anyway.
  std::optional<Workload> wide;
  if (!asked.model.mixers.empty()) wide = in_16_bits(asked);
  const Workload& w = wide ? *wide : asked;
  GraphBuilder b(w, plan, w.trains_head());
  TensorIndex x = b.input(b.sequence_tokens() * w.model.stream_width());
  if (w.model.altup) x = close_streams(b, x);
  TensorIndex loss = add_head(b, x, tied_here);
  for (int depth = 0; depth < w.prediction_depths; ++depth) {
    LayerParameters known = b.counted();
    x = add_prediction(b, x);
    if (depth == 0) known = b.counted();
    loss = add_head(b, x, tied_here);
    b.recount(known);
  }
  return b.finish(loss);
}

}  // namespace shardwise
