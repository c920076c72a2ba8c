// FLOPs of the matmuls among kernels: 2 m n k of each.
#pragma once

#include <variant>
#include <vector>

#include "simulator/graphs/operators.hpp"

namespace shardwise {

inline double matmul_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& k : kernels)
    if (const auto* g = std::get_if<GemmWork>(&k))
      sum += 2.0 * static_cast<double>(g->m * g->n * g->k * g->batch);
  return sum;
}

}  // namespace shardwise
