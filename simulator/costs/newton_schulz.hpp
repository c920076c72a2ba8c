// Newton-Schulz: how long Muon takes to orthogonalise the updates of a layer's matrices.
//
// X is a matrix of m x n, m <= n, in 16 bits; five times over (arXiv 2502.16982, section 2.1;
// KellerJordan/Muon @00ba60d3 muon.py, zeropower_via_newtonschulz5)
//   A = X X^T            2 m m n
//   B = b A + c A A      2 m m m, then A and its square read and B written
//   X = a X + B X        2 m m n, then X and the product read and X written
// That is where a compiler, or a kernel of its own, makes each sum in one pass. Eager PyTorch, in
// the same file, multiplies A by b and by c, adds, multiplies X by a and adds: 7 tensors of m x m
// and 5 of m x n in five kernels. Around the five iterations it launches nine more for a matrix
// (two lerp_, cast, norm, add, div, two mul_, add_), whose bytes are in the optimizer's pass: 49 in
// all, counted with a dispatch mode in torch 2.15. torch.optim.Muon's addmm need 23 (torch/optim/
// _muon.py).
#pragma once

#include "simulator/costs/kernel_model.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Whether each sum is one kernel, or as many as it has operators.
enum class NewtonSchulzSums { fused, by_operators };

// Of one matrix of m x n, or of a stack of such: one tensor of three dimensions, whose products are
// batched ones (same file: X @ X.mT of whatever dimensions come before).
Seconds newton_schulz_time(std::int64_t m, std::int64_t n, const KernelModel& kernels,
                           std::int64_t stack = 1, NewtonSchulzSums sums = NewtonSchulzSums::fused);

// Of one rank's share of a block's matrices. Where the optimizer's states are sharded, or the
// workload says that the work is, each of those ranks takes as many whole matrices as the next
// (Megatron's and nanochat's distributed Muon); otherwise every rank does all of them. Experts are
// shared by the ranks that hold the same ones; those that PyTorch's grouped product multiplies are
// one stack. The CPU launches matrix after matrix, `per_launch` each (HostCalibration): it paces
// small ones. Zero for other optimizers.
Seconds orthogonalization_time(const Workload& workload, const ParallelPlan& plan,
                               const LayerDefinition& layer, const KernelModel& kernels,
                               Seconds per_launch);

}  // namespace shardwise
