#include "catalog/huggingface.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/huggingface_columns.hpp"
#include "catalog/huggingface_vision.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/names.hpp"
#include "catalog/stored_weights.hpp"
#include "catalog/transformer_flaws.hpp"

namespace shardwise {
namespace {

std::string quoted(std::string_view text) { return '"' + printable(text) + '"'; }

std::vector<std::string_view> supported_types() {
  std::vector<std::string_view> names;
  for (const ConfigFamily& f : config_families()) names.push_back(f.model_type);
  return names;
}

// Most architectures copy Llama's layout, so that is the nearest one where no name is near.
std::string nearest_type(std::string_view model_type) {
  const auto near = suggest(model_type, supported_types());
  return near.empty() ? "llama" : near.front();
}

std::string refusal(std::string_view model_type) {
  std::string out = quoted(model_type) + " is not supported";
  std::string nearest = nearest_type(model_type);
  if (const RefusedFamily* refused = refused_family(model_type)) {
    out += ": " + std::string(refused->reason);
    nearest = refused->nearest;
  }
  return nearest.empty() ? out : out + "; the nearest supported model_type is " + nearest;
}

std::string lower_letters(std::string_view text) {
  std::string out;
  for (const char c : normalised(text))
    if (c != '-') out += c;
  return out;
}

// Configs from before `model_type`: "GPT2LMHeadModel" is gpt2, "LlamaForCausalLM" is llama.
std::optional<std::string> type_of_architecture(JsonReader& config) {
  const std::vector<std::string> architectures = config.texts("architectures");
  if (architectures.empty()) return std::nullopt;
  const std::string_view name = architectures.front();
  const std::size_t end = std::min(name.find("ForCausalLM"), name.find("LMHeadModel"));
  const std::string stem = lower_letters(name.substr(0, end));
  for (const std::string_view type : supported_types())
    if (lower_letters(type) == stem) return std::string(type);
  return std::nullopt;
}

const ConfigFamily* family_of(JsonReader& config, const std::string& fallback_type,
                              Problems& problems) {
  std::string type = config.maybe_text("model_type").value_or(fallback_type);
  if (type.empty()) type = type_of_architecture(config).value_or("");
  if (type.empty()) {
    if (config.clean()) config.problem("model_type", "a model_type such as \"llama\"");
    return nullptr;
  }
  if (const ConfigFamily* family = config_family(type)) return family;
  if (config.clean())
    problems.push_back({ProblemKind::file, config.where("model_type"), refusal(type)});
  return nullptr;
}

void add_note(Transformer& model, const std::string& note) {
  if (!model.notes.empty()) model.notes += "; ";
  model.notes += note;
}

void note_prediction_layers(JsonReader& config, Transformer& model) {
  for (const std::string_view key :
       {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"})
    if (const int layers = config.maybe_integer(key, 0, most_layers).value_or(0); layers > 0)
      add_note(model, "without its multi-token-prediction layers (" + std::to_string(layers) + ")");
}

// The id and, where the name looks like one, the Hub's id.
void name_model(JsonReader& config, const std::string& fallback, Transformer& model) {
  std::string name = config.maybe_text("_name_or_path").value_or("");
  while (!name.empty() && name.back() == '/') name.pop_back();
  const std::size_t slash = name.rfind('/');
  if (slash != std::string::npos && slash > 0 && name.find('/') == slash && name.front() != '.')
    model.hf_id = name;
  if (slash != std::string::npos) name = name.substr(slash + 1);
  const std::string id = normalised(printable(name.empty() ? fallback : name, 100));
  model.id = id.empty() || id == "." || id == ".." ? model.model_type : id;
}

// The key to blame for a flaw, where the row says which one holds the member.
std::string_view key_of(const std::string& field, const ConfigFamily& family,
                        const JsonReader& config) {
  if (field == "kv_heads") return present_key(config, family.keys->kv_heads);
  if (field == "layers") return present_key(config, family.keys->layers);
  if (field == "delta.key_heads") return "linear_num_key_heads";
  if (field == "shared_keys.layers") return "num_kv_shared_layers";
  if (!family.experts || !family.experts->nested.empty()) return {};
  if (field == "moe.top_k") return present_key(config, family.experts->top_k);
  if (field == "moe.dense_layers") return family.experts->first_dense;
  return {};
}

void report(const std::vector<TransformerFlaw>& found, const ConfigFamily& family,
            const JsonReader& config, Problems& problems) {
  for (const TransformerFlaw& flaw : found) {
    const std::string_view key = key_of(flaw.field, family, config);
    if (key.empty())
      problems.push_back({ProblemKind::file, config.where(), flaw.field + ": " + flaw.what});
    else
      problems.push_back({ProblemKind::file, config.where(key), flaw.what});
  }
}

// A key that two rules read is wrong once.
Problems one_per_place(const Problems& problems) {
  Problems out;
  for (const Problem& p : problems)
    if (std::none_of(out.begin(), out.end(), [&](const Problem& o) { return o.where == p.where; }))
      out.push_back(p);
  return out;
}

// transformers 5 ties embedding and head where the whole model's config says so, 4 where the
// language model's does (modeling_utils.py: tie_weights of 5.24.0, 4.57.6). A checkpoint that holds
// both apart stays untied, whatever 5 reads, so that only its "false" is sure.
bool unties(const std::string& release, std::optional<bool> outer) {
  return outer == false && release.size() > 1 && release[0] >= '5' && release[1] == '.';
}

void read_language_model(JsonReader& config, JsonReader& whole, const std::string& release,
                         const ConfigFamily& family, Transformer& model) {
  model.model_type = family.model_type;
  read_columns(config, family, model);
  const auto own = config.maybe_flag("tie_word_embeddings");
  const auto outer = whole.maybe_flag("tie_word_embeddings");
  model.tied_embeddings =
      !unties(release, outer) && own.value_or(outer.value_or(model.tied_embeddings));
  model.caps_logits =
      config.maybe_number("final_logit_softcapping", 0, 1e6).value_or(family.logit_cap) > 0;
  note_prediction_layers(config, model);
}

// What a text_config leaves out where it equals its class's default, which transformers writes of
// no nested config (save_pretrained of llava-hf/*). A file that is all of a model has these keys.
// Sources: huggingface/transformers models/llama/configuration_llama.py and
// models/qwen2/configuration_qwen2.py @008e574391, models/mistral/configuration_mistral.py
// @001f85b38f.
struct NestedDefaults {
  std::string_view model_type;
  FamilyDefaults sizes;
};
constexpr std::array<NestedDefaults, 3> nested_defaults{{
    {"llama",
     {.hidden = 4096, .layers = 32, .heads = 32, .ffn = 11008, .vocab = 32000, .positions = 2048}},
    {"mistral",
     {.hidden = 4096,
      .layers = 32,
      .heads = 32,
      .ffn = 14336,
      .vocab = 32000,
      .positions = 131072}},
    {"qwen2",
     {.hidden = 4096,
      .layers = 32,
      .heads = 32,
      .ffn = 22016,
      .vocab = 151936,
      .positions = 32768}},
}};

const FamilyDefaults* defaults_within(const ConfigFamily& family) {
  if (family.defaults != nullptr) return family.defaults;
  const auto* row = std::find_if(
      nested_defaults.begin(), nested_defaults.end(),
      [&](const NestedDefaults& defaults) { return defaults.model_type == family.model_type; });
  return row == nested_defaults.end() ? nullptr : &row->sizes;
}

// "gemma3" and "llama4" wrap "gemma3_text" and "llama4_text", which their text_config may omit;
// "llava" wraps "llama" then (models/llava/configuration_llava.py @053f59efe4).
std::string wrapped_type(JsonReader& whole) {
  const std::string wrapper = whole.maybe_text("model_type").value_or("");
  if (wrapper == "llava") return "llama";
  return config_family(wrapper + "_text") ? wrapper + "_text" : wrapper;
}

Result<Transformer> read_document(const JsonDocument& document, const std::string& fallback_id) {
  Problems problems;
  JsonReader top(document, problems);
  if (!problems.empty()) return problems;
  // Qwen-Omni: what reads, sees and hears, beside a talker of its own.
  const bool thinks = top.kind("thinker_config") == JsonKind::object;
  JsonReader whole = thinks ? top.object("thinker_config") : top;
  const bool nested = whole.kind("text_config") == JsonKind::object;
  JsonReader config = nested ? whole.object("text_config") : whole;
  Transformer model;
  const ConfigFamily* family = family_of(config, nested ? wrapped_type(whole) : "", problems);
  if (!family) return problems;
  ConfigFamily own = *family;
  if (nested) own.defaults = defaults_within(*family);
  const std::string release = top.maybe_text("transformers_version").value_or("");
  read_language_model(config, whole, release, own, model);
  name_model(top, fallback_id, model);
  model.vision =
      read_vision_config(whole, whole.maybe_text("model_type").value_or(""), model.hidden);
  model.stored = read_stored_weights(top);
  if (!model.stored && nested) model.stored = read_stored_weights(config);
  if (nested && !model.vision)
    add_note(model, "the language model alone, as in text_config, without what sees or hears");
  model.provenance = {document.name, "unknown", {}};
  if (problems.empty()) report(flaws(model), *family, config, problems);
  if (!problems.empty()) return one_per_place(problems);
  return model;
}

// "models/llama/config.json" is called "llama", "my-model.json" "my-model".
std::string name_from(const std::filesystem::path& file) {
  if (file.stem() != "config") return file.stem().string();
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(file, failed);
  return failed ? std::string("config")
                : whole.lexically_normal().parent_path().filename().string();
}

// The model_type that a text names, found without parsing it.
std::string_view named_type(std::string_view text) {
  constexpr std::string_view key = "\"model_type\"";
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  const std::size_t open = text.find_first_not_of(": \t\r\n");
  if (open == std::string_view::npos || text[open] != '"') return {};
  text.remove_prefix(open + 1);
  return text.substr(0, std::min(text.find('"'), text.size()));
}

// Python writes Infinity where a bound is open, which JSON does not have: outside of strings, null.
std::string without_infinity(std::string_view text) {
  constexpr std::string_view numbers[] = {"-Infinity", "Infinity"};
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    const auto* found = std::find_if(std::begin(numbers), std::end(numbers), [&](const auto& n) {
      return !quoted && text.substr(i, n.size()) == n;
    });
    if (found == std::end(numbers)) {
      out += text[i];
      continue;
    }
    out += "null";
    i += found->size() - 1;
  }
  return out;
}

// Where the architecture would be refused anyway, that is the more useful half of the answer.
Problems unreadable(Problems problems, std::string_view text, const std::string& name) {
  const std::string_view type = named_type(text);
  if (!type.empty() && refused_family(type))
    problems.insert(problems.begin(), {ProblemKind::file, name + ":/model_type", refusal(type)});
  return problems;
}

}  // namespace

Result<Transformer> parse_huggingface_config(std::string_view text, const std::string& name) {
  const Result<JsonDocument> document = parse_json(text, name);
  if (document) return read_document(*document, name_from(name));
  if (text.find("Infinity") == text.npos) return unreadable(document.error(), text, name);
  const Result<JsonDocument> plain = parse_json(without_infinity(text), name);
  if (!plain) return unreadable(document.error(), text, name);
  return read_document(*plain, name_from(name));
}

Result<Transformer> read_huggingface_config(const std::filesystem::path& file) {
  std::error_code failed;
  const bool folder = std::filesystem::is_directory(file, failed);
  const std::filesystem::path path = folder ? file / "config.json" : file;
  const Result<std::string> text = read_text_file(path, path.string(), json_max_bytes);
  if (!text) return text.error();
  return parse_huggingface_config(*text, path.string());
}

}  // namespace shardwise
