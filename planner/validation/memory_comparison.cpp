#include "planner/validation/memory_comparison.hpp"

#include <array>
#include <optional>
#include <span>

#include "planner/figures.hpp"

namespace shardwise {
namespace {

using enum MemoryCategory;

enum class Moment { after_forward, peak };

// What one row adds up: our categories, and the same names in a record.
struct Row {
  Moment moment;
  std::string_view name;
  std::array<MemoryCategory, 5> categories;
  std::size_t count;
};

constexpr std::array<Row, 9> compared_rows{{
    {Moment::after_forward, "weights", {weights, adapters, quantization, master_weights}, 4},
    {Moment::after_forward, "optimizer_states", {optimizer_states}, 1},
    {Moment::after_forward, "gathered_parameters", {gathered_parameters}, 1},
    {Moment::after_forward, "activations", {activations, temporaries, communication, recompute}, 4},
    {Moment::after_forward, "logits", {logits}, 1},
    {Moment::peak, "gradients", {gradients}, 1},
    {Moment::peak, "activations", {activations}, 1},
    {Moment::peak, "temporaries", {temporaries, recompute, communication}, 3},
    {Moment::peak, "logits", {logits}, 1},
}};

constexpr double least_share = 0.01;  // of the measured peak

double measured(const RunRecord& run, const Row& row) {
  const auto& told =
      row.moment == Moment::peak ? run.measured.breakdown_gib : run.measured.after_forward_gib;
  double sum = 0;
  for (std::size_t i = 0; i < row.count; ++i) {
    const auto found = told.find(std::string(name(row.categories[i])));
    if (found != told.end()) sum += found->second;
  }
  return sum;
}

double forecast_of(const StageForecast& stage, const Row& row) {
  const MemoryBreakdown& ours = row.moment == Moment::peak ? stage.breakdown : stage.after_forward;
  Bytes sum;
  for (std::size_t i = 0; i < row.count; ++i)
    sum += Bytes(ours[static_cast<std::size_t>(row.categories[i])]);
  return gib(sum);
}

std::optional<double> error(const ReplayedRun& run, const Row& row) {
  const auto peak = measured_memory_gib(*run.run);
  if (!peak || !run.memory_stage || run.run->measured.after_forward_gib.empty())
    return std::nullopt;
  const double told = measured(*run.run, row);
  if (told < least_share * *peak) return std::nullopt;
  return forecast_of(*run.memory_stage, row) / told - 1;
}

std::string cell(std::string text, std::size_t width, bool left) {
  if (text.size() >= width) return text;
  return left ? text + std::string(width - text.size(), ' ')
              : std::string(width - text.size(), ' ') + text;
}

}  // namespace

std::vector<CategoryScore> compare_categories(const std::vector<ReplayedRun>& runs) {
  std::vector<CategoryScore> out;
  for (const Row& row : compared_rows) {
    std::vector<double> errors;
    for (const ReplayedRun& run : runs)
      if (const auto e = error(run, row)) errors.push_back(*e);
    if (errors.empty()) continue;
    out.push_back({row.moment == Moment::peak ? "at the peak" : "after forward", row.name,
                   error_statistics(std::move(errors))});
  }
  return out;
}

std::string category_report(const std::vector<CategoryScore>& rows_told) {
  if (rows_told.empty()) return "";
  std::string out = "\nbytes by category, runs that tell them\n" + cell("", 36, true) +
                    cell("n", 6, false) + cell("bias %", 9, false) + cell("median", 9, false) +
                    cell("p90", 9, false) + "\n";
  for (const CategoryScore& row : rows_told) {
    out += cell(std::string(row.moment), 16, true) + cell(std::string(row.category), 20, true) +
           cell(std::to_string(row.error.count), 6, false);
    for (const double figure : {row.error.bias, row.error.median, row.error.p90})
      out += cell(fixed(100 * figure, 1), 9, false);
    out += "\n";
  }
  return out;
}

}  // namespace shardwise
