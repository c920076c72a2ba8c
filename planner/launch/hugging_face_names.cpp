#include "planner/launch/hugging_face_names.hpp"

#include <algorithm>
#include <regex>

#include "planner/launch/launch_job.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

using Linears = std::vector<std::string_view>;

constexpr std::string_view no_linear = "is no linear that adapters are counted on here";
constexpr std::string_view one_linear_there =
    "is one linear there; adapters are counted on each of its parts";

// What other families call them: GPT-NeoX and Falcon, Mixtral and InternLM, OPT and Phi.
struct OtherName {
  std::string_view found;
  Linears linears;
};
const std::vector<OtherName>& other_names() {
  static const std::vector<OtherName> names{{"all", {"all-linear"}},
                                            {"dense", {"o"}},
                                            {"wo", {"o"}},
                                            {"w1", {"gate"}},
                                            {"w3", {"up"}},
                                            {"w2", {"down"}},
                                            {"dense_h_to_4h", {"up"}},
                                            {"dense_4h_to_h", {"down"}},
                                            {"fc1", {"up"}},
                                            {"fc2", {"down"}},
                                            {"query_key_value", {"q", "k", "v"}},
                                            {"qkv_proj", {"q", "k", "v"}},
                                            {"c_attn", {"q", "k", "v"}},
                                            {"Wqkv", {"q", "k", "v"}},
                                            {"wqkv", {"q", "k", "v"}},
                                            {"W_pack", {"q", "k", "v"}},
                                            {"gate_up_proj", {"gate", "up"}}};
  return names;
}

NamedLinears by_name(const std::string& name) {
  for (const Meaning& m : hugging_face_linears)
    if (m.found == name) return {{m.value}, ""};
  for (const OtherName& other : other_names())
    if (other.found == name)
      return {other.linears, other.linears.size() > 1 ? std::string(one_linear_there) : ""};
  return {{}, std::string(no_linear)};
}

// Whether a pattern takes the module of every one of a few layers: 1 for all, 0 for none.
double share_of_layers(const std::regex& pattern, std::string_view module) {
  constexpr int layers = 12;
  int taken = 0;
  for (int layer = 0; layer < layers; ++layer)
    for (const std::string_view stem : {"model.layers.", "model.language_model.layers.",
                                        "language_model.model.layers.", "model.text_model.layers."})
      if (std::regex_match(sentence(stem, layer, '.', module), pattern)) {
        ++taken;
        break;
      }
  return static_cast<double>(taken) / layers;
}

// By the names of Llama-like models' modules, which most share, as the tables above do.
NamedLinears by_pattern(const std::string& text) {
  constexpr std::size_t longest = 500;
  if (text.size() > longest) return {{}, "is a longer pattern than is read here"};
  NamedLinears found;
  try {
    const std::regex pattern(text);
    for (const Meaning& m : hugging_face_linears) {
      const bool attention = m.value.size() == 1;  // q, k, v, o
      double share = 0;
      if (m.value == "lm_head" || m.value == "embedding")
        share = std::regex_match(std::string(m.found), pattern) ? 1 : 0;
      else
        for (const std::string_view block :
             {attention ? "self_attn." : "mlp.", attention ? "self_attn." : "mlp.experts.0."})
          share = std::max(share, share_of_layers(pattern, sentence(block, m.found)));
      if (share == 1) found.linears.push_back(m.value);
      if (share > 0 && share < 1) found.note = "takes some layers only: not modelled";
    }
  } catch (const std::regex_error&) {
    return {{}, "is a pattern that is not read here"};
  }
  if (found.linears.empty() && found.note.empty()) found.note = no_linear;
  return found;
}

}  // namespace

NamedLinears linears_named(const std::string& target) {
  if (target.find_first_of("*+?[]()|^$\\") != std::string::npos) return by_pattern(target);
  NamedLinears all;
  std::string_view rest = target;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const NamedLinears named = by_name(std::string(one.substr(one.rfind('.') + 1)));
    all.linears.insert(all.linears.end(), named.linears.begin(), named.linears.end());
    if (!named.note.empty())
      all.note = more || comma != rest.npos ? sentence(one, ' ', named.note) : named.note;
  }
  return all;
}

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
  if (list.empty() && words.has("target:none") && !words.has("target:all-linear") &&
      !words.has("lora_targets"))
    words.wrong("target:none",
                "names no linear that adapters are counted on; expected for example q_proj, v_proj "
                "or all-linear");
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
