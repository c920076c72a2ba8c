// The words for parts of a transformer, in models' files and in published runs.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "catalog/transformer.hpp"

namespace shardwise {

template <class E, std::size_t n>
using Choices = std::array<std::pair<std::string_view, E>, n>;

inline constexpr Choices<NormKind, 3> norm_kinds{{{"rms", NormKind::rms},
                                                  {"layer", NormKind::layer},
                                                  {"layer_no_weight", NormKind::layer_no_weight}}};
inline constexpr Choices<PositionKind, 4> position_kinds{{{"rope", PositionKind::rope},
                                                          {"learned", PositionKind::learned},
                                                          {"alibi", PositionKind::alibi},
                                                          {"none", PositionKind::none}}};
inline constexpr Choices<QkNorm, 4> qk_norms{{{"none", QkNorm::none},
                                              {"head_dim", QkNorm::head_dim},
                                              {"full", QkNorm::full},
                                              {"per_head", QkNorm::per_head}}};

}  // namespace shardwise
