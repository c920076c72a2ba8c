#include "planner/launch/named_model.hpp"

#include <optional>
#include <string>

#include "catalog/find.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// Models of one shape, such as a base model and its chat version, take the same memory and time.
bool same_shape(const Transformer& a, const Transformer& b) {
  const int a_experts = a.moe ? a.moe->experts : 0, b_experts = b.moe ? b.moe->experts : 0;
  return a.layers == b.layers && a.hidden == b.hidden && a.ffn == b.ffn && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.vocab == b.vocab && a_experts == b_experts;
}

// Of a catalog that holds the model asked for alone, the others are read for this.
std::optional<Transformer> catalogued(const Catalog& catalog, const std::string& name) {
  if (const auto found = find_model(catalog, name)) return **found;
  if (catalog.all_models) return std::nullopt;
  auto models = load_models(catalog.root);
  if (!models) return std::nullopt;
  Catalog whole;
  whole.models = *std::move(models);
  whole.model_aliases = catalog.model_aliases;
  const auto found = find_model(whole, name);
  return found ? std::optional(**found) : std::nullopt;
}

}  // namespace

void tell_other_model(PlanWords& words, const PlanFileContext& context, std::string_view key) {
  if (!words.has(named_model) || context.catalog == nullptr) return;
  const auto found = catalogued(*context.catalog, words.words.find(named_model)->second.value);
  if (!found || same_shape(*found, *context.model)) return;
  tell_another(words, context, key, sentence("names ", found->id));
}

void tell_other_size(PlanWords& words, const PlanFileContext& context, std::string_view word,
                     std::string_view key, int asked) {
  const auto said = words.number(word);
  if (!said || *said == asked) return;
  tell_another(words, context, key, sentence("says ", *said, ", not ", asked));
}

void tell_another(PlanWords& words, const PlanFileContext& context, std::string_view key,
                  const std::string& found) {
  words.unmet.emplace_back(
      key, sentence(found, "; the forecast is of ", context.model->id, ", as asked"));
}

}  // namespace shardwise
