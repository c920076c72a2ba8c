// KernelAccount: what the kernels of a pass add up to, stage by stage, for one microbatch on one
// GPU: the figures behind "forward" and "backward" that one can check against a datasheet.
//
//   matrix products   2 m n k FLOPs each
//   attention         4 d FLOPs per visible pair of query and key forward, 10 d backward (arXiv
//                     2307.08691, section 4.1)
//   the others        the bytes that they read and write
//
// Time is split into what arithmetic limits and what bytes do: a product counts to the bytes where
// its operands take longer to stream than its FLOPs at the sustained rate (a roofline;
// simulator/costs/gemm_model.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/forecast/forecast.hpp"

namespace shardwise {

struct KernelAccount {
  Flops products, attention;
  Bytes moved;  // by kernels that are neither
  std::int64_t products_run = 0, others_run = 0;
  Seconds arithmetic, streaming;

  Seconds time() const { return arithmetic + streaming; }
  KernelAccount& operator+=(const KernelAccount& o);
};

struct StageAccount {
  KernelAccount forward, recompute, backward, backward_weight;
  std::int64_t stepped = 0;  // parameters that the optimizer of one rank steps
  Bytes zeroed;              // of gradients whose buffer stays, in each step
  Bytes checked;             // of gradients, for NaN, in each step
  StageAccount& operator+=(const StageAccount& o);
};

// One entry per pipeline stage, on its smallest GPU. REQUIRES a legal plan.
std::vector<StageAccount> kernel_accounts(const Question& question, const Profile& profile);

// The kernels of one operator in a step: of all layers of a stage that have it, and all
// microbatches, nothing else running on the GPU beside them.
struct OperatorAccount {
  std::string name;  // as the layer's graph calls it
  Seconds forward, recompute, backward;
  std::int64_t runs = 0;  // forward passes

  Seconds time() const { return forward + recompute + backward; }
};

// Longest first; operators without kernels are left out. REQUIRES a legal plan and a stage of it.
std::vector<OperatorAccount> operator_accounts(const Question& question, const Profile& profile,
                                               int stage);

}  // namespace shardwise
