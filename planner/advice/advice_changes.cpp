#include "planner/advice/advice_changes.hpp"

#include <algorithm>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

// Segments that grow instead of blocks of fixed sizes (PyTorch notes/cuda, "Optimizing memory
// usage"); settle_on() says where drivers have none.
std::optional<ChangeWords> grow_segments(const AdviceTrial&, Question& q) {
  bool& grow = q.workload.framework.process.expandable_segments;
  if (grow) return std::nullopt;
  grow = true;
  for (const NodeGroup& g : q.cluster.groups)
    settle_on(g.gpu, q.workload.compute, q.workload.framework);
  if (!grow) return std::nullopt;
  return ChangeWords{"--expandable-segments", "PYTORCH_ALLOC_CONF=expandable_segments:True"};
}

// Constants of 4-bit blocks in 8 bits instead of 32 (arXiv 2305.14314, double quantisation):
// bitsandbytes takes it of weights that it quantises as they are loaded (BitsAndBytesConfig's
// bnb_4bit_use_double_quant, Linear4bit's compress_statistics).
std::optional<ChangeWords> quantize_constants(const AdviceTrial& t, Question& q) {
  Workload& w = q.workload;
  if (!w.freezes_quantized() || w.adapter.base != Quantization::nf4) return std::nullopt;
  if (t.request.model.stored) return std::nullopt;
  w.adapter.base = Quantization::nf4_double;
  return ChangeWords{sentence("--quantization ", row(w.adapter.base).name),
                     "constants of 4-bit weights quantised too (double quantisation)"};
}

// Kernels that patch a model's own head and loss (Liger's fused linear cross-entropy, arXiv
// 2410.10989) need whole weights there.
std::optional<ChangeWords> fuse_loss(const AdviceTrial&, Question& q) {
  FrameworkLoss& loss = q.workload.framework.loss;
  const bool whole_logits =
      loss.kind == LossKind::dense || loss.kind == LossKind::dense_fp32_output;
  if (!whole_logits || q.workload.preference != nullptr || q.plan.tensor > 1) return std::nullopt;
  loss.kind = loss.fused;
  const char* kernel = loss.fused == LossKind::cut ? "Cut Cross-Entropy" : "Liger";
  return ChangeWords{"--fused-loss",
                     sentence("head and loss in one kernel (", kernel, "), no whole logits")};
}

std::optional<ChangeWords> pass_one_sequence(const AdviceTrial&, Question& q) {
  const int now = q.plan.microbatch;
  if (now == 1) return std::nullopt;
  q.plan.microbatch = 1;
  q.plan.microbatches *= now;
  return ChangeWords{sentence("microbatches of 1 instead of ", now)};
}

std::optional<ChangeWords> redo_everything(const AdviceTrial& t, Question& q) {
  if (q.plan.recompute == "full") return std::nullopt;
  const std::string before = q.plan.recompute;
  q.plan.recompute = "full";
  if (!t.request.asked.offload) offload_as_usual(q.workload, q.plan);
  return ChangeWords{sentence("recompute=full instead of ", before)};
}

std::optional<ChangeWords> shard_everything(const AdviceTrial& t, Question& q) {
  ParallelPlan& p = q.plan;
  const int most = q.workload.framework.supports.max_zero_stage, before = p.zero_stage;
  if (t.request.asked.plans.empty() || p.layer_split) return std::nullopt;
  if (p.data * p.context == 1 || before >= most) return std::nullopt;
  p.zero_stage = most;
  q.workload = choose_workload(t.request, t.method, t.cluster, p).workload;
  return ChangeWords{sentence("zero=", most, " instead of ", before)};
}

}  // namespace shardwise
