// The parts of a block that Megatron can re-run by name (--recompute-modules).
//
//   layernorm       the norms before attention and MLP, dropped once they are read
//   core_attn       the attention kernel; what it made stays for the output projection
//   mla_up_proj     the up-projections of multi-head latent attention and what shapes their result
//   mlp             the MLP of a dense block, its norm included (one Transformer Engine module)
//   shared_experts  the MLP beside the routed experts
//   moe_act         the experts' activation function, dropped once it is read
//   moe             router, experts and what moves tokens between them
// (Megatron-LM megatron/core/transformer/transformer_config.py, recompute_modules.)
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "simulator/graphs/operators.hpp"

namespace shardwise {

// One bit for each of the above, in that order.
using RecomputeModules = unsigned;

// "layernorm+moe_act"; nothing for an unknown word.
std::optional<RecomputeModules> recompute_modules(std::string_view names);

bool in_modules(const LayerGraph& graph, std::size_t op, RecomputeModules modules);

}  // namespace shardwise
