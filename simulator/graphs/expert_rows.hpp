// Rows that the experts of one rank process, as they come and as their products want them.
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

struct ExpertShape {
  std::int64_t routed = 0;  // rows that arrive for this rank's experts
  std::int64_t padded = 0;  // rows that they process: `routed`, filled up expert by expert
  std::int64_t local = 0;   // experts on this rank
  std::int64_t each = 1;    // rows of one
  std::int64_t width = 0;   // expert FFN width on this rank
  DType dtype = DType::bf16;
};

// Of the layer's mixture, which the model has.
ExpertShape expert_shape(const GraphBuilder& b);

// What the products of experts compute in.
DType expert_dtype(const Workload& w);

// Whether the products of a step in one graph hold what lies between them.
bool is_one_expert_kernel(const Workload& w);

// Whether PyTorch's grouped product multiplies experts. It has one kernel for all of them, in bf16
// on some cards. Elsewhere it copies to the CPU how many rows each expert has, and multiplies one
// after the other (PyTorch @00d4eaf932 aten/src/ATen/native/cuda/GroupedBlas.cpp, _grouped_mm_cuda;
// @2295ac79ee aten/src/ATen/native/GroupedMMUtils.h, _grouped_mm_fallback; transformers 5.23.0
// integrations/moe.py, _grouped_mm).
bool multiplies_by_torch(const GraphBuilder& b);

// Rows of one expert come in multiples of so many, from 1, where its products are of `dtype`.
int row_multiple(const Workload& w, DType dtype);

// Copies of the rows of all experts, to their products or `back`: at least 1.
int row_copies(const GraphBuilder& b, const ExpertShape& s, bool back);

}  // namespace shardwise
