#include "planner/report/adapter_words.hpp"

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

std::string adapter_text(const Workload& w) {
  if (!row(w.method).adapter) return "";
  AdapterTargets beside = w.adapter.targets, whole{false, false, false, false, false, false, false};
  std::swap(beside.embedding, whole.embedding);
  if (w.trains_head()) std::swap(beside.lm_head, whole.lm_head);
  const std::string names = target_names(beside), trained = target_names(whole);
  const std::string frozen =
      w.freezes_quantized() ? sentence("; frozen weights in ", row(w.adapter.base).name) : "";
  return sentence("  adapters of rank ", w.adapter.rank, " on ", names.empty() ? "nothing" : names,
                  trained.empty() ? "" : sentence("; ", trained, " trained in full"), frozen, '\n');
}

}  // namespace shardwise
