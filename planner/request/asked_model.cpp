#include "planner/request/asked_model.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "catalog/find.hpp"
#include "catalog/huggingface.hpp"
#include "catalog/json_document.hpp"
#include "catalog/model_name.hpp"
#include "catalog/names.hpp"
#include "planner/figures.hpp"
#include "planner/launch/plan_file.hpp"
#include "planner/request/asked_cluster.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view named_by_none = ", and no file of --plan-from names one";

bool holds_config(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / "config.json", ignored);
}

// A name with a slash may be a Hugging Face id; what is written as a path is one.
bool is_path(const std::string& text) {
  if (text.ends_with(".json") || text.starts_with("./") || text.starts_with("../") ||
      text.starts_with('/'))
    return true;
  return text.find('/') != std::string::npos && holds_config(text);
}

// Of a file, parts that are left out; what stands in the catalog has been checked as a whole.
void note_what_is_read(ResolvedRequest& r) {
  if (!r.model.notes.empty())
    r.notes.push_back(sentence("Counted of the file: ", r.model.notes, '.'));
}

void note_size(ResolvedRequest& r, std::string note) {
  r.notes.push_back(note);
  r.model_size = std::move(note);
}

void read_model(ResolvedRequest& r, const std::string& path, Problems& problems) {
  auto model = read_huggingface_config(path);
  if (!model) {
    add_problems(problems, model.error());
    return;
  }
  r.model = *std::move(model);
  note_size(r, sentence(path, " is a ", r.model.model_type, " model with ",
                        shown_parameters(parameter_count(r.model).total), " parameters."));
  note_what_is_read(r);
}

bool is_gguf(const std::string& name) { return squeezed(name).find("gguf") != std::string::npos; }

// The model's name in that of a GGUF file: "llama-3-8b" of "llama-3-8b.Q4_K_M.gguf".
std::string without_gguf(std::string name) {
  if (!squeezed(name).ends_with(".gguf")) return name;
  name.erase(name.rfind('.'));
  const std::size_t at = name.find_last_of(".-");
  if (at == std::string::npos) return name;
  const std::string format = squeezed(name.substr(at + 1));
  const bool bits =
      format.find_first_of("qf") < 2 && format.find_first_of("0123456789") != std::string::npos;
  return bits ? name.substr(0, at) : name;
}

// Also as Ollama writes it: llama3.1:8b.
Result<const Transformer*> named_model_in(const Catalog& catalog, const std::string& spoken) {
  const std::string name = without_gguf(spoken);
  auto found = find_model(catalog, name);
  if (found || name.find(':') == std::string::npos) return found;
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), ':', '-');
  auto other = find_model(catalog, dashed);
  return other ? other : found;
}

// Whether the name only holds that of the model, as a fine-tune's does.
bool is_base_in_name(const Catalog& catalog, std::string name, const Transformer& model) {
  std::replace(name.begin(), name.end(), ':', '-');
  const ModelReading named = read_model_name(name, catalog.models, catalog.model_aliases);
  return named.as_base && named.model == &model;
}

// Of files of one run, which name one model: of two that differ, neither is taken.
void take_model_of_files(ResolvedRequest& r, Problems& problems) {
  const auto texts = plan_texts(r.asked.plan_from);
  if (!texts) {
    add_problems(problems, texts.error());
    return;
  }
  for (const ModelInFile& found : models_in(*texts)) {
    if (!r.asked.model) {
      r.asked.model = found.name;
      r.asked.places["MODEL"] = found.where;
    } else if (!same_name(*r.asked.model, found.name)) {
      problems.push_back(
          {ProblemKind::file, found.where,
           sentence("names ", printable(found.name), ", ", r.asked.places["MODEL"], " ",
                    printable(*r.asked.model), "; expected MODEL to say which is meant")});
      return;
    }
  }
  if (r.asked.model)
    r.notes.push_back(sentence("The model is the one that ", r.asked.places["MODEL"], " names."));
}

// Which catalogued models have the sizes that the files say, in words; "" where none has.
std::string of_these_sizes(const ResolvedRequest& r) {
  const auto texts = plan_texts(r.asked.plan_from);
  const auto sizes = texts ? sizes_in(*texts) : std::nullopt;
  if (!sizes) return "";
  std::vector<std::string> ids;
  for (const Transformer& m : r.facts->catalog.models)
    if (m.layers == sizes->layers && m.hidden == sizes->hidden &&
        bool(m.moe) == (sizes->experts > 0) && (sizes->ffn == 0 || m.ffn == sizes->ffn) &&
        (sizes->kv_heads == 0 || m.kv_heads == sizes->kv_heads))
      ids.push_back(m.id);
  if (ids.empty()) return "";
  return sentence("; with ", sizes->layers, " layers of width ", grouped(sizes->hidden),
                  " the catalog has ", listed(ids));
}

// Names of models that see and that the catalog has not: their config.json can be read.
bool names_what_sees(const std::string& name) {
  const std::string small = squeezed(name);
  for (const std::string_view word : {"llava", "internvl", "pixtral", "smolvlm", "minicpmv",
                                      "paligemma", "moondream", "idefics", "molmo", "vision"})
    if (small.find(word) != std::string::npos) return true;
  return false;
}

