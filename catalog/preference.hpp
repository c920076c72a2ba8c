// Preference training as rows: what one sample is, and what is computed beside the model that
// learns.
#pragma once

#include <array>
#include <string_view>

namespace shardwise {

struct PreferenceRow {
  std::string_view name;
  int sequences;       // of one sample: the answer that was chosen and the one that was not
  bool reference;      // a frozen model of the same weights is compared with
  int forward_passes;  // through all layers, without gradients, for every microbatch
  bool scores;         // one number for a token in place of the words that may follow
  std::string_view source;
};

inline constexpr std::array<PreferenceRow, 5> preference_rows{{
    {"dpo", 2, true, 1, false,
     "arXiv 2305.18290; TRL 0.24 dpo_trainer.py: concatenated_forward, compute_ref_log_probs"},
    {"kto", 1, true, 3, false,
     "arXiv 2402.01306; TRL 0.24 kto_trainer.py, forward: the completions of other prompts by both "
     "models, and the reference"},
    {"orpo", 2, false, 0, false,
     "arXiv 2403.07691; TRL 0.24 orpo_trainer.py, concatenated_forward"},
    {"simpo", 2, false, 0, false,
     "arXiv 2405.14734; TRL 0.24 cpo_trainer.py, concatenated_forward"},
    {"reward", 2, false, 0, true,
     "TRL 0.24 reward_trainer.py: AutoModelForSequenceClassification, num_labels=1"},
}};

constexpr const PreferenceRow* preference_named(std::string_view name) {
  for (const PreferenceRow& r : preference_rows)
    if (r.name == name) return &r;
  return nullptr;
}

}  // namespace shardwise
