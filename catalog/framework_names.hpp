// How the enumerations of a framework's row are spelled in data files and answers.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "catalog/framework.hpp"

namespace shardwise {

template <class E, std::size_t n>
using Spellings = std::array<std::pair<std::string_view, E>, n>;

inline constexpr Spellings<WeightRecipe, 4> weight_recipe_names{{
    {"fp32_with_half_compute", WeightRecipe::fp32_with_half_compute},
    {"half_with_master", WeightRecipe::half_with_master},
    {"pure_half", WeightRecipe::pure_half},
    {"fp32", WeightRecipe::fp32},
}};
inline constexpr Spellings<GradientLife, 3> gradient_life_names{{
    {"per_step", GradientLife::per_step},
    {"persistent", GradientLife::persistent},
    {"in_backward", GradientLife::in_backward},
}};
inline constexpr Spellings<GradientCopyLife, 4> gradient_copy_life_names{{
    {"layer", GradientCopyLife::layer},
    {"microbatch", GradientCopyLife::microbatch},
    {"next_backward", GradientCopyLife::next_backward},
    {"run", GradientCopyLife::run},
}};
inline constexpr Spellings<WeightCast, 3> weight_cast_names{{
    {"once", WeightCast::once},
    {"each_pass", WeightCast::each_pass},
    {"gathered", WeightCast::gathered},
}};
inline constexpr Spellings<NarrowWeights, 4> narrow_weights_names{{
    {"none", NarrowWeights::none},
    {"saved", NarrowWeights::saved},
    {"beside", NarrowWeights::beside},
    {"stored", NarrowWeights::stored},
}};
inline constexpr Spellings<LossKind, 8> loss_kind_names{{
    {"dense", LossKind::dense},
    {"dense_fp32_output", LossKind::dense_fp32_output},
    {"vocab_parallel", LossKind::vocab_parallel},
    {"chunked", LossKind::chunked},
    {"fused_linear", LossKind::fused_linear},
    {"cut", LossKind::cut},
    {"fused_half", LossKind::fused_half},
    {"fused_fp32", LossKind::fused_fp32},
}};
inline constexpr Spellings<OutputLife, 3> output_life_names{{
    {"backward", OutputLife::backward},
    {"next_output", OutputLife::next_output},
    {"next_loss", OutputLife::next_loss},
}};
inline constexpr Spellings<KernelStyle, 3> kernel_style_names{{
    {"eager", KernelStyle::eager},
    {"fused", KernelStyle::fused},
    {"compiled", KernelStyle::compiled},
}};
inline constexpr Spellings<DeltaRule, 3> delta_rule_names{{
    {"kernels", DeltaRule::kernels},
    {"row_by_row", DeltaRule::row_by_row},
    {"solved", DeltaRule::solved},
}};
inline constexpr Spellings<AttentionKernel, 6> attention_kernel_names{{
    {"flash", AttentionKernel::flash},
    {"flash1", AttentionKernel::flash1},
    {"flash2", AttentionKernel::flash2},
    {"cudnn", AttentionKernel::cudnn},
    {"memory_efficient", AttentionKernel::memory_efficient},
    {"eager", AttentionKernel::eager},
}};
inline constexpr Spellings<MemoryKind, 6> memory_kind_names{{
    {"tensors", MemoryKind::tensors},
    {"allocated", MemoryKind::allocated},
    {"reserved", MemoryKind::reserved},
    {"device", MemoryKind::device},
    {"reserved_at_step", MemoryKind::reserved_at_step},
    {"allocated_first", MemoryKind::allocated_first},
}};
inline constexpr Spellings<MemoryStage, 2> memory_stage_names{{
    {"worst", MemoryStage::worst},
    {"first", MemoryStage::first},
}};

inline constexpr Spellings<RotaryCode, 3> rotary_code_names{{
    {"halves", RotaryCode::halves},
    {"pairs", RotaryCode::pairs},
    {"chosen_pairs", RotaryCode::chosen_pairs},
}};

inline constexpr Spellings<ContextMerge, 3> context_merge_names{{
    {"none", ContextMerge::none},
    {"fused_half", ContextMerge::fused_half},
    {"fp32_operators", ContextMerge::fp32_operators},
}};
inline constexpr Spellings<ContextKind, 3> context_kind_names{{
    {"ring", ContextKind::ring},
    {"all_gather", ContextKind::all_gather},
    {"ulysses", ContextKind::ulysses},
}};
inline constexpr Spellings<StageBalance, 5> stage_balance_names{{
    {"even", StageBalance::even},
    {"ends_as_layers", StageBalance::ends_as_layers},
    {"head_by_parameters", StageBalance::head_by_parameters},
    {"modules_in_turn", StageBalance::modules_in_turn},
    {"last_relieved", StageBalance::last_relieved},
}};

template <class E, std::size_t n>
constexpr std::string_view spelling(const Spellings<E, n>& names, E value) {
  for (const auto& [text, v] : names)
    if (v == value) return text;
  return {};
}

}  // namespace shardwise
