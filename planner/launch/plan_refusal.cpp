#include "planner/launch/plan_refusal.hpp"

#include <algorithm>

#include "planner/sentence.hpp"

namespace shardwise {

Refusals meaningless_sizes(const ParallelPlan& p, const Workload& w) {
  Refusals to;
  refuse_if(to, p.pipeline == 1 && (p.schedule != usual_schedule || p.chunks > 1),
            "a schedule or model chunks say nothing without pipeline stages (pp=1)");
  refuse_if(to, p.pipeline == 1 && !p.layers_per_stage.empty(),
            "layers per stage say nothing without pipeline stages (pp=1)");
  refuse_if(to, p.context == 1 && p.context_kind != ContextKind::ring,
            "a kind of context parallelism says nothing with cp=1");
  refuse_if(to, p.tensor == 1 && (p.sequence_parallel || p.async_tensor),
            "sequence or async tensor parallelism say nothing with tp=1");
  // DeepSpeed offloads with ZeRO only, on one GPU too.
  refuse_if(to, p.zero_stage > 0 && p.data * p.context == 1 && p.offload == Offload{},
            "ZeRO says nothing with one rank to shard over; say zero=0");
  refuse_if(to, p.shard_group && (p.zero_stage == 0 || *p.shard_group == p.data),
            "a shard group says nothing without ZeRO, or where it is all of dp");
  refuse_if(to, !w.model.moe && p.expert_tensor > 1,
            "tensor parallelism within experts says nothing for a model without experts");
  return to;
}

void refuse_unwritten(Refusals& to, const ParallelPlan& p) {
  const auto refuse = [&](bool said, std::string_view key) {
    if (said) to.push_back(sentence("no file that is written here says ", key));
  };
  refuse(p.nvme, "nvme=true");
  refuse(p.offloaded_share != 1, "offload-share");
  refuse(p.compression != "none", "compress");
  refuse(p.balance_by_speed, "balance=speed");
  refuse(p.async_data, "async-dp");
}

void refuse_machines(Refusals& to, const Cluster& cluster) {
  for (const NodeGroup& g : cluster.groups)
    if (!g.gpu.runs_cuda_or_rocm())
      return to.push_back(sentence("the files written here start PyTorch on CUDA or ROCm, and ",
                                   g.gpu.name, " runs neither"));
}

void refuse_model_parallel(Refusals& to, const ParallelPlan& p, std::string_view target) {
  const auto refuse = [&](bool used, std::string_view lacks) {
    if (used) to.push_back(sentence(target, lacks));
  };
  refuse(p.tensor > 1, " has no tensor parallelism");
  refuse(p.pipeline > 1, " has no pipeline parallelism");
  refuse(p.context > 1, " has no context parallelism");
  refuse(p.expert > 1 || p.expert_tensor > 1, " has no expert parallelism");
  refuse(p.layer_split, " does not split layers over cards in turns");
}

void refuse_recompute_except(Refusals& to, const ParallelPlan& p, std::string_view target,
                             std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), p.recompute) != known.end()) return;
  to.push_back(sentence(target, " recomputes ", listed(known, " or "), ", not ", p.recompute));
}

void refuse_adapters(Refusals& to, const Workload& w, std::string_view target) {
  refuse_if(to, row(w.method).adapter,
            sentence(target, " trains whole models; ", name(w.method), " needs another target"));
}

void refuse_precision_except(Refusals& to, const Workload& w, std::string_view target,
                             std::initializer_list<DType> known) {
  if (std::find(known.begin(), known.end(), w.compute) != known.end()) return;
  std::vector<std::string_view> written;
  for (const DType d : known) written.push_back(name(d));
  to.push_back(sentence("only ", listed(written, " or "), " is written for ", target, ", not ",
                        name(w.compute)));
}

void refuse_unstored_formats(Refusals& to, const Workload& w, std::string_view target) {
  const Quantization base = w.adapter.base;
  if (base == Quantization::none || is_bitsandbytes(base)) return;
  refuse_if(to, !w.model.stored || w.model.stored->counted != base,
            sentence(target, " quantises no weights to ", row(base).name,
                     ": it needs a model whose config.json says that they are"));
}

void refuse_other_losses(Refusals& to, const Workload& w, std::string_view target) {
  refuse_if(to, w.preference != nullptr,
            sentence(target, " is written to train on the next token only"));
  const LossKind loss = w.framework.loss.kind;
  refuse_if(to, loss == LossKind::fused_linear || loss == LossKind::cut,
            sentence(target, " has no setting for a fused head and loss (--fused-loss)"));
}

}  // namespace shardwise
