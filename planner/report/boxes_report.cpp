#include "planner/report/boxes_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "planner/figures.hpp"
#include "planner/report/outlook_report.hpp"
#include "planner/report/output.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/table.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

const std::string& box_name(const BoxesAnswer& a, const BoxRow& row) {
  return a.requests[row.box].clusters.front().spoken;
}

// How long all that is asked about takes on the box. REQUIRES a row that fits.
Seconds time_in_all(const BoxesAnswer& a, const BoxRow& row) {
  return Seconds(a.requests[row.box].tokens_in_all() / row.chosen->forecast.tokens_per_s);
}

// REQUIRES a row that fits.
std::optional<UsDollars> rent_in_all(const BoxesAnswer& a, const BoxRow& row) {
  if (!row.rental) return std::nullopt;
  return for_hours(row.rental->per_hour, time_in_all(a, row));
}

std::vector<std::string> box_cells(const BoxesAnswer& a, const BoxRow& row) {
  std::vector<std::string> cells{std::string(name(row.method)), box_name(a, row)};
  if (!row.chosen) return {cells[0], cells[1], "cannot run", "-", "-", "-", "-", "-"};
  const Forecast& f = row.chosen->forecast;
  cells.emplace_back(verdict_in_words(row.chosen->verdict));
  cells.push_back(
      sentence(shown_gib_number(f.worst().needed), " of ", shown_gib(f.worst().capacity)));
  if (!row.fits()) {
    cells.insert(cells.end(), {"-", "-", "-", whole_text(row.chosen->question.plan)});
    return cells;
  }
  const auto rent = rent_in_all(a, row);
  cells.insert(cells.end(),
               {shown_rate(f.tokens_per_s), shown_time(time_in_all(a, row)),
                rent ? shown_dollars(*rent) : "-", whole_text(row.chosen->question.plan)});
  return cells;
}

// Of one method: the box that is done first and, of several that are rented out, the one that costs
// least to rent.
std::string best_boxes(const BoxesAnswer& a, Method method) {
  const BoxRow *fastest = nullptr, *next = nullptr, *cheapest = nullptr;
  int fitting = 0, rented = 0;
  for (const BoxRow& row : a.rows) {
    if (row.method != method || !row.fits()) continue;
    ++fitting;
    if (fastest == nullptr || time_in_all(a, row) < time_in_all(a, *fastest)) {
      next = fastest;
      fastest = &row;
    } else if (next == nullptr || time_in_all(a, row) < time_in_all(a, *next)) {
      next = &row;
    }
    rented += row.rental ? 1 : 0;
    if (row.rental &&
        (cheapest == nullptr || rent_in_all(a, row)->value < rent_in_all(a, *cheapest)->value))
      cheapest = &row;
  }
  const std::string method_is = sentence("  ", name(method), ": ");
  if (fitting == 0) return method_is + "none of them\n";
  if (fitting == 1) return sentence(method_is, box_name(a, *fastest), " alone\n");
  const auto shown_rent = [&](const BoxRow& row) {
    const auto rent = rent_in_all(a, row);
    return rent ? shown_dollars(*rent) : "";
  };
  const bool alike = cheapest != nullptr && shown_rent(*cheapest) == shown_rent(*fastest);
  const std::string times = fixed(time_in_all(a, *next) / time_in_all(a, *fastest), 2);
  return sentence(method_is, box_name(a, *fastest), " is ",
                  times == "1.00" ? "" : "the fastest, " + times + " times ", "as fast as ",
                  box_name(a, *next),
                  rented < 2            ? std::string()
                  : cheapest == fastest ? std::string(", and the cheapest to rent")
                  : alike               ? std::string(", and costs no more to rent")
                          : sentence("; ", box_name(a, *cheapest), " is the cheapest to rent"),
                  "\n");
}

