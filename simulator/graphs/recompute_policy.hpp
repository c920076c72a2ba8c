// Recomputation (activation checkpointing): which operators of a block run again in backward
// instead of keeping what they made.
//
//   none            nothing runs again
//   selective       the attention kernel (arXiv 2205.05198 section 5); with a flash kernel that
//                   frees next to nothing
//   selective-op    everything except attention, communication and every second matmul
//                   (torchtitan distributed/activation_checkpoint.py:31-94,246-274)
//   norms-and-activations  norms and the MLP's activation, whose outputs are dropped (Megatron-LM
//                   --recompute-modules layernorm, moe_act; kwai's --kaimm-recompute-norm and
//                   --kaimm-recompute-mlp-activation-func)
//   full            the whole block; only its input is kept
//   every-K-layers  one checkpoint for K blocks together: K-1 inputs less, K blocks alive in
//                   backward
//   one-in-K-layers full for one block in K (torchtitan's selective checkpointing by layers)
//   modules-A+B     the named parts of every block (recompute_modules.hpp)
//   blocks-N        full for the first N blocks of a stage, none for the others
//   best, best-N    for each block the operators whose re-run costs least time, such that the step
//                   fits the card, or N GiB of it (found by planner/forecast/best_recompute.hpp)
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "simulator/graphs/operators.hpp"
#include "simulator/graphs/recompute_modules.hpp"

namespace shardwise {

struct RecomputeRow {
  std::string_view name;  // "every-%-layers": % stands for the number
  bool whole_block;       // every operator, in one checkpoint
  bool keeps_results;     // a checkpoint around these operators alone: what others save of
                          // the attention kernel's result stays saved
  bool (*again)(const LayerGraph& graph, std::size_t op);  // used where not whole_block
  std::string_view summary;
  bool searched = false;  // the operators are chosen block by block, see BlockRecompute
  bool caches = false;    // eager, what kept operators made is held, whoever reads it
};

std::span<const RecomputeRow> recompute_rows();

// Which operators run again: [stage][block of the stage, chunk after chunk][operator].
struct BlockRecompute {
  std::vector<std::vector<std::vector<bool>>> again;
};

struct RecomputePolicy {
  const RecomputeRow* row = nullptr;
  int blocks_per_checkpoint = 1;               // every-K-layers
  int checkpointed_blocks = 1 << 30;           // blocks-N: how many of a stage
  int stride = 1;                              // one-in-K-layers: the first of every K blocks
  std::optional<Bytes> budget = std::nullopt;  // best-N: per GPU
  std::shared_ptr<const BlockRecompute> chosen = nullptr;  // best: once it has been found
  RecomputeModules modules = 0;                            // modules-A+B

  bool runs_again(const LayerGraph& graph, std::size_t op) const {
    return row->whole_block || row->again(graph, op) || in_modules(graph, op, modules);
  }
};

// Problem{request} for an unknown name, with the list of rows.
Result<RecomputePolicy> recompute_policy(std::string_view name);

// Which operators run again, given the policy and the framework's kernels. torch.compile also
// recomputes element-wise operators, but for those whose result a matmul or an attention kernel
// reads in backward: that would have to be written to memory there all the same (PyTorch
// torch/_functorch/partitioners.py, ban_recompute_materialized_backward).
std::vector<bool> operators_run_again(const LayerGraph& graph, const RecomputePolicy& policy,
                                      bool compiled);

}  // namespace shardwise
