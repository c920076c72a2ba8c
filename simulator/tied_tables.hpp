// Whether embedding and output projection of a tied model are one table.
#pragma once

#include "simulator/workload.hpp"

namespace shardwise {

// PEFT trains a copy of each module that modules_to_save names: embedding and head, and the table
// that both had, are then apart (peft 0.21.2 utils/other.py, ModulesToSaveWrapper.update; a tied
// Qwen 2 with both named has three tables by its named_parameters()).
inline bool replaces_tied_table(const Workload& w) {
  const bool copies = row(w.method).adapter && w.framework.adapters.keeps_replaced_modules;
  return w.model.tied_embeddings && copies && (w.trains_embedding() || w.trains_head());
}

inline bool shares_table(const Workload& w) {
  return w.model.tied_embeddings && !w.framework.loading.unties_embeddings &&
         !replaces_tied_table(w);
}

}  // namespace shardwise
