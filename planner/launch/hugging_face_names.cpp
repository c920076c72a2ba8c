#include "planner/launch/hugging_face_names.hpp"

#include <array>
#include <utility>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// Which linears of a row are adapted, in the order in which a request lists them.
std::array<std::pair<bool, std::string_view>, 9> chosen(const AdapterTargets& t) {
  return {{{t.q, "q"},
           {t.k, "k"},
           {t.v, "v"},
           {t.o, "o"},
           {t.gate, "gate"},
           {t.up, "up"},
           {t.down, "down"},
           {t.embedding, "embedding"},
           {t.lm_head, "lm_head"}}};
}

}  // namespace

std::string_view hugging_face_optimizer(const OptimizerRow& optimizer) {
  for (const Meaning& m : hugging_face_optimizers)
    if (m.value == optimizer.name) return m.found;
  return "";
}

bool every_linear(const AdapterTargets& t) { return t == AdapterTargets{}; }

std::vector<std::string_view> hugging_face_targets(const AdapterTargets& targets) {
  std::vector<std::string_view> names;
  for (const auto& [used, name] : chosen(targets))
    for (const Meaning& m : hugging_face_linears)
      if (used && m.value == name) names.push_back(m.found);
  return names;
}

void gather_targets(PlanWords& words, const std::string& file) {
  if (words.has("target:all-linear")) words.default_to("lora_targets", "all-linear", file);
  std::string list, where;
  for (const auto& [used, name] :
       chosen(AdapterTargets{true, true, true, true, true, true, true, true, true})) {
    const std::string word = sentence("target:", name);
    if (!used || !words.has(word)) continue;
    if (where.empty()) where = words.where(word);
    list += sentence(list.empty() ? "" : ",", name);
  }
  if (list == "q,k,v,o,gate,up,down") list = "all-linear";
  if (!list.empty()) words.default_to("lora_targets", list, where);
}

void gather_method(PlanWords& words, const std::string& file) {
  const bool four = words.is("quantized-4bit", "true"), eight = words.is("quantized-8bit", "true");
  if (four && eight) {
    words.wrong("quantized-4bit", "is true, and so is loading in 8 bit; expected one of them");
    return;
  }
  if (four || eight) {
    if (!words.is("adapter", "true"))
      words.wrong(four ? "quantized-4bit" : "quantized-8bit",
                  "quantised weights cannot be trained; expected an adapter beside them");
    words.default_to("method", "qlora", file);
    const bool twice = words.is("double-quant", "true");
    words.default_to("quantization", eight ? "int8" : twice ? "nf4-double" : "nf4", file);
  } else if (words.is("adapter", "true")) {
    words.default_to("method", words.is("dora", "true") ? "dora" : "lora", file);
  }
}

}  // namespace shardwise
