#include "catalog/model_name.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "catalog/names.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

// What a name may say without changing a dimension.
constexpr std::array<std::string_view, 40> qualifiers{
    {"instruct", "chat",  "base",    "hf",      "it",       "sft",       "dpo",   "fp8",
     "bf16",     "fp16",  "int4",    "int8",    "4bit",     "8bit",      "gptq",  "awq",
     "nf4",      "bnb",   "model",   "deduped", "thinking", "reasoning", "math",  "dequantized",
     "dims",     "coder", "preview", "tuned",   "4k",       "32k",       "128k",  "1m",
     "unsloth",  "pt",    "gguf",    "qat",     "nvfp4",    "mxfp4",     "4bits", "8bits"}};

// Of these, what tells a checkpoint of fewer bits.
constexpr std::array<std::string_view, 13> storages{{"fp8", "int4", "int8", "4bit", "8bit", "4bits",
                                                     "8bits", "gptq", "awq", "nf4", "bnb", "nvfp4",
                                                     "mxfp4"}};

// '_' between digits is a decimal point ("1_8B"), not a separator.
bool separator(std::string_view name, std::size_t i) {
  if (name[i] == '-' || name[i] == ' ') return true;
  if (name[i] != '_') return false;
  return i == 0 || i + 1 == name.size() || !is_digit(name[i - 1]) || !is_digit(name[i + 1]);
}

// A release as year and month or month and day: "2507", "0528".
bool is_release(std::string_view part) {
  return part.size() == 4 && std::all_of(part.begin(), part.end(), is_digit);
}

// "v0.3", "v2"
bool is_version(std::string_view part) {
  return part.size() > 1 && part[0] == 'v' && is_digit(part[1]);
}

bool is_qualifier(std::string_view part) {
  return std::find(qualifiers.begin(), qualifiers.end(), part) != qualifiers.end();
}

// Beside the name of a model these tell of another architecture that was made of it or for it.
constexpr std::array<std::string_view, 33> rebuilt{
    {"vl",     "vision",    "omni",     "audio", "speech", "ocr",   "hybrid", "linear",   "moe",
     "moa",    "width",     "depth",    "eagle", "eagle3", "llava", "pruned", "minitron", "medusa",
     "dflash", "embedding", "reranker", "like",  "style",  "shape", "sized",  "scale",    "layer",
     "layers", "video",     "v",        "tts",   "tiny",   "random"}};
// So do words that hold one of these: "qrwkv6", "drafter", "speculator", "paligemma".
constexpr std::array<std::string_view, 7> rebuilt_roots{
    {"mamba", "rwkv", "retnet", "bitnet", "draft", "specul", "paligemma"}};

bool is_rebuilt(std::string_view part) {
  return std::find(rebuilt.begin(), rebuilt.end(), part) != rebuilt.end() ||
         std::any_of(rebuilt_roots.begin(), rebuilt_roots.end(),
                     [&](std::string_view root) { return part.find(root) != part.npos; });
}

// "6layers", "4expert": a number of something, but for a context's length ("16k"), bits ("2bit")
// and how long it was trained ("3epochs").
bool counts_parts(std::string_view part) {
  const std::size_t digits = std::min(part.find_first_not_of("0123456789."), part.size());
  if (digits == 0 || digits == part.size()) return false;
  const std::string_view unit = part.substr(digits);
  constexpr std::array<std::string_view, 6> known{{"k", "bit", "bpw", "epoch", "epochs", "steps"}};
  return std::find(known.begin(), known.end(), unit) == known.end();
}

// "8b", "1.5b", "135m", "8x7b", "a3b", "16e": how large a model is, or a part of it.
bool is_size(std::string_view part) {
  if (part.size() < 2 || std::string_view("bme").find(part.back()) == std::string_view::npos)
    return false;
  part.remove_suffix(1);
  if (part.front() == 'a') part.remove_prefix(1);
  return !part.empty() && std::all_of(part.begin(), part.end(),
                                      [](char c) { return is_digit(c) || c == '.' || c == 'x'; });
}

// Without the owner before '/', remarks from " (" on, and "reduced to 2 layers".
std::string_view bare(std::string_view name) {
  for (const std::string_view remark : {" (", " reduced "})
    name = name.substr(0, name.find(remark));
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  return name;
}

std::vector<std::string> parts_of(std::string_view name) {
  name = bare(name);
  std::vector<std::string> parts{""};
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (separator(name, i))
      parts.emplace_back();
    else
      parts.back() += name[i] == '_' ? '.' : lower_ascii(name[i]);
  }
  parts.erase(std::remove(parts.begin(), parts.end(), std::string()), parts.end());
  if (parts.size() > 1 && parts[0] == "meta") parts.erase(parts.begin());  // "Meta-Llama-3-8B"
  return parts;
}

