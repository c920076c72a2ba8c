#include "simulator/costs/newton_schulz.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

constexpr int newton_schulz_iterations = 5;

// Kernels of an iteration's two sums, and the tensors of 16 bits that they read and write.
struct NewtonSchulzKernels {
  int square_launches, square_tensors;  // of B, m x m
  int wide_launches, wide_tensors;      // of X, m x n
};

NewtonSchulzKernels newton_schulz_kernels(NewtonSchulzSums sums) {
  return sums == NewtonSchulzSums::fused ? NewtonSchulzKernels{1, 3, 1, 3}
                                         : NewtonSchulzKernels{3, 7, 2, 5};
}

// Of one matrix: three products and the sums, and what is around them. A compiler joins the lerps,
// the norm with the cast, and what scales (assumed).
int launches_of_matrix(NewtonSchulzSums sums) {
  const NewtonSchulzKernels s = newton_schulz_kernels(sums);
  const int around = sums == NewtonSchulzSums::fused ? 4 : 9;
  return newton_schulz_iterations * (3 + s.square_launches + s.wide_launches) + around;
}

}  // namespace

Seconds newton_schulz_time(std::int64_t m, std::int64_t n, const KernelModel& kernels,
                           std::int64_t stack, NewtonSchulzSums sums) {
  const NewtonSchulzKernels s = newton_schulz_kernels(sums);
  if (m > n) std::swap(m, n);
  const Seconds products = kernels.gemm(GemmShape{m, m, n, stack}) +
                           kernels.gemm(GemmShape{m, m, m, stack}) +
                           kernels.gemm(GemmShape{m, n, m, stack});
  const Seconds added =
      kernels.memory_bound(Bytes(2 * s.square_tensors * m * m * stack), s.square_launches) +
      kernels.memory_bound(Bytes(2 * s.wide_tensors * m * n * stack), s.wide_launches);
  return newton_schulz_iterations * (products + added);
}

Seconds orthogonalization_time(const Workload& w, const ParallelPlan& plan,
                               const LayerDefinition& d, const KernelModel& kernels,
                               Seconds per_launch) {
  if (!w.optimizer->orthogonalizes || !d.trainable || d.role != LayerRole::block) return {};
  const bool shared = plan.zero_stage >= 1 || w.shares_orthogonalization;
  const int ranks = !shared               ? 1
                    : plan.zero_stage > 0 ? plan.shard_ranks()
                                          : plan.data * plan.context;
  const int expert_ranks = shared ? std::min(ranks, expert_shard_ranks(plan)) : 1;
  const auto sums = w.framework.layers.kernels == KernelStyle::eager
                        ? NewtonSchulzSums::by_operators
                        : NewtonSchulzSums::fused;
  const Seconds issued = launches_of_matrix(sums) * kernels.host_slowdown() * per_launch;
  Seconds time;
  for (const Operator& op : d.graph.operators)
    for (const Kernel& k : op.backward_weight) {
      const auto* gemm = std::get_if<GemmWork>(&k);
      if (gemm == nullptr) continue;
      const double each = static_cast<double>(gemm->batch) / (gemm->grouped ? expert_ranks : ranks);
      const auto stack = stacks_weights(*gemm) ? std::max<std::int64_t>(1, std::llround(each)) : 1;
      time += each / static_cast<double>(stack) *
              longest(newton_schulz_time(gemm->m, gemm->n, kernels, stack, sums), issued);
    }
  return time;
}

}  // namespace shardwise
