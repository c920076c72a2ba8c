#include "planner/commands/models.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "planner/answers/models_answer.hpp"
#include "planner/answers/requirements.hpp"
#include "planner/figures.hpp"
#include "planner/progress_line.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/requirements_report.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::size_t models_shown = 20;  // models, the largest that run: a screen of them

std::string shown_cell(const ModelRow::Cell& cell) {
  if (!cell.legal) return "-";
  if (cell.verdict == Verdict::does_not_fit)
    return sentence("short ", shown_gib(Bytes(-cell.margin.value)));
  return sentence(cell.verdict == Verdict::tight ? "tight " : "", shown_time(cell.step.expected),
                  ", ", shown_rate(cell.tokens_per_s), " tok/s");
}

bool runs(const ModelRow& row) { return row.best() != Verdict::does_not_fit; }

// The rows are the largest first.
std::string largest_text(const ModelsAnswer& a) {
  std::string text;
  for (std::size_t m = 0; m < a.methods.size(); ++m) {
    const auto largest = std::find_if(a.rows.begin(), a.rows.end(), [m](const ModelRow& row) {
      return row.cells[m].legal && row.cells[m].verdict == Verdict::fits;
    });
    text +=
        sentence(text.empty() ? "" : ", ", name(a.methods[m]), ' ',
                 largest == a.rows.end()
                     ? "none"
                     : sentence(largest->model, " (", shown_parameters(largest->parameters), ')'));
  }
  return sentence("  the largest with room to spare: ", text, '\n');
}

// A screen of all models, or every one whose name was asked for.
std::string models_text(const ModelsAnswer& a, bool named, std::optional<int> columns) {
  Table t{{"model", "parameters"}, {}};
  for (const Method m : a.methods) t.header.emplace_back(name(m));
  const auto running = static_cast<std::size_t>(std::count_if(a.rows.begin(), a.rows.end(), runs));
  // Of those that miss a screen of all shows the nearest alone, and only where none runs.
  const std::size_t shown =
      named ? a.rows.size()
            : std::min({a.rows.size(), models_shown, std::max<std::size_t>(running, 1)});
  for (const ModelRow& row : std::span(a.rows).first(shown)) {
    std::vector<std::string> cells{row.model, shown_parameters(row.parameters)};
    for (const ModelRow::Cell& cell : row.cells) cells.push_back(shown_cell(cell));
    t.rows.push_back(std::move(cells));
  }
  const std::vector<Cluster>& sizes = a.request.clusters;
  const std::string card = sizes.size() < 2 ? ""
                                            : sentence(" (of ", sizes.size(), " such cards ",
                                                       sizes.front().groups.front().gpu.name, ")");
  const std::string left =
      shown == a.rows.size()
          ? ""
          : sentence(
                "  ",
                running > shown ? sentence(running - shown, " smaller ones run as well, ") : "",
                a.rows.size() - running,
                " do not fit: a part of a name lists all that have it (shardwise models qwen "
                "--gpus ...), --json lists every one\n");
  return sentence(running, " of ", a.rows.size(), " models run on ", a.cluster, card,
                  "; step and rate, or what is missing per GPU\n", named ? "" : largest_text(a),
                  shown_table(t, "  ", columns), left);
}

// What the answers of all models rest on, beside what was asked.
Json models_request(const Request& request, const ModelsAnswer& a) {
  std::vector<Json> filled;
  for (const ModelRow& row : a.rows)
    for (const ModelRow::Cell& cell : row.cells)
      if (cell.question)
        filled.push_back(filled_json(a.request, cell.question->workload, &cell.question->plan));
  if (filled.empty()) filled.push_back(asked_json(a.request.asked));
  for (Json& one : filled)
    for (const char* of_one_model : {"model", "images", "image_tokens"}) one.erase(of_one_model);
  return echo_json(request, filled);
}

Json models_json(const Request& request, const ModelsAnswer& a) {
  Json rows = Json::array();
  for (const ModelRow& row : a.rows) {
    Json cells = Json::array();
    for (const ModelRow::Cell& cell : row.cells) {
      Json j = {{"method", name(cell.method)}};
      if (cell.legal) {
        j["verdict"] = verdict_name(cell.verdict);
        j["plan"] = whole_text(cell.question->plan);
        j["step_time_s"] = step_time_json(cell.step);
        j["tokens_per_s"] = json_number(cell.tokens_per_s);
        j["margin_gib"] = json_gib(cell.margin);
      } else {
        j["problem"] = cell.problem;
      }
      cells.push_back(j);
    }
    rows.push_back({{"model", row.model},
                    {"parameters", row.parameters},
                    {"verdict", verdict_name(row.best())},
                    {"answers", cells}});
  }
  return {{"schema_version", schema_version},
          {"command", "models"},
          {"request", models_request(request, a)},
          {"gpus", a.cluster},
          {"models", rows}};
}

// Without GPUs: how many of them one model takes.
int requirements_of(const Request& request, const Facts& facts, const Output& output) {
  const auto answer = requirements(request, facts);
  if (!answer) {
    Problems problems = answer.error();
    for (Problem& p : problems)
      if (p.where == "MODEL" && p.kind == ProblemKind::request)
        p.what += "; --gpus asks about all models that have a part of a name";
    return report_problems(problems, output);
  }
  if (output.json)
    output.out << requirements_json(*answer).dump(2) << '\n';
  else
    output.out << requirements_text(*answer, output.columns);
  return 0;
}

// Tells a terminal how many questions, of a model and a method each, have their answer.
Result<ModelsAnswer> watched_models(const Request& request, const Facts& facts,
                                    std::ostream* terminal) {
  ProgressLine progress(terminal);
  return models_answer(request, facts, [&](std::size_t done, std::size_t all) {
    progress.tell([&](Seconds taken) {
      return sentence("models: ", done, " of ", all, " plans chosen, ",
                      shown_rest(taken, static_cast<double>(done), static_cast<double>(all)));
    });
  });
}

}  // namespace

int models(const Request& request, const Facts& facts, const Output& output) {
  if (!request.gpus && request.model) return requirements_of(request, facts, output);
  if (!request.gpus)
    return report_problems({{ProblemKind::request, "--gpus",
                             "is missing; expected for example 2xRTX-3090, or a MODEL: then the "
                             "answer is how many cards it takes"}},
                           output);
  const auto answer = watched_models(request, facts, output.progress);
  if (!answer) return report_problems(answer.error(), output);
  if (output.json)
    output.out << models_json(request, *answer).dump(2) << '\n';
  else
    output.out << models_text(*answer, request.model.has_value(), output.columns);
  return 0;
}

}  // namespace shardwise
