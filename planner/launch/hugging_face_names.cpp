#include "planner/launch/hugging_face_names.hpp"

#include "planner/launch/launch_job.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

void gather_fsdp_parts(PlanWords& words, std::string_view word) {
  for (const std::string_view sharding : {"3", "2", "3-node", "2-node", "0"})
    if (const std::string part = sentence("fsdp-part:", sharding); words.has(part))
      words.say(word, sentence(sharding, words.has("fsdp-part:offload") ? "+offload" : ""),
                words.where(part));
}

void say_sharding(PlanWords& words, const std::string& sharding, const std::string& where,
                  const PlanFileContext& context) {
  words.default_to("zero", sharding.substr(0, 1), where);
  if (sharding.find("-node") != std::string::npos)
    words.default_to("shard", std::to_string(launch_machines(*context.cluster).gpus_per_node),
                     where);
}

std::string_view hugging_face_optimizer(const OptimizerRow& optimizer) {
  for (const Meaning& m : hugging_face_optimizers)
    if (m.value == optimizer.name) return m.found;
  return "";
}

bool every_linear(const AdapterTargets& t) { return t == AdapterTargets{}; }

std::vector<std::string_view> hugging_face_targets(const AdapterTargets& targets) {
  std::vector<std::string_view> names;
  for (const auto& [name, used] : adapter_linears)
    for (const Meaning& m : hugging_face_linears)
      if (targets.*used && m.value == name) names.push_back(m.found);
  return names;
}

void gather_targets(PlanWords& words, const std::string& file) {
  if (words.has("target:all-linear")) words.default_to("lora_targets", "all-linear", file);
  std::string list, where;
  for (const auto& [name, used] : adapter_linears) {
    const std::string word = sentence("target:", name);
    if (!words.has(word)) continue;
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
