#include "catalog/framework.hpp"

#include <algorithm>

#include "catalog/text_match.hpp"

namespace shardwise {

namespace {

// Of weights that are trained as they were loaded, where the row's other recipe has fp32 ones:
// autograd's gradients are as wide as what they belong to. GradScaler, which fp16 needs, unscales
// no 16-bit gradients (PyTorch torch/amp/grad_scaler.py, _unscale_grads_: "Attempting to unscale
// FP16 gradients"), so there fp32 must be loaded.
void settle_loaded_weights(Framework& row, DType compute) {
  if (row.formats.finetune_weights != WeightRecipe::pure_half) return;
  if (row.formats.pretrain_weights != WeightRecipe::fp32_with_half_compute) return;
  if (compute == DType::fp16)
    row.formats.finetune_weights = WeightRecipe::fp32_with_half_compute;
  else
    row.gradients.dtype = row.gradients.reduce_dtype = DType::bf16;
}

}  // namespace

Framework resolved_for(Framework row, Method method, DType compute) {
  if (method == Method::full) settle_loaded_weights(row, compute);
  if (compute == DType::fp32 || compute == DType::tf32) {
    row.formats.pretrain_weights = WeightRecipe::fp32;
    row.formats.finetune_weights = WeightRecipe::fp32;
    row.formats.frozen_dtype = DType::fp32;
    row.gradients.dtype = DType::fp32;
    row.gradients.reduce_dtype = DType::fp32;
    row.adapters.dtype = DType::fp32;
    row.gradients.copy_while_accumulating = false;
  }
  if (compute == DType::fp16) {
    row.quantized.recasts_tables = false;
    if (row.formats.frozen_dtype == DType::bf16) row.formats.frozen_dtype = DType::fp16;
    if (row.adapters.dtype == DType::bf16) row.adapters.dtype = DType::fp16;
    if (row.gradients.dtype == DType::bf16) row.gradients.dtype = DType::fp16;
    if (row.gradients.reduce_dtype == DType::bf16) row.gradients.reduce_dtype = DType::fp16;
    row.update.checks_gradients = false;  // NaN tells the scaler of the loss to step back
    row.update.checks_partition =
        row.update.checks_partition || row.update.norm_in_double;  // and ZeRO looks for it
    if (row.gradients.dtype_fp16) {
      row.gradients.dtype = *row.gradients.dtype_fp16;
      row.gradients.reduce_dtype = *row.gradients.dtype_fp16;
      row.gradients.copy_while_accumulating = false;
      row.update.fp32_gradient_at_step = true;
      row.update.wide_gradient_checks =
          row.update.wide_gradient_checks || row.update.wide_gradient_checks_fp16;
      row.gradients.life = row.gradients.life_fp16.value_or(row.gradients.life);
    }
  }
  if (method == Method::qlora) {
    row.adapters.dtype = row.adapters.dtype_quantized.value_or(row.adapters.dtype);
    row.recompute.finetune = row.recompute.quantized.value_or(row.recompute.finetune);
  }
  return row;
}

std::optional<std::string> method_refusal(const Framework& framework, Method method) {
  if (framework.runs(method)) return std::nullopt;
  std::string known;
  for (const Method m : framework.supports.methods) {
    if (!known.empty()) known += m == framework.supports.methods.back() ? " and " : ", ";
    known += name(m);
  }
  return framework.name + " has no " + std::string(name(method)) + "; it has " + known;
}

namespace {

// Whether `text` holds `words`, which may be two, joined by " & ": a trainer and what it runs on.
bool holds_all(std::string_view text, std::string_view words) {
  constexpr std::string_view both = " & ";
  const std::size_t at = words.find(both);
  if (at == std::string_view::npos) return holds_words(text, words);
  return holds_words(text, words.substr(0, at)) &&
         holds_words(text, words.substr(at + both.size()));
}

// The row whose word in `text` is the longest; nullptr where it holds none.
template <class Words>
const Framework* named_by(const std::vector<Framework>& rows, std::string_view text,
                          const Words& words_of) {
  const Framework* best = nullptr;
  std::size_t longest = 0;
  for (const Framework& row : rows)
    for (const std::string& word : words_of(row))
      if (word.size() > longest && holds_all(text, word)) {
        longest = word.size();
        best = &row;
      }
  return best;
}

}  // namespace

const Framework* framework_meant(const std::vector<Framework>& rows, std::string_view text,
                                 std::string_view note) {
  const std::vector<std::string> none;
  const auto named = [&](bool engine) {
    return named_by(rows, text, [&](const Framework& row) {
      std::vector<std::string> words;
      for (const std::string& word : row.match)
        if (row.is_named_as_engine_by(word) == engine) words.push_back(word);
      return words;
    });
  };
  const Framework* meant = named(false);
  if (meant == nullptr) meant = named(true);
  // A row that refines may be refined itself. No chain is longer than the rows.
  for (std::size_t level = 0; meant != nullptr && level < rows.size(); ++level) {
    const Framework* finer =
        named_by(rows, note, [&](const Framework& row) -> const std::vector<std::string>& {
          return row.refines == meant->id ? row.match_note : none;
        });
    if (finer == nullptr) break;
    meant = finer;
  }
  return meant;
}

}  // namespace shardwise