// A name that nobody typed: the file has its reasons, so the flag is what can be changed.
Problem unknown_model(const ResolvedRequest& r, const std::string& what) {
  const auto place = r.asked.places.find("MODEL");
  if (place == r.asked.places.end() || r.stated.model) {
    const std::string name = r.asked.model.value_or("");
    const bool of_a_hub = name.find('/') != std::string::npos;
    std::string_view else_how = of_a_hub ? "of another model give the path of its config.json" : "";
    if (what.starts_with("unknown") && names_what_sees(name))  // else there is a reason
      else_how =
          "of a model that sees give the path of its config.json: its language model is counted";
    const char* const join = else_how.empty() ? "" : what.ends_with('?') ? " " : "; ";
    return {ProblemKind::request, "MODEL", sentence(what, join, else_how)};
  }
  return {ProblemKind::file, place->second,
          sentence(what, "; MODEL before the flags says which to forecast instead")};
}

// What was uploaded in place of a name.
void take_uploaded(ResolvedRequest& r) {
  r.model = *r.asked.uploaded;
  note_size(r, sentence("the config.json is that of a ", r.model.model_type, " model with ",
                        shown_parameters(parameter_count(r.model).total), " parameters."));
  note_what_is_read(r);
}

Problem missing_model(const ResolvedRequest& r) {
  return {ProblemKind::request, "MODEL",
          sentence("is missing", r.asked.plan_from.empty() ? "" : named_by_none,
                   "; expected a catalog name, an alias such as 70b, or the path of a config.json",
                   of_these_sizes(r))};
}

void read_model_at(ResolvedRequest& r, const std::string& path, Problems& problems) {
  std::error_code ignored;
  if (is_gguf(path) && !path.ends_with(".json"))
    problems.push_back({ProblemKind::file, path,
                        "is a GGUF file, which is made to answer and not to be trained; expected "
                        "the config.json or the name of the model that it was made of"});
  else if (r.stated.model || fs::exists(path, ignored))
    read_model(r, path, problems);
  else
    problems.push_back(unknown_model(r, sentence("there is no ", printable(path), " here")));
}

// More words than a name has: "8b 3090" (behind a name four digits are a release, but those of a
// card are none), or several where nothing is called so.
std::optional<Problem> more_than_a_name(const ResolvedRequest& r, const std::string& name,
                                        bool known) {
  const Catalog& catalog = r.facts->catalog;
  const std::string cards = gpus_behind(catalog, name);
  if (!cards.empty() && named_model_in(catalog, name.substr(0, name.size() - cards.size() - 1)))
    return Problem{ProblemKind::request, "MODEL",
                   sentence('"', printable(cards), "\" in \"", printable(name),
                            "\" names GPUs; GPUs stand behind --gpus")};
  if (known || name.find(' ') == std::string::npos || r.asked.places.contains("MODEL"))
    return std::nullopt;
  const char* where = "and commas part the keys of a --plan";
  if (name.find(" vs ") != std::string::npos)
    where = "and each of several boxes has a --gpus of its own";
  else if (name.find('=') == std::string::npos)
    where = "and GPUs stand behind --gpus";
  return Problem{
      ProblemKind::request, "MODEL",
      sentence("nothing is called \"", printable(name), "\"; one name is enough, ", where)};
}

void take_named(ResolvedRequest& r, const std::string& name, const Transformer& model) {
  r.model = model;
  const bool is_id = same_name(name, model.id);
  const bool is_base = is_base_in_name(r.facts->catalog, name, model);
  const char* is = is_base ? "\" is taken for a fine-tune of " : "\" is ";
  note_size(r, sentence(is_id ? "" : sentence("\"", name, is), model.id, is_id ? " has " : " with ",
                        shown_parameters(parameter_count(model).total), " parameters."));
  const std::string storage = storage_named(name);
  if (!storage.empty() && !model.stored && !r.asked.quantization)
    r.notes.push_back(sentence("That its weights are stored as ", storage, " is not read from its ",
                               "name: --quantization says it, or the path of its config.json."));
  if (is_gguf(name))
    r.notes.push_back(
        "A GGUF file is made to answer, not to be trained: training loads the model's own weights, "
        "and --method qlora holds them in 4 bits.");
}

}  // namespace

void resolve_model(ResolvedRequest& r, Problems& problems) {
  if (r.asked.uploaded) return take_uploaded(r);
  if (!r.asked.model && !r.asked.plan_from.empty()) take_model_of_files(r, problems);
  if (!problems.empty()) return;
  if (!r.asked.model) return problems.push_back(missing_model(r));
  const std::string& name = *r.asked.model;
  if (!r.asked.names_only && is_path(name)) return read_model_at(r, name, problems);
  const auto model = named_model_in(r.facts->catalog, name);
  if (!model && !r.asked.names_only && holds_config(name)) return read_model(r, name, problems);
  if (auto problem = more_than_a_name(r, name, bool(model)))
    return problems.push_back(*std::move(problem));
  if (model) return take_named(r, name, **model);
  for (const Problem& p : model.error())
    problems.push_back(p.kind == ProblemKind::request ? unknown_model(r, p.what) : p);
}

}  // namespace shardwise
