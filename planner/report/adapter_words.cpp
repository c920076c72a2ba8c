#include "planner/report/adapter_words.hpp"

#include "planner/sentence.hpp"

namespace shardwise {

std::string target_names(const AdapterTargets& t) {
  std::string names;
  for (const auto& [name, used] : adapter_linears)
    if (t.*used) names += sentence(names.empty() ? "" : ",", name);
  return names;
}

std::string adapter_text(const Workload& w) {
  if (!row(w.method).adapter) return "";
  const std::string frozen =
      w.freezes_quantized() ? sentence("; frozen weights in ", row(w.adapter.base).name) : "";
  return sentence("  adapters of rank ", w.adapter.rank, " on ", target_names(w.adapter.targets),
                  frozen, '\n');
}

}  // namespace shardwise
