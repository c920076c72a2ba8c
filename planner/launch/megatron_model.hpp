// The arguments by which Megatron-LM is told a model's dimensions.
#pragma once

#include "catalog/transformer.hpp"
#include "planner/launch/config_entries.hpp"
#include "planner/launch/plan_refusal.hpp"

namespace shardwise {

// Whether a window leaves out tokens of such sequences.
bool cuts_sequences(const Transformer& model, int sequence);

void refuse_megatron_model(Refusals& to, const Transformer& model);
void put_megatron_model(ConfigEntries& to, const Transformer& model, int sequence);

}  // namespace shardwise
