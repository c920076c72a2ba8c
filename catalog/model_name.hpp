// Which catalogued model a published name means. Tables and logs write "Llama-2-70b-chat-hf",
// "Qwen/Qwen3-30B-A3B-Instruct-2507", "GPT2-XL (~1.6B)" or "Qwen-1_8B"; all of these share their
// dimensions with a model of the catalog, because fine-tuning and quantising change none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/transformer.hpp"

namespace shardwise {

using ModelAliases = std::map<std::string, std::string>;  // "70b" -> the id of a model

// The parts of a name that tell models apart, joined: lower case, without owner, separators and
// remarks in parentheses; "_" between digits is a decimal point. "Qwen/Qwen-1_8B" is "qwen1.8b".
// Where that names nothing, read_model_name() takes it as a hyphen: "llama3_8b".
std::string model_name_key(std::string_view name);

// What a name says of how its weights are stored, in fewer than 16 bits: "gptq", "bnb 4bit"; ""
// where it says nothing.
std::string storage_named(std::string_view name);

// The model of exactly this id, or nullptr. Points into `catalog`.
const Transformer* model_with_id(std::string_view id, const std::vector<Transformer>& catalog);

// The model that `name` means: by id, alias, last part of the Hugging Face id or `aliases` (as in
// models/aliases.json); failing that, without words such as "instruct", "hf" or "fp8", and then
// without versions and release dates at the end ("v0.2", "2507"); failing that, the base that a
// fine-tune's name holds, with its size ("Hermes-2-Pro-Mistral-7B"). nullptr where nothing is
// found, or where the name speaks of two models ("OPT-1.3B + OPT-350M"). Points into `catalog`.
const Transformer* model_meant(std::string_view name, const std::vector<Transformer>& catalog,
                               const ModelAliases& aliases = {});

// The same, and whether that is only the base in the name of what may be a fine-tune.
struct ModelReading {
  const Transformer* model = nullptr;
  bool as_base = false;  // the name itself is no model's; `model` is its base, or nullptr
};
ModelReading read_model_name(std::string_view name, const std::vector<Transformer>& catalog,
                             const ModelAliases& aliases = {});

// Which of these ids `name` means: the same as model_meant where it is an id or an alias of
// `aliases` as it stands, which needs no more of a model than its id. nullopt for all other names.
std::optional<std::string> model_id_meant(std::string_view name,
                                          const std::vector<std::string>& ids,
                                          const ModelAliases& aliases);

}  // namespace shardwise
