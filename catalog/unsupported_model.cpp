#include "catalog/unsupported_model.hpp"

#include "catalog/huggingface_family.hpp"
#include "catalog/json_document.hpp"
#include "catalog/model_name.hpp"
#include "catalog/names.hpp"

namespace shardwise {

std::optional<std::string> unsupported_model(const std::filesystem::path& root,
                                             std::string_view name) {
  const auto document =
      parse_json_file(root / "models" / "unsupported.json", "models/unsupported.json");
  if (!document) return std::nullopt;
  Problems problems;
  JsonReader file(*document, problems);
  JsonReader models = file.object("models");
  const std::string key = model_name_key(name);
  for (const std::string& known : models.keys()) {
    if (!key.starts_with(model_name_key(known))) continue;
    const RefusedFamily* family = refused_family(models.text(known));
    if (family == nullptr) continue;
    std::string out =
        "\"" + printable(name) + "\" is not supported: " + std::string(family->reason);
    if (!family->nearest.empty())
      out += "; models of the type " + std::string(family->nearest) + " resemble it most";
    return out;
  }
  return std::nullopt;
}

}  // namespace shardwise
