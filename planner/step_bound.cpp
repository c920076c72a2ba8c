#include "planner/step_bound.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include "planner/forecast_parts.hpp"
#include "simulator/kernel_model.hpp"

namespace shardwise {
namespace {

// Seconds of kernels that arithmetic limits, and of those that bytes do.
struct Split {
  Seconds compute, hbm;
  double share() const {
    const Seconds both = compute + hbm;
    return both.value > 0 ? compute / both : 1.0;
  }
};

class KernelSplit {
 public:
  KernelSplit(const Gpu& gpu, const Profile& profile, const Workload& w)
      : kernels_(gpu, profile, {std::nullopt, w.framework.kernels}),
        gemm_(gpu, profile),
        memory_(gpu, profile) {}

  void add(const std::vector<Kernel>& list, Split& to) const {
    for (const Kernel& k : list) add(k, to);
  }

 private:
  bool streams(const GemmWork& g) const {
    const double element = bytes_per_element(g.dtype);
    const double m = static_cast<double>(g.m), n = static_cast<double>(g.n),
                 k = static_cast<double>(g.k);
    const double bytes = (m * k + k * n + m * n) * element;
    const double rate = gemm_.sustained_rate(g.dtype).value;
    return bytes / memory_.bandwidth(MemoryAccess::streaming).value > 2 * m * n * k / rate;
  }

  void add(const Kernel& kernel, Split& to) const {
    if (const auto* g = std::get_if<GemmWork>(&kernel)) {
      const Seconds t = kernels_.gemm({g->m, g->n, g->k, g->batch, g->dtype, g->accumulate});
      (streams(*g) ? to.hbm : to.compute) += t;
    } else if (const auto* attention = std::get_if<AttentionWork>(&kernel)) {
      to.compute += kernels_.attention(*attention);
    } else if (const auto* memory = std::get_if<MemoryWork>(&kernel)) {
      to.hbm += kernels_.memory_bound(memory->moved, memory->launches, memory->access);
    }
  }

  KernelModel kernels_;
  GemmModel gemm_;
  MemoryBoundModel memory_;
};

struct Passes {
  Split forward, backward, backward_weight, recompute;
};

// Of all layers of the model: what one stage does is made of the same kinds of layer.
Passes passes(const Question& q, const Profile& profile) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(q.plan.schedule_row());
  const ModelPartition partition =
      partition_model(q.workload, q.plan, schedule, *recompute_policy(q.plan.recompute));
  const KernelSplit split(smallest_group(q.cluster, q.plan, 0).gpu, profile, q.workload);
  Passes p;
  for (const auto& chunks : partition.stages)
    for (const ModelChunk& chunk : chunks)
      for (const ChunkLayer& layer : chunk.layers) {
        const LayerDefinition& d = *layer.definition;
        for (std::size_t i = 0; i < d.graph.operators.size(); ++i) {
          const Operator& op = d.graph.operators[i];
          split.add(op.forward, p.forward);
          split.add(op.backward, p.backward);
          split.add(op.backward_weight, p.backward_weight);
          if (d.redone[i] && d.script.runs_again[i]) split.add(op.forward, p.recompute);
        }
      }
  return p;
}

Split sum(const Split& a, const Split& b) { return {a.compute + b.compute, a.hbm + b.hbm}; }

// The share of a kind of busy time that arithmetic limits. Where a schedule does not split the
// backward pass, its weight half runs with it.
double compute_share(const Passes& p, const StepBreakdown& b, const std::string& kind) {
  if (kind == name(WorkKind::forward)) return p.forward.share();
  if (kind == name(WorkKind::recompute))
    return p.recompute.compute + p.recompute.hbm > Seconds(0) ? p.recompute.share()
                                                              : p.forward.share();
  if (kind == name(WorkKind::backward_weight)) return p.backward_weight.share();
  if (kind == name(WorkKind::backward))
    return b.compute.contains(std::string(name(WorkKind::backward_weight)))
               ? p.backward.share()
               : sum(p.backward, p.backward_weight).share();
  return 0;  // the optimizer moves bytes
}

bool communicates(const std::string& kind) {
  constexpr std::array<WorkKind, 6> kinds{WorkKind::tensor_comm,       WorkKind::context_comm,
                                          WorkKind::expert_comm,       WorkKind::pipeline_send,
                                          WorkKind::gather_parameters, WorkKind::reduce_gradients};
  return std::any_of(kinds.begin(), kinds.end(), [&](WorkKind k) { return kind == name(k); });
}

}  // namespace

StepBound step_bound(const Question& question, const Forecast& forecast, const Profile& profile) {
  const StepBreakdown& b = forecast.breakdown;
  const Passes p = passes(question, profile);
  StepBound bound;
  const auto add = [&](BoundKind kind, Seconds t) {
    bound.parts[static_cast<std::size_t>(kind)] += t;
  };
  for (const auto& [kind, t] : b.compute) {
    if (communicates(kind)) {
      add(BoundKind::link, t);
      continue;
    }
    const double share = compute_share(p, b, kind);
    add(BoundKind::compute, share * t);
    add(BoundKind::hbm, (1 - share) * t);
  }
  for (const auto& [kind, t] : b.exposed)
    add(communicates(kind) ? BoundKind::link : BoundKind::host, t);
  add(BoundKind::bubble, b.bubble);
  add(BoundKind::host, b.host + b.offload);
  const auto largest = std::max_element(bound.parts.begin(), bound.parts.end());
  bound.kind = static_cast<BoundKind>(largest - bound.parts.begin());
  return bound;
}

}  // namespace shardwise
