// WorkKind: what a part of a training step is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardwise {

// What the time is for: the lines of a step-time breakdown.
enum class WorkKind : std::uint8_t {
  forward,
  recompute,
  backward,         // the whole backward pass, or its input half where the pass is split
  backward_weight,  // the weight half of a split backward pass
  optimizer,
  tensor_comm,
  context_comm,
  expert_comm,
  pipeline_send,
  gather_parameters,
  reduce_gradients,
  offload_copy,
  host_optimizer,
  loader,
  host,
  other,
};
inline constexpr std::size_t kWorkKinds = 16;

// As in JSON and traces: "gather_parameters".
std::string_view name(WorkKind kind);

}  // namespace shardwise