// Whether a name of the catalog (one without remarks) has this key. Validation asks it millions of
// times, so nothing is built on the way.
bool has_key(std::string_view name, std::string_view key) {
  std::size_t i = name.rfind('/');
  i = i == std::string_view::npos ? 0 : i + 1;
  std::size_t matched = 0;
  for (; i < name.size(); ++i) {
    const char c = name[i];
    if (separator(name, i)) continue;
    if (matched == key.size() || key[matched] != (c == '_' ? '.' : lower_ascii(c))) return false;
    ++matched;
  }
  return matched == key.size();
}

bool answers_to(const Transformer& model, std::string_view key) {
  if (has_key(model.id, key) || (!model.hf_id.empty() && has_key(model.hf_id, key))) return true;
  return std::any_of(model.aliases.begin(), model.aliases.end(),
                     [&](const std::string& alias) { return has_key(alias, key); });
}

const Transformer* model_named(std::string_view key, const std::vector<Transformer>& catalog,
                               const ModelAliases& aliases) {
  for (const Transformer& model : catalog)
    if (answers_to(model, key)) return &model;
  for (const auto& [alias, id] : aliases)
    if (has_key(alias, key)) return model_with_id(id, catalog);
  return nullptr;
}

using Parts = std::span<const std::string>;

bool none_of_other_size(Parts parts) {
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return is_size(part) || is_rebuilt(part) || counts_parts(part);
  });
}

// As names on a hub are; what has blanks describes a model, which may be none of these.
bool is_one_word(std::string_view name) { return name.find_first_of(" ,") == name.npos; }

// Fine-tunes bear their base's name and size in their own: "Hermes-2-Pro-Mistral-7B". The longest
// run of parts that names a model and says a size, where what stands around it says neither
// another size nor that the layers were rebuilt.
const Transformer* base_named(Parts parts, const std::vector<Transformer>& catalog,
                              const ModelAliases& aliases) {
  for (std::size_t length = parts.size(); length > 0; --length)
    for (std::size_t first = 0; first + length <= parts.size(); ++first) {
      const Parts run = parts.subspan(first, length);
      if (is_digit(run.front().front()) || std::none_of(run.begin(), run.end(), is_size)) continue;
      if (!none_of_other_size(parts.first(first))) continue;
      if (!none_of_other_size(parts.subspan(first + length))) continue;
      const std::string key = joined(run, "");
      if (const Transformer* model = model_named(key, catalog, aliases)) return model;
    }
  return nullptr;
}

}  // namespace

std::string storage_named(std::string_view name) {
  std::string words;
  for (const std::string& part : parts_of(name))
    if (std::find(storages.begin(), storages.end(), part) != storages.end())
      words += (words.empty() ? "" : " ") + part;
  return words;
}

const Transformer* model_with_id(std::string_view id, const std::vector<Transformer>& catalog) {
  const auto found = std::find_if(catalog.begin(), catalog.end(),
                                  [&](const Transformer& m) { return m.id == id; });
  return found == catalog.end() ? nullptr : &*found;
}

std::string model_name_key(std::string_view name) { return joined(parts_of(name), ""); }

namespace {

ModelReading read_one_spelling(std::string_view name, const std::vector<Transformer>& catalog,
                               const ModelAliases& aliases) {
  std::vector<std::string> parts = parts_of(name);
  if (const Transformer* model = model_named(joined(parts, ""), catalog, aliases)) return {model};
  parts.erase(std::remove_if(parts.begin(), parts.end(), is_qualifier), parts.end());
  const std::vector<std::string> all = is_one_word(bare(name)) ? parts : std::vector<std::string>();
  while (!parts.empty()) {
    if (const Transformer* model = model_named(joined(parts, ""), catalog, aliases)) return {model};
    if (!is_release(parts.back()) && !is_version(parts.back())) break;
    parts.pop_back();
  }
  return {base_named(all, catalog, aliases), true};
}

}  // namespace

// What no decimal point makes a name ("llama3_8b" is no Llama of 3.8 billion) is read with hyphens.
ModelReading read_model_name(std::string_view name, const std::vector<Transformer>& catalog,
                             const ModelAliases& aliases) {
  if (name.find('+') != std::string_view::npos) return {};
  const ModelReading pointed = read_one_spelling(name, catalog, aliases);
  if (pointed.model != nullptr || name.find('_') == std::string_view::npos) return pointed;
  std::string hyphened(name);
  std::replace(hyphened.begin(), hyphened.end(), '_', '-');
  return read_one_spelling(hyphened, catalog, aliases);
}

const Transformer* model_meant(std::string_view name, const std::vector<Transformer>& catalog,
                               const ModelAliases& aliases) {
  return read_model_name(name, catalog, aliases).model;
}

std::optional<std::string> model_id_meant(std::string_view name,
                                          const std::vector<std::string>& ids,
                                          const ModelAliases& aliases) {
  if (name.find('+') != std::string_view::npos) return std::nullopt;
  const std::string key = model_name_key(name);
  for (const std::string& id : ids)
    if (has_key(id, key)) return id;
  for (const auto& [alias, id] : aliases)
    if (has_key(alias, key)) return id;
  return std::nullopt;
}

}  // namespace shardwise
