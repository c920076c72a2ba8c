#include "simulator/work_kind.hpp"

#include <array>

namespace shardwise {
namespace {

constexpr std::array<std::string_view, kWorkKinds> kWorkNames = {"forward",
                                                                 "recompute",
                                                                 "backward",
                                                                 "backward_weight",
                                                                 "optimizer",
                                                                 "tensor_comm",
                                                                 "context_comm",
                                                                 "expert_comm",
                                                                 "pipeline_send",
                                                                 "gather_parameters",
                                                                 "reduce_gradients",
                                                                 "offload_copy",
                                                                 "host_optimizer",
                                                                 "loader",
                                                                 "host",
                                                                 "other"};

static_assert(static_cast<std::size_t>(WorkKind::other) + 1 == kWorkKinds);

}  // namespace

std::string_view name(WorkKind kind) { return kWorkNames[static_cast<std::size_t>(kind)]; }

}  // namespace shardwise
