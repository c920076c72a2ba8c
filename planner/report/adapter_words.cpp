#include "planner/report/adapter_words.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "planner/sentence.hpp"

namespace shardwise {

std::string target_names(const AdapterTargets& t) {
  const std::array<std::pair<bool, std::string_view>, 9> targets{{{t.q, "q"},
                                                                  {t.k, "k"},
                                                                  {t.v, "v"},
                                                                  {t.o, "o"},
                                                                  {t.gate, "gate"},
                                                                  {t.up, "up"},
                                                                  {t.down, "down"},
                                                                  {t.embedding, "embedding"},
                                                                  {t.lm_head, "lm_head"}}};
  std::string names;
  for (const auto& [used, name] : targets)
    if (used) names += sentence(names.empty() ? "" : ",", name);
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
