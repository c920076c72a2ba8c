#include "simulator/graphs/sliced_head.hpp"

#include <algorithm>

#include "simulator/graphs/loss_traffic.hpp"

namespace shardwise {
namespace {

// Head and loss one slice of the tokens after the other, each with its backward at once.
struct SlicedLoss {
  std::int64_t slices = 1;
  double live = 4;              // [B] of a logit at once
  LossTraffic traffic;          // beside the products
  double gradient_summed = 0;   // [B] moved to add a slice's gradient of an element of the head
  int sum_kernels = 0;          // beside the product
  double gradient_held = 0;     // [B] of an element of the head in what is added to, all the while
  double gradient_apart = 0;    // [B] in a slice's own gradient
  double gradient_widened = 0;  // [B] in its copy
  bool checkpointed = false;    // a slice's forward is made again on its way back
  // [B] of an element of the head in copies made for each slice's product: while that runs, kept
  // for the way back, and moved to make them.
  double copied = 0;
  double copies_kept = 0;
  double copies_moved = 0;
  bool widens = false;    // the product and its logits are fp32
  double kept = 0;        // [B] of a logit of every slice until backward
  double made_first = 0;  // [B] of a logit of every slice beside that, until the last one's loss
  double heads_kept = 0;  // [B] of an element of the head, likewise: a copy for each slice
};

// FSDP adds up what is not reduced yet in the reduction's format (PyTorch v2.10.0
// torch/distributed/fsdp/_fully_shard/_fsdp_param.py, to_accumulated_grad_if_needed), and what is
// being reduced was copied to it.
std::int64_t summed_head_bytes(const GraphBuilder& b, std::int64_t width) {
  const Workload& w = b.workload();
  const double each = sums_head_sharded(w, b.plan())
                          ? bytes_per_element(w.framework.gradients.reduce_dtype)
                          : static_cast<double>(b.element());
  return static_cast<std::int64_t>(each * static_cast<double>(width * w.model.hidden));
}

// What stands beside that sum: a slice's own gradient with its logits and theirs, or, when the last
// slice is through, the flat copy that is reduced (_fsdp_collectives.py, foreach_reduce: its input
// is made before the gradients go), with the logits that the loop still names (pytorch/torchtitan
// @1690e0ae torchtitan/components/loss.py, ChunkedCELoss).
double beside_summed_head(const GraphBuilder& b, const SlicedLoss& loss_of, std::int64_t width,
                          double logits) {
  if (!sums_head_sharded(b.workload(), b.plan())) return 0;
  const double each = loss_of.widens ? 4 : static_cast<double>(b.element());
  const double head = static_cast<double>(width) * b.workload().model.hidden;
  const auto flat = static_cast<double>(summed_head_bytes(b, width));
  return std::max(each * (head + 2 * logits), flat + each * logits);
}

MemoryWork logit_work(double each, double logits, int kernels) {
  return {ceil_bytes(logits * each), kernels, MemoryAccess::reduction};
}

// The loss of so many logits on its way forward; a cast takes its elements one by one.
void add_forward(const LossTraffic& t, double logits, Operator& op) {
  if (t.cast > 0) {
    op.forward.push_back(logit_work(t.cast, logits, 1));
    std::get<MemoryWork>(op.forward.back()).singly = static_cast<std::int64_t>(logits);
  }
  if (t.forward > 0) op.forward.push_back(logit_work(t.forward, logits, t.kernels));
}

// What backward holds beside all that is kept, [B], where slices wait: the last one's gradient;
// then that in 16 bits and the head's, with one slice gone; and then, with two gone, the head's
// gradient of the next slice beside the sum (PyTorch adds them up in place). Counted: the
// allocations of PyTorch 2.15 on a CPU.
double going_back(const GraphBuilder& b, const SlicedLoss& loss_of, double logits, double head) {
  const double kept = loss_of.kept * logits;
  const double each = loss_of.widens ? 4 : static_cast<double>(b.element());
  const bool trained = b.trains_base() || b.workload().trains_head();
  if (!trained) return kept;
  const double gradients = each * (logits + head);
  if (loss_of.slices == 1) return std::max(kept, gradients - kept);
  return std::max({kept, gradients - kept, gradients + each * head - 2 * kept});
}

// What lives is one slice's logits, the gradient of the hidden states and that of the head.
void sliced_loss(GraphBuilder& b, TensorIndex x, std::int64_t width, const SlicedLoss& loss_of) {
  const std::int64_t slices = loss_of.slices;
  const Workload& w = b.workload();
  const std::int64_t rows = b.tokens();
  const std::int64_t slice = std::max<std::int64_t>(1, (rows + slices - 1) / slices);
  const bool trained = b.trains_base() || w.trains_head();
  const DType dtype = loss_of.widens ? DType::fp32 : w.product_dtype();
  const TensorIndex loss = b.tensor_bytes("loss", 4, MemoryCategory::logits, 4);
  const TensorIndex gradient =
      b.tensor_bytes("hidden_gradient", b.bytes_of(x), MemoryCategory::logits, 0);
  Operator op;
  op.name = "sliced_loss";
  op.kind = OperatorKind::loss;
  op.inputs = {x};
  op.outputs = {gradient, loss};
  op.saves = {gradient};
  op.in_place_gradient = true;
  if (loss_of.kept > 0) {
    const double n = static_cast<double>(width);
    const double bytes = loss_of.kept * static_cast<double>(rows) * n +
                         loss_of.heads_kept * n * static_cast<double>(w.model.hidden);
    op.outputs.push_back(
        b.tensor_bytes("slices", ceil_bytes(bytes).value, MemoryCategory::logits, 0));
    op.saves.push_back(op.outputs.back());
    std::swap(op.outputs.back(), op.outputs[op.outputs.size() - 2]);  // the loss comes last
  }
  const double logits = static_cast<double>(slice) * static_cast<double>(width);
  const double head = static_cast<double>(width) * static_cast<double>(w.model.hidden);
  for (std::int64_t i = 0; i < slices; ++i) {
    std::vector<Kernel> product{GemmWork{slice, width, w.model.hidden, 1, dtype}};
    if (loss_of.copied > 0)
      product.insert(product.begin(), MemoryWork{ceil_bytes(head * loss_of.copies_moved), 2});
    for (int pass = 0; pass < (loss_of.checkpointed ? 2 : 1); ++pass) {
      op.forward.insert(op.forward.end(), product.begin(), product.end());
      add_forward(loss_of.traffic, logits, op);
    }
    // Without gradients (a reference's pass) the logits are made and read once (Liger-Kernel
    // @15ce9c44 chunked_loss/fused_linear_preference.py, _compute_loss: chunk_forward, compiled).
    op.forward_alone.insert(op.forward_alone.end(), product.begin(), product.end());
    op.forward_alone.push_back(
        MemoryWork{ceil_bytes(logits * bytes_per_element(dtype)), 1, MemoryAccess::reduction});
    op.forward.push_back(GemmWork{slice, w.model.hidden, width, 1, dtype});
    if (trained) op.forward.push_back(GemmWork{w.model.hidden, width, slice, 1, dtype});
    op.forward.push_back(logit_work(loss_of.traffic.backward + loss_of.traffic.cast, logits,
                                    loss_of.traffic.kernels + (loss_of.traffic.cast > 0 ? 1 : 0)));
    if (trained && loss_of.gradient_summed > 0)
      op.forward.push_back(
          MemoryWork{ceil_bytes(head * loss_of.gradient_summed), loss_of.sum_kernels});
  }
  double live = logits * loss_of.live + head * loss_of.copies_kept;
  if (loss_of.copied > 0)
    live = std::max(live, head * loss_of.copied + logits * bytes_per_element(dtype));
  const double apart = trained ? head * (loss_of.gradient_apart + loss_of.gradient_widened) : 0;
  if (apart > 0)  // beside one slice's logits, the next one's are not made yet
    live = std::max(live - apart, logits * bytes_per_element(dtype));
  live += loss_of.made_first * static_cast<double>(rows * width);
  if (trained) live = std::max(live, beside_summed_head(b, loss_of, width, logits));
  op.forward_temporary = ceil_bytes(live);
  if (loss_of.kept > 0) op.backward_temporary = ceil_bytes(going_back(b, loss_of, logits, head));
  op.temporary_category = MemoryCategory::logits;
  if (trained && w.framework.loss.slices_go_back)
    op.outputs.insert(
        op.outputs.begin(),
        b.tensor_bytes("head_gradient", summed_head_bytes(b, width), MemoryCategory::gradients, 0));
  for (const double each :
       {loss_of.gradient_held, loss_of.gradient_apart, loss_of.gradient_widened})
    if (trained && each > 0)
      op.outputs.insert(op.outputs.begin(),
                        b.tensor_bytes("head_gradient", ceil_bytes(head * each).value,
                                       MemoryCategory::gradients, 0));
  op.weight_gradient_elements = trained ? width * w.model.hidden : 0;
  b.add(std::move(op));
}

// Hidden states and head are made fp32 for each slice's product. A head that is none yet has an
// fp32 copy, named until the product is made; autocast makes a 16-bit one of whatever is there, the
// one that is kept. Without autocast the product is an fp32 one.
void copy_head(const Workload& w, SlicedLoss& loss) {
  const Framework& f = w.framework;
  const WeightRecipe trained = w.weights();
  const bool fp32 = w.trains_base() ? trained == WeightRecipe::fp32 ||
                                          trained == WeightRecipe::fp32_with_half_compute
                                    : f.formats.frozen_dtype == DType::fp32;
  const double widened = fp32 ? 0 : 4, narrowed = f.formats.autocast ? 2 : 0;
  loss.copied = widened + narrowed;
  loss.copies_kept = f.formats.autocast ? narrowed : widened;
  loss.copies_moved = (fp32 ? 0 : 2 + 4) + (f.formats.autocast ? 4 + 2 : 0);
  loss.widens = !f.formats.autocast;
}

// Liger's gradient of the head is there from the first slice on, and each slice's product adds to
// it as it is read. 0.6.2 to 0.8.2 make a product and its fp32 copy instead, 2 and 4 bytes, and add
// that (ops/fused_linear_cross_entropy.py: += torch.mm(...).float(), before it addmm(out=), as in
// 0.8.3 again; 0.8.2 did so where the gradient is fp32).
void sum_as_liger(const GraphBuilder& b, SlicedLoss& loss) {
  const auto each = static_cast<double>(b.gradient_element());
  loss.gradient_held = each;
  loss.gradient_summed = each;
  if (!b.workload().framework.loss.adds_head_slices_apart) return;
  loss.gradient_apart = static_cast<double>(b.element());
  loss.gradient_widened = 4;
  loss.gradient_summed = loss.gradient_apart + 8 + 2 * each;
  loss.sum_kernels = 2;
}

std::int64_t chunked_slices(const Framework& f, std::int64_t rows, std::int64_t logits) {
  if (const auto tokens = f.loss.slice_tokens) return (rows + *tokens - 1) / *tokens;
  if (!f.loss.slice) return f.loss.chunks;
  return std::max<std::int64_t>(1, (4 * logits + f.loss.slice->value - 1) / f.loss.slice->value);
}

// What a loss over slices moves of a logit and holds of it: PyTorch's operators, unless a compiler
// fuses them or the framework's own code does something else. Where slices wait, autograd keeps the
// log-softmax of each, and what is compiled the logits.
void run_operators(const GraphBuilder& b, std::int64_t width, SlicedLoss& loss) {
  const Framework& f = b.workload().framework;
  const std::int64_t each = loss.widens ? 4 : b.element();
  const bool compiled = is_loss_compiled(f);
  const double half = static_cast<double>(each);
  // Live per logit of a slice: the dense set (16-bit logits, where it upcasts fp32 log-softmax and
  // two gradients), or one 16-bit tensor, in place or kept by a compiled loss, and its gradient.
  if (!compiled) loss.live = f.loss.slice_logit_bytes.value_or(f.loss.upcasts ? 14.0 : 6.0);
  loss.traffic = compiled ? compiled_loss_traffic(each)
                          : cross_entropy_traffic(width, each, f.loss.upcasts && each == 2);
  if (!compiled && f.loss.slice_moved_bytes) loss.traffic = {0, 0, *f.loss.slice_moved_bytes, 6};
  if (!f.loss.keeps_slices) return;
  loss.kept = compiled ? half : 4;
  loss.live = compiled ? half : 8;
  if (compiled || !f.loss.makes_slices_first) return;
  loss.made_first = half;
  loss.live = 4;  // a slice's fp32 copy
}

// Liger's fused linear cross-entropy takes next_pow2(ceil(T / ceil(V / h))) tokens at a time
// (Liger src/liger_kernel/ops/fused_linear_cross_entropy.py:61-84); a function of a trainer's own
// as many as it says. Slices of a chunked loss, which a row may have beside it, are none of both.
std::int64_t fused_linear_slices(const Framework& f, std::int64_t rows, std::int64_t vocab,
                                 std::int64_t hidden) {
  if (const auto tokens = f.loss.fused_slice_tokens) return (rows + *tokens - 1) / *tokens;
  const std::int64_t ratio = (vocab + hidden - 1) / hidden;
  const std::int64_t target = (rows + ratio - 1) / ratio;
  std::int64_t chunk = 1;
  while (chunk < target) chunk *= 2;
  return (rows + chunk - 1) / chunk;
}

}  // namespace

TensorIndex sliced_head(GraphBuilder& b, TensorIndex x, std::int64_t vocab, std::int64_t width,
                        bool tied_here) {
  const Workload& w = b.workload();
  const Framework& f = b.workload().framework;
  const std::int64_t local = vocab / b.tensor();
  const bool chunked = f.loss.kind == LossKind::chunked;
  SlicedLoss loss;
  loss.slices = chunked ? chunked_slices(f, b.tokens(), b.tokens() * local)
                        : fused_linear_slices(f, b.tokens(), vocab, w.model.hidden);
  loss.checkpointed = chunked && f.loss.recomputes_slices;
  if (chunked && f.loss.copies_head) copy_head(w, loss);
  // Liger's kernel reads 16-bit logits twice and writes their gradient in their place (liger-kernel
  // 0.5.0 to 0.8.2, ops/cross_entropy.py), as other losses in place do.
  const bool in_place = f.loss.slice_logit_bytes.value_or(4) <= 2;
  if (chunked) run_operators(b, local, loss);
  if (!chunked || in_place) loss.traffic = {0, 0, 6, 1};
  // Autocast keeps one 16-bit copy of a head that has a gradient, and none of one that has not.
  if (loss.kept > 0 && casts_weights(w, b.plan()) && !w.trains_head())
    loss.heads_kept = 2.0 * static_cast<double>(loss.slices - 1);
  if (!chunked) sum_as_liger(b, loss);
  sliced_loss(b, x, local, loss);
  b.count_other(tied_here ? 0 : width * local);
  if (w.trains_head() && tied_here) b.last().weight_gradient_elements = 0;
  return b.last().outputs.back();
}

}  // namespace shardwise
