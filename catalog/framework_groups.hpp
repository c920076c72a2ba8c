// The groups of a framework's row from its JSON, whose keys lie flat beside each other: a function
// each, which reads its group's keys. What is wrong with one is told to the reader.
#pragma once

#include <optional>
#include <string_view>

#include "catalog/dtype.hpp"
#include "catalog/framework.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/units.hpp"

namespace shardwise::framework_groups {

// framework_memory.hpp
FrameworkFormats read_formats(JsonReader& r);
FrameworkGradients read_gradients(JsonReader& r);
FrameworkSharding read_sharding(JsonReader& r);
FrameworkUpdate read_update(JsonReader& r);

// framework_parallel.hpp
FrameworkParallel read_parallel(JsonReader& r);

// framework_layers.hpp
FrameworkLayers read_layers(JsonReader& r);
FrameworkAttention read_attention(JsonReader& r);
FrameworkExperts read_experts(JsonReader& r);
FrameworkNarrow read_narrow(JsonReader& r);
FrameworkRecompute read_recompute(JsonReader& r);

// framework_loss.hpp
FrameworkLoss read_loss(JsonReader& r);

// framework_finetuning.hpp
FrameworkAdapters read_adapters(JsonReader& r);
FrameworkQuantized read_quantized(JsonReader& r);

// framework_process.hpp
FrameworkLoading read_loading(JsonReader& r);
FrameworkProcess read_process(JsonReader& r);
FrameworkHost read_host(JsonReader& r);

// What several of them read: the format that `key` names, which has to be there or may be absent,
// and a size.
DType read_dtype(JsonReader& r, std::string_view key);
std::optional<DType> maybe_dtype(JsonReader& r, std::string_view key);
Bytes read_bytes(JsonReader& r, std::string_view key);

}  // namespace shardwise::framework_groups
