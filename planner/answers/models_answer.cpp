#include "planner/answers/models_answer.hpp"

#include <algorithm>
#include <atomic>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

ModelRow::Cell cell_of(const ResolvedRequest& r, Method method) {
  ModelRow::Cell cell;
  cell.method = method;
  auto chosen = choose_plan(r, method, r.clusters.front());
  if (!chosen) {
    cell.problem = chosen.error().front().what;
    return cell;
  }
  cell.legal = true;
  cell.verdict = chosen->verdict;
  cell.step = chosen->forecast.step_time;
  cell.tokens_per_s = chosen->forecast.tokens_per_s;
  cell.margin = chosen->forecast.margin;
  cell.question = std::move(chosen->question);
  return cell;
}

bool row_before(const ModelRow& a, const ModelRow& b) {
  const bool a_runs = a.best() != Verdict::does_not_fit, b_runs = b.best() != Verdict::does_not_fit;
  if (a_runs != b_runs) return a_runs;
  if (a.parameters != b.parameters) return a.parameters > b.parameters;
  return a.model < b.model;
}

// The cells of all rows, each on a core of its own.
std::vector<ModelRow> rows_of(const std::vector<ResolvedRequest>& requests,
                              const std::function<void(std::size_t, std::size_t)>& told) {
  std::vector<ModelRow> rows;
  std::vector<std::pair<std::size_t, std::size_t>> cells;
  for (const ResolvedRequest& r : requests) {
    for (std::size_t at = 0; at < r.methods.size(); ++at) cells.emplace_back(rows.size(), at);
    rows.push_back({r.model.id, parameter_count(r.model).total, {}});
    rows.back().cells.resize(r.methods.size());
  }
  std::atomic<std::size_t> done{0};
  on_all_cores(cells.size(), [&](std::size_t i) {
    const CrewMember alone;
    const auto [row, at] = cells[i];
    rows[row].cells[at] = cell_of(requests[row], requests[row].methods[at]);
    if (told) told(++done, cells.size());
  });
  return rows;
}

// Names and the families that they begin with: "qwem" is near to "qwen" and to no whole name.
std::string near_names(const Catalog& catalog, std::string_view wanted) {
  std::vector<std::string_view> names;
  for (const Transformer& model : catalog.models) {
    const std::string_view id = model.id;
    names.push_back(id.substr(0, id.find_first_of("-0123456789")));
    names.push_back(id);
  }
  return did_you_mean(wanted, names);
}

// What is written as a file is one model, by no name of the catalog's.
bool names_a_file(std::string_view model) {
  return model.ends_with(".json") || model.starts_with("./") || model.starts_with("../") ||
         model.starts_with('/');
}

}  // namespace

Verdict ModelRow::best() const {
  Verdict best = Verdict::does_not_fit;
  for (const Cell& cell : cells)
    if (cell.legal) best = std::min(best, cell.verdict);
  return best;
}

Result<ModelsAnswer> models_answer(const Request& request, const Facts& facts,
                                   const std::function<void(std::size_t, std::size_t)>& told) {
  std::vector<ResolvedRequest> requests;
  const std::string wanted = squeezed(request.model.value_or(""));
  for (const Transformer& model : facts.catalog.models) {
    if (squeezed(model.id).find(wanted) == std::string::npos) continue;
    Request one = request;
    one.model = model.id;
    auto r = resolve(one, facts, UnnamedMethods::fine_tuning);
    if (!r) return r.error();
    requests.push_back(*std::move(r));
  }
  if (requests.empty() && names_a_file(*request.model)) {
    auto r = resolve(request, facts, UnnamedMethods::fine_tuning);
    if (!r) return r.error();
    requests.push_back(*std::move(r));
  }
  if (requests.empty()) {
    const std::string hint = near_names(facts.catalog, *request.model);
    return Problem{ProblemKind::request, "MODEL",
                   sentence("no catalogued model has \"", printable(*request.model),
                            "\" in its name", hint.empty() ? "" : "; ", hint)};
  }
  ModelsAnswer answer{requests.front().methods, rows_of(requests, told),
                      requests.front().clusters.front().spoken, requests.front()};
  std::sort(answer.rows.begin(), answer.rows.end(), row_before);
  return answer;
}

}  // namespace shardwise
