#include "simulator/costs/newton_schulz.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/parameter_state.hpp"

namespace shardwise {

Seconds newton_schulz_time(std::int64_t m, std::int64_t n, const KernelModel& kernels,
                           std::int64_t stack) {
  constexpr int iterations = 5;
  constexpr std::int64_t moved = 3 * 2;  // two tensors of 16 bits read and one written
  if (m > n) std::swap(m, n);
  const Seconds products = kernels.gemm(GemmShape{m, m, n, stack}) +
                           kernels.gemm(GemmShape{m, m, m, stack}) +
                           kernels.gemm(GemmShape{m, n, m, stack});
  const Seconds sums = kernels.memory_bound(Bytes(moved * m * m * stack)) +
                       kernels.memory_bound(Bytes(moved * m * n * stack));
  return iterations * (products + sums);
}

Seconds orthogonalization_time(const Workload& w, const ParallelPlan& plan,
                               const LayerDefinition& d, const KernelModel& kernels) {
  if (!w.optimizer->orthogonalizes || !d.trainable || d.role != LayerRole::block) return {};
  const bool shared = plan.zero_stage >= 1 || w.shares_orthogonalization;
  const int ranks = !shared               ? 1
                    : plan.zero_stage > 0 ? plan.shard_ranks()
                                          : plan.data * plan.context;
  const int expert_ranks = shared ? std::min(ranks, expert_shard_ranks(plan)) : 1;
  Seconds time;
  for (const Operator& op : d.graph.operators)
    for (const Kernel& k : op.backward_weight) {
      const auto* gemm = std::get_if<GemmWork>(&k);
      if (gemm == nullptr) continue;
      const double each = static_cast<double>(gemm->batch) / (gemm->grouped ? expert_ranks : ranks);
      const auto stack = stacks_weights(*gemm) ? std::max<std::int64_t>(1, std::llround(each)) : 1;
      time +=
          each / static_cast<double>(stack) * newton_schulz_time(gemm->m, gemm->n, kernels, stack);
    }
  return time;
}

}  // namespace shardwise
