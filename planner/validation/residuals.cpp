#include "planner/validation/residuals.hpp"

#include <array>
#include <map>
#include <utility>

#include "planner/figures.hpp"

namespace shardwise {
namespace {

using RunsBySource = std::map<std::string, std::vector<ReplayedRun>>;

struct FigureRow {
  const char* name;
  ErrorStatistics Residual::*errors;
};
constexpr std::array<FigureRow, 2> figures{
    {{"time", &Residual::time}, {"memory", &Residual::memory}}};

// The lines of one figure: places count the rows that have any error of it.
std::string lines(const std::vector<Residual>& residuals, const FigureRow& figure) {
  std::string out;
  int place = 0;
  const Residual* before = nullptr;
  for (const Residual& r : residuals) {
    const ErrorStatistics& e = r.*figure.errors;
    if (e.count == 0) continue;
    if (before == nullptr || before->dimension != r.dimension) place = 0;
    if (place == 0 || before->row < r.row) ++place;
    before = &r;
    out += r.dimension;
    for (const std::string& column :
         {std::to_string(place), r.row.name, r.source, std::string(figure.name),
          std::to_string(e.count), fixed(100 * e.bias, 1), fixed(100 * e.median, 1)})
      out += "\t" + column;
    out += "\n";
  }
  return out;
}

}  // namespace

std::vector<Residual> residuals(const std::vector<ReplayedRun>& runs) {
  RunsBySource by_source;
  for (const ReplayedRun& r : runs) by_source[r.run->source].push_back(r);
  std::vector<Residual> out;
  for (const std::string_view dimension : score_by_names()) {
    const ScoreBy by = *score_by_named(dimension);
    if (by == ScoreBy::source) continue;
    std::map<std::pair<RowKey, std::string>, Residual> rows;
    for (const auto& [source, of_source] : by_source)
      for (const ScoreRow& row : score_rows(of_source, by))
        rows[{row.key, source}] = {std::string(dimension), row.key, source, row.time, row.memory};
    for (auto& [key, residual] : rows) out.push_back(std::move(residual));
  }
  return out;
}

std::string residual_lines(const std::vector<Residual>& residuals) {
  std::string out = "dimension\tplace\trow\tsource\tfigure\truns\tbias\tmedian\n";
  for (const FigureRow& figure : figures) out += lines(residuals, figure);
  return out;
}

}  // namespace shardwise
