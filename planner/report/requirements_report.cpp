#include "planner/report/requirements_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/figures.hpp"
#include "planner/report/output.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr double samples_timed = 1000;

int gpus(const ChosenPlan& chosen) { return chosen.question.cluster.gpus(); }

// The plan that the other figures of a cell are of.
const ChosenPlan* told_plan(const Requirement& cell) {
  return cell.roomy ? &*cell.roomy : cell.tight ? &*cell.tight : nullptr;
}

std::string cell_count(const Requirement& cell) {
  if (cell.roomy && cell.tight)
    return sentence(grouped(gpus(*cell.roomy)), " (tight ", grouped(gpus(*cell.tight)), ')');
  if (cell.roomy) return grouped(gpus(*cell.roomy));
  return cell.tight ? sentence("tight ", grouped(gpus(*cell.tight))) : "-";
}

std::string cell_memory(const Requirement& cell) {
  const ChosenPlan* chosen = told_plan(cell);
  return chosen == nullptr ? "-" : shown_gib(chosen->forecast.worst().needed);
}

std::string cell_duration(const ResolvedRequest& r, const Requirement& cell) {
  const ChosenPlan* chosen = told_plan(cell);
  if (chosen == nullptr) return "-";
  const double tokens = samples_timed * static_cast<double>(r.tokens_per_sample());
  return shown_time(Seconds(tokens / chosen->forecast.tokens_per_s));
}

template <class Shown>
std::string shown_rows(const RequirementsAnswer& a, const std::string& title, bool named,
                       std::optional<int> columns, Shown shown) {
  Table t{{title}, {}};
  for (const Gpu& card : a.cards) t.header.push_back(sentence(fixed(gib(card.memory), 0), " GB"));
  if (named) {
    std::vector<std::string> names{""};
    for (const Gpu& card : a.cards) names.push_back(card.id);
    t.rows.push_back(std::move(names));
  }
  for (const RequirementRow& row : a.rows) {
    std::vector<std::string> cells{way_name(row.way)};
    for (const Requirement& cell : row.cells) cells.push_back(shown(cell));
    t.rows.push_back(std::move(cells));
  }
  return shown_table(t, "  ", columns);
}

template <class Holds>
bool any_cell(const RequirementsAnswer& a, Holds holds) {
  return std::any_of(a.rows.begin(), a.rows.end(), [&](const RequirementRow& row) {
    return std::any_of(row.cells.begin(), row.cells.end(), holds);
  });
}

// What the most cards lack, where no number does.
std::string none_text(const RequirementsAnswer& a) {
  std::string text = sentence("  -: none up to ", grouped(most_cards_tried), "; why\n");
  for (const RequirementRow& row : a.rows)
    for (std::size_t i = 0; i < a.cards.size(); ++i)
      if (const Requirement& cell = row.cells[i]; told_plan(cell) == nullptr)
        text += sentence("     ", way_name(row.way), " on ", fixed(gib(a.cards[i].memory), 0),
                         " GB: ", cell.problem, '\n');
  return text;
}

// The command that tells more of the first of these answers.
std::string in_full(const RequirementsAnswer& a) {
  for (const RequirementRow& row : a.rows)
    for (const Requirement& cell : row.cells)
      if (const ChosenPlan* chosen = told_plan(cell))
        return sentence("Any of them in full, with the same flags: shardwise fit ",
                        a.request.model.id, " --gpus ", chosen->question.cluster.spoken,
                        " --method ", name(row.way.method), " --microbatch ",
                        *a.request.asked.microbatch, '\n');
  return "";
}

std::string notes_text(const RequirementsAnswer& a) {
  std::string text = "\n";
  if (any_cell(a, [](const Requirement& c) { return c.tight.has_value(); }))
    text +=
        "  tight: so few fit as forecast, but leave no room for the error of forecasts of their "
        "kind\n";
  if (any_cell(a, [](const Requirement& c) { return told_plan(c) == nullptr; }))
    text += none_text(a);
  std::set<std::string> said;
  for (const std::string& note : a.request.notes)
    if (note != a.request.model_size && said.insert(note).second)
      text += sentence("  note: ", note, '\n');
  return text + in_full(a);
}

Json plan_json(const ChosenPlan& chosen) {
  const Forecast& f = chosen.forecast;
  return {{"gpus", gpus(chosen)},
          {"verdict", verdict_name(chosen.verdict)},
          {"plan", whole_text(chosen.question.plan)},
          {"framework", chosen.question.workload.framework.id},
          {"device_gib", json_gib(f.peak_device.expected)},
          {"needed_gib", json_gib(f.worst().needed)},
          {"step_time_s", step_time_json(f.step_time)},
          {"tokens_per_s", json_number(f.tokens_per_s)}};
}

Json cell_json(const Gpu& card, const Requirement& cell) {
  Json j = {{"gpu", card.id}, {"memory_gib", json_gib(card.memory)}};
  if (cell.roomy) j["fits"] = plan_json(*cell.roomy);
  if (cell.tight) j["tight"] = plan_json(*cell.tight);
  if (!cell.roomy && !cell.tight) j["problem"] = cell.problem;
  return j;
}

// What all of it rests on, without what hangs on the number of GPUs.
Json asked_for(const RequirementsAnswer& a) {
  std::vector<Json> filled;
  for (const RequirementRow& row : a.rows)
    for (const Requirement& cell : row.cells)
      if (const ChosenPlan* chosen = told_plan(cell)) {
        Json one = filled_json(a.request, chosen->question.workload, &chosen->question.plan);
        one["microbatch"] = *a.request.asked.microbatch;
        for (const char* of_one_size : {"gpus", "batch"}) one.erase(of_one_size);
        filled.push_back(std::move(one));
      }
  if (filled.empty()) filled.push_back(asked_json(a.request.stated));
  return echo_json(a.request.stated, filled);
}

}  // namespace

std::string requirements_text(const RequirementsAnswer& a, std::optional<int> columns) {
  const ResolvedRequest& r = a.request;
  const std::int64_t mbs = *r.asked.microbatch;
  const auto show = [&](const std::string& title, bool named, auto shown) {
    return shown_rows(a, title, named, columns, shown);
  };
  return sentence(r.model.id, " (", shown_parameters(parameter_count(r.model).total),
                  " parameters): the fewest cards that hold its training, ", grouped(r.sequence),
                  " tokens per sequence, ", counted(mbs, "sequence"), " per GPU at once\n\n") +
         show("cards", true, cell_count) + '\n' + show("memory per GPU", false, cell_memory) +
         '\n' +
         show("1,000 samples take", false,
              [&](const Requirement& cell) { return cell_duration(r, cell); }) +
         notes_text(a);
}

Json requirements_json(const RequirementsAnswer& a) {
  Json rows = Json::array();
  for (const RequirementRow& row : a.rows) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < a.cards.size(); ++i)
      cells.push_back(cell_json(a.cards[i], row.cells[i]));
    Json j = {{"method", name(row.way.method)}};
    if (row.way.optimizer != nullptr) j["optimizer"] = row.way.optimizer->name;
    j["cards"] = std::move(cells);
    rows.push_back(std::move(j));
  }
  return {{"schema_version", schema_version},
          {"command", "models"},
          {"request", asked_for(a)},
          {"model", a.request.model.id},
          {"parameters", parameter_count(a.request.model).total},
          {"most_cards", most_cards_tried},
          {"requirements", rows}};
}

}  // namespace shardwise
