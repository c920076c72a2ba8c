// The vision_config of a vision-language model's config.json.
#pragma once

#include <optional>
#include <string_view>

#include "catalog/json_reader.hpp"
#include "catalog/vision_tower.hpp"

namespace shardwise {

// Absent where the file has no vision_config, or where `wrapper` (the file's own model_type) is a
// family whose tower is not described. Problems go where `config` collects them.
std::optional<VisionTower> read_vision_config(JsonReader& config, std::string_view wrapper,
                                              int text_hidden);

}  // namespace shardwise
