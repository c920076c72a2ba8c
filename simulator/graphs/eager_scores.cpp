#include "simulator/graphs/eager_scores.hpp"

#include <algorithm>

#include "simulator/graphs/unfused_softmax.hpp"

namespace shardwise {
namespace {

// Bytes of a score of e bytes: the mask in place with a byte of its own, softmax, whose fp32 result
// is written, read and narrowed where it is `widened`, and dropout with its mask.
MemoryWork redone_softmax(double scores, double e, bool widened, bool drops) {
  const double bytes = (2 * e + 1) + 2 * e + (widened ? 8 : 0) + (drops ? 2 * e + 1 : 0);
  return traffic(bytes * scores, 2 + (widened ? 1 : 0) + (drops ? 1 : 0));
}

// The masked scores, of so many bytes (the mask is in the format of the stream), which torch.max
// with the least number of that format keeps (PyTorch derivatives.yaml, maximum: its backward is
// eq, div, where, lt and masked_fill_).
template <typename Keep>
void clamp(Operator& op, std::int64_t bytes, std::int64_t scores, const Keep& keep) {
  keep("scores_masked", bytes);
  const double wide = as_double(bytes);
  op.forward.push_back(traffic(2 * wide, 1));
  op.backward.push_back(traffic(8 * wide + 4 * as_double(scores), 5));
}

// A compiler makes all that lies between the two products again from what the first one wrote,
// which it keeps as it keeps what the second one reads, and dropout's mask. In backward the
// gradients of both live at once (PyTorch 2.15, min_cut_rematerialization_partition: a product of
// 16 bits or of fp32, masked, then torch.softmax in fp32 or maximum, exponential, sum and
// quotient).
void keep_compiled_scores(GraphBuilder& b, Operator& op, std::int64_t scores) {
  const std::int64_t each = b.element() * scores;
  const auto save = [&](std::string_view name, std::int64_t bytes) {
    op.outputs.push_back(b.tensor_bytes(name, bytes, MemoryCategory::activations, 0));
    op.saves.push_back(op.outputs.back());
  };
  save("scores", each);
  save("softmax", each);
  if (b.workload().attention_dropout) save("attention_dropout_mask", scores);
  op.backward_temporary = Bytes(2 * each);
  op.backward_temporaries = 2;
}

}  // namespace

void keep_scores(GraphBuilder& b, Operator& op, const AttentionWork& work) {
  const Workload& w = b.workload();
  const std::int64_t scores = work.batch * work.heads * work.queries * work.keys;
  const bool half = w.framework.attention.half_softmax;
  const bool unfused = leaves_fused_softmax(b, work);
  if (unfused) run_unfused_softmax(op, as_double(scores), half);
  const bool products_alone = b.plan().recompute == "selective-op";
  if (w.framework.layers.kernels == KernelStyle::compiled && !products_alone)
    return keep_compiled_scores(b, op, scores);
  const std::int64_t e = b.element();
  std::int64_t again = 0;  // bytes of what is not kept
  const auto save = [&](std::string_view name, std::int64_t bytes) {
    op.outputs.push_back(b.tensor_bytes(name, bytes, MemoryCategory::activations, 0));
    op.saves.push_back(op.outputs.back());
  };
  const auto keep = [&](std::string_view name, std::int64_t bytes) {
    if (products_alone)
      again += bytes;
    else
      save(name, bytes);
  };
  // The fp32 softmax keeps its own result beside the 16-bit one that the product reads. autocast
  // has it in fp32 whatever the class says. Dropout keeps its mask and what it makes, not what it
  // reads (PyTorch derivatives.yaml, native_dropout): the 16-bit result goes.
  const bool in_fp32 =
      (unfused && !half) || (w.framework.attention.softmax_in_fp32 &&
                             (w.framework.formats.autocast || !b.own_code().half_softmax));
  const bool widened = in_fp32 && e == 2;
  const bool read_once = widened && w.attention_dropout;
  if (products_alone) save("scores", scores * e);
  if (!read_once) keep("softmax", scores * e);
  if (b.own_code().caps_scores) keep("scores_tanh", scores * e);
  if (b.own_code().clamps_scores) clamp(op, scores * std::max(e, b.stream_element()), scores, keep);
  if (widened) keep("softmax_fp32", scores * 4);
  // TorchScript's formula of softmax asks its input for its format, and keeps it for that (the
  // trace of huggingface/accelerate issue 1864; counted with PyTorch 2.15, which keeps both).
  if (b.own_code().scripts_softmax) keep("scores_read", scores * (in_fp32 ? 4 : e));
  if (w.attention_dropout) {
    keep("attention_dropout_mask", scores);
    keep("attention_dropout", scores * e);
  }
  op.forward_temporary = Bytes(scores * (read_once ? 4 + e : 4) + again);  // fp32 scores; that one
  // PyTorch's softmax has its gradient, that times its result, and what it returns: fp32 all, but
  // fp16 returns fp16 at once (aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out: tmp
  // = grad * output); the 16-bit copy of its result is gone by then.
  if (in_fp32) {
    const bool returns_half = e == 2 && w.compute == DType::fp16;
    op.backward_temporary = Bytes(scores * (e == 4 ? 12 : returns_half ? 8 : 10) + again);
    op.backward_temporaries = returns_half ? 2 : 3;
  } else {
    op.backward_temporary = Bytes(scores * e * 2 + again);
  }
  if (products_alone)
    op.backward.push_back(
        redone_softmax(as_double(scores), as_double(e), widened, w.attention_dropout));
}

}  // namespace shardwise
