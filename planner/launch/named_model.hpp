// A plan file may name a model. The forecast is of the one asked for; where that is another, the
// file's report says so.
#pragma once

#include <string>
#include <string_view>

#include "planner/launch/plan_words.hpp"

namespace shardwise {

inline constexpr std::string_view named_model = "named-model";  // the word of a name or Hub id

// What the catalog does not know may be any model. `key` is the one that says named_model.
void tell_other_model(PlanWords& words, const PlanFileContext& context, std::string_view key);

// Of a number of the model, under the word: its layers, its width.
void tell_other_size(PlanWords& words, const PlanFileContext& context, std::string_view word,
                     std::string_view key, int asked);

// `found`: what the key says, in words, as a sentence begins: "names llama3 70B".
void tell_another(PlanWords& words, const PlanFileContext& context, std::string_view key,
                  const std::string& found);

}  // namespace shardwise