std::vector<std::string> notes_of_boxes(const BoxesAnswer& a) {
  std::vector<std::string> notes;
  const auto add = [&](const std::string& note) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  };
  bool alone = false, several = false;
  for (const ResolvedRequest& r : a.requests) {
    (r.gpus() == 1 ? alone : several) = true;
    for (const std::string& note : r.notes)
      if (note != framework_follows_gpus_note) add(note);
    if (r.clusters.size() > 1)
      add(sentence(r.clusters.front().spoken, " is taken as ",
                   r.clusters.front().groups.front().gpu.name, ", the first of ", r.clusters.size(),
                   " such cards."));
  }
  if (alone && several &&
      framework_follows_gpus(a.requests.front().asked, a.requests.front().methods))
    add("A box of one GPU is forecast in the framework that is usual on several, unlike in fit: "
        "rows differ in the GPUs alone.");
  for (const BoxRow& row : a.rows)
    if (!row.chosen)
      add(sentence(name(row.method), " on ", box_name(a, row), " cannot run: ", row.problem, '.'));
  return notes;
}

Json box_json(const BoxesAnswer& a, const BoxRow& row) {
  Json j = {{"gpus", box_name(a, row)}, {"method", name(row.method)}};
  if (!row.chosen) {
    j["problem"] = row.problem;
    return j;
  }
  const Forecast& f = row.chosen->forecast;
  j["gpu"] = f.worst().gpu;
  j["verdict"] = verdict_name(row.chosen->verdict);
  j["plan"] = whole_text(row.chosen->question.plan);
  j["framework"] = row.chosen->question.workload.framework.id;
  j["step_time_s"] = step_time_json(f.step_time);
  j["tokens_per_s"] = json_number(f.tokens_per_s);
  j["peak_memory_gib"] = memory_json(f.worst().peak);
  j["capacity_gib"] = json_gib(f.worst().capacity);
  j["margin_gib"] = json_gib(f.margin);
  if (!row.fits()) return j;
  j["time_s"] = json_number(time_in_all(a, row).value);
  if (row.rental) {
    j["usd_per_hour"] = json_number(row.rental->per_hour.value);
    j["usd_rent"] = json_number(rent_in_all(a, row)->value);
  }
  return j;
}

}  // namespace

std::string told_amount(const ResolvedRequest& r) {
  return r.asked.tokens
             ? counted(*r.asked.tokens, "token")
             : counted(r.asked.samples.value_or(ResolvedRequest::usual_samples), "sample");
}

// "16 sequences", "16 to 18 sequences": of a step.
static std::string shown_batches(const BoxesAnswer& a) {
  int least = a.requests.front().batch, most = least;
  for (const BoxRow& row : a.rows) {
    if (!row.chosen) continue;
    least = std::min(least, row.chosen->question.plan.global_batch());
    most = std::max(most, row.chosen->question.plan.global_batch());
  }
  return sentence(least == most ? std::string() : sentence(least, " to "),
                  shown_samples(most, a.requests.front().asked.preference));
}

std::string boxes_text(const BoxesAnswer& a, std::optional<int> columns) {
  const ResolvedRequest& first = a.requests.front();
  const std::string amount = told_amount(first);
  Table t{{"method", "gpus", "verdict", "memory per GPU", "tokens/s", "time for " + amount,
           "rent for it", "plan"},
          {}};
  for (const BoxRow& row : a.rows) t.rows.push_back(box_cells(a, row));
  std::string text = sentence(first.model.id, ", ", grouped(first.sequence),
                              " tokens per sequence, ", shown_batches(a), " per step, on ",
                              a.requests.size(), " boxes\n", shown_table(t, "  ", columns));
  for (const Method method : first.methods) text += best_boxes(a, method);
  for (const std::string& note : notes_of_boxes(a)) text += sentence("  note: ", note, "\n");
  return text;
}

Json boxes_json(const Request& request, const BoxesAnswer& a) {
  Json rows = Json::array();
  std::vector<Json> filled;
  for (const BoxRow& row : a.rows) {
    rows.push_back(box_json(a, row));
    if (row.chosen)
      filled.push_back(filled_json(a.requests[row.box], row.chosen->question.workload,
                                   &row.chosen->question.plan));
  }
  if (filled.empty()) filled.push_back(asked_json(request));
  for (Json& one : filled) one.erase("gpus");
  return {{"schema_version", schema_version},
          {"command", "compare"},
          {"request", echo_json(request, filled)},
          {"model", a.requests.front().model.id},
          {"boxes", rows},
          {"notes", notes_of_boxes(a)}};
}

}  // namespace shardwise
