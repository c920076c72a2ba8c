// Megatron's --pipeline-model-parallel-layout: which layers each pipeline stage holds, as a text.
//
//   "Et*3|t*4|(t*4|)*2tL"   E embedding, t layer, L loss; | ends a stage; x*n repeats x n times
//
// (Megatron-LM megatron/core/transformer/pipeline_parallel_layer_layout.py @d98e8a64dd)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

// Layers per stage -> "Ett|tt|ttL".
std::string megatron_layout(const std::vector<int>& layers_per_stage);

// Layers per stage of a layout; nothing where it cannot be read or would be absurdly long. Modules
// other than layers (E, L, m) hold none.
std::optional<std::vector<int>> layers_in_layout(std::string_view layout);

}  // namespace shardwise
