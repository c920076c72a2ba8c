#include "planner/commands/validate.hpp"
#include "planner/figures.hpp"
#include "planner/progress_line.hpp"
#include "planner/report/output.hpp"
#include "planner/sentence.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "catalog/framework_names.hpp"
#include "catalog/names.hpp"
#include "catalog/whole_file.hpp"
#include "planner/report/html_report.hpp"
#include "planner/report/validation_json.hpp"
#include "planner/request/calibrated_facts.hpp"
#include "planner/validation/left_out.hpp"
#include "planner/validation/memory_comparison.hpp"
#include "planner/validation/report.hpp"
#include "planner/validation/residuals.hpp"

namespace shardwise {
namespace {

template <class T>
Json number_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json step_json(const ReplayedRun& r) {
  const auto measured = measured_step(*r.run);
  Json j{{"measured", measured ? Json(measured->value) : Json(nullptr)}};
  if (r.step_time) {
    j["predicted"] = r.step_time->expected.value;
    j["low"] = r.step_time->low.value;
    j["high"] = r.step_time->high.value;
    for (std::size_t b = 0; r.bound && b < bound_names.size(); ++b)
      j["waits_for"][std::string(bound_names[b])] = r.bound->parts[b].value;
  }
  return j;
}

Json memory_json(const ReplayedRun& r) {
  Json j{{"measured", number_or_null(measured_memory_gib(*r.run))}};
  if (r.memory_gib) {
    j["predicted"] = r.memory_gib->expected;
    j["low"] = r.memory_gib->low;
    j["high"] = r.memory_gib->high;
    j["kind"] = spelling(memory_kind_names, r.memory_kind);
    j["stage"] = stage_json(*r.memory_stage);
    if (!r.run->measured.after_forward_gib.empty())
      j["after_forward_gib"] = breakdown_json(r.memory_stage->after_forward);
  }
  return j;
}

Json outcome_json(const ReplayedRun& r) {
  const std::string& measured = r.run->measured.outcome;
  Json j{{"measured", measured.empty() ? Json(nullptr) : Json(measured)}};
  if (r.outcome) j["predicted"] = name(*r.outcome);
  return j;
}

Json record_json(const ReplayedRun& r) {
  Json j{{"id", r.run->id},
         {"step_time_s", step_json(r)},
         {"peak_mem_gib", memory_json(r)},
         {"outcome", outcome_json(r)}};
  if (r.shape.experts > 0) j["experts"] = r.shape.experts;
  if (r.skipped)
    j["skipped"] = r.skipped->detail.empty() ? r.skipped->reason
                                             : r.skipped->reason + ": " + r.skipped->detail;
  return j;
}

Json spread_rows_json(const std::vector<SpreadRow>& rows) {
  Json out = Json::array();
  for (const SpreadRow& row : rows) {
    Json j = Json::object();
    if (row.extent) j["extent"] = spelling(extent_names, *row.extent);
    if (row.tensor) j["tensor"] = *row.tensor;
    if (row.tuning) j["tuning"] = spelling(tuning_names, *row.tuning);
    if (row.stages) j["stages"] = *row.stages;
    if (row.framework) j["framework"] = *row.framework;
    j["low"] = row.low;
    j["high"] = row.high;
    j["runs"] = row.runs;
    j["sources"] = row.sources;
    out.push_back(std::move(j));
  }
  return out;
}

Json spread_json(const std::vector<ReplayedRun>& replayed) {
  return {{"step_time", spread_rows_json(fit_step_spread(step_samples(replayed)))},
          {"memory", spread_rows_json(fit_memory_spread(memory_samples(replayed)))},
          {"source",
           "fitted: quantiles of measured / forecast over catalog/runs, by shardwise validate "
           "--fit-spread"},
          {"date", today()}};
}

// Records, none of which is one: the file is of something else.
bool all_malformed(const std::vector<RunRecord>& records) {
  return !records.empty() && std::all_of(records.begin(), records.end(),
                                         [](const RunRecord& r) { return r.malformed; });
}

// The files' records in order. A file that cannot be read at all is told, and the others are
// answered; where there is no other, that is the answer. A file without a record that can be read
// counts as one that was not, though each of its lines has its answer.
Result<Runs> runs_of(const ValidateOptions& options, const std::filesystem::path& root,
                     bool& all_read) {
  if (options.files.empty()) return load_all_runs(root);
  Runs all;
  std::size_t read = 0;
  all_read = true;
  for (const std::string& file : options.files) {
    auto runs = load_runs(file);
    if (!runs) {
      add_problems(all.problems, runs.error());
      all_read = false;
      continue;
    }
    ++read;
    if (all_malformed(runs->records)) all_read = false;
    std::move(runs->records.begin(), runs->records.end(), std::back_inserter(all.records));
    all.problems.insert(all.problems.end(), runs->problems.begin(), runs->problems.end());
  }
  if (read == 0) return all.problems;
  return all;
}

// A slip in a file of the user's own changes what is forecast, so that it is told unasked; "" where
// all was understood.
std::string told_of_unread(const std::vector<ReplayedRun>& replayed) {
  std::int64_t members = 0;
  std::string first;
  for (const ReplayedRun& r : replayed) {
    if (members == 0 && !r.run->unread.empty())
      first = sentence(r.run->id, ": ", r.run->unread.front());
    members += std::ssize(r.run->unread);
  }
  if (members == 0) return "";
  return sentence("\nnot understood  ", counted(members, "member"), " of these records, such as ",
                  first, "; --notes has all\n");
}

int print(const std::vector<ReplayedRun>& replayed, const ValidateOptions& options, ScoreBy by,
          std::ostream& out) {
  if (options.json)
    for (const ReplayedRun& r : replayed)
      out << record_json(r).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  else if (options.ranking)
    out << ranking_report(score(replayed, by));
  else
    out << validation_report(score(replayed, by), options.by)
        << category_report(compare_categories(replayed));
  if (options.notes && !options.json)
    out << "\n" << validation_notes(replayed);
  else if (!options.json && !options.files.empty())
    out << told_of_unread(replayed);
  const bool bug =
      std::any_of(replayed.begin(), replayed.end(), [](const ReplayedRun& r) { return r.bug; });
  return bug ? 70 : 0;
}

}  // namespace

void add_validate_flags(CLI::App& command, ValidateOptions& options) {
  command.add_option("files", options.files, "files of published runs (default: the catalog's)")
      ->type_name("FILE");
  command.add_flag("--json", options.json, "one JSON line per record, in order");
  command.add_flag("--notes", options.notes,
                   "also what was assumed, and why each skipped record was skipped");
  command.add_flag("--ranking", options.ranking,
                   "how well plans are ranked: every group of runs that differ in plan only");
  command.add_flag("--left-out", options.left_out,
                   "constants that rest on training runs, fitted again without each source: how "
                   "its error and the others' change");
  command
      .add_option("--by", options.by,
                  "rows of the table: source, framework, gpu, method, recompute, precision, "
                  "sequence, microbatch, tensor, pipeline, data, expert, nodes, size, bound")
      ->capture_default_str();
  command
      .add_option("--fit-spread", options.fit_spread,
                  "write the 80 % intervals, fitted on these runs, in the form of "
                  "catalog/profiles/spread.json")
      ->type_name("FILE");
  command
      .add_option("--residuals", options.residuals,
                  "write the error by every dimension and source, separated by tabs, for plotting")
      ->type_name("FILE");
  command
      .add_option("--threads", options.threads,
                  "threads that replay records (0: as many as the machine has)")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
}

namespace {

std::vector<ReplayedRun> replayed_runs(const std::vector<RunRecord>& records,
                                       const ValidationInputs& inputs, int threads,
                                       std::ostream* terminal) {
  ProgressLine progress(terminal);
  return replay_runs(records, inputs, threads, [&](std::size_t done) {
    progress.tell([&](Seconds taken) {
      return sentence(
          "validate: ", done, " of ", records.size(), " records, ",
          shown_rest(taken, static_cast<double>(done), static_cast<double>(records.size())));
    });
  });
}

}  // namespace

int validate(const ValidateOptions& options, const std::filesystem::path& root, std::ostream& out,
             std::ostream& err, std::ostream* progress) {
  const Output output{out, err};
  const auto by = score_by_named(options.by);
  if (!by)
    return report_problems(
        {{ProblemKind::request, "--by", options.by + " is none of " + joined(score_by_names())}},
        output);
  Problems unwritten_yet;
  for (const std::string& path : {options.fit_spread, options.residuals, options.report})
    if (!path.empty()) add_problems(unwritten_yet, unwritable(path));
  if (!unwritten_yet.empty()) return report_problems(unwritten_yet, output);
  auto catalog = load_catalog(root);
  if (!catalog) return report_problems(catalog.error(), output);
  const auto reading = load_reading(root);
  if (!reading) return report_problems(reading.error(), output);
  const auto profile = calibrated_profile(*catalog);
  if (!profile) return report_problems(profile.error(), output);
  bool all_read = true;
  auto runs = runs_of(options, root, all_read);
  if (!runs) return report_problems(runs.error(), output);
  date_by_sources(*reading, runs->records);
  report_problems(runs->problems, output);
  if (options.left_out) {
    out << left_out_report(
        left_out_fits(runs->records, {*catalog, *reading, *profile}, options.threads));
    return 0;
  }
  const auto replayed =
      replayed_runs(runs->records, {*catalog, *reading, *profile}, options.threads, progress);
  if (!options.fit_spread.empty()) {
    const Problems unwritten = write_whole_file(options.fit_spread, [&](std::ostream& file) {
      file << spread_json(replayed).dump(2) << "\n";
    });
    if (!unwritten.empty()) return report_problems(unwritten, output);
  }
  if (!options.residuals.empty()) {
    const Problems unwritten = write_whole_file(options.residuals, [&](std::ostream& file) {
      file << residual_lines(residuals(replayed));
    });
    if (!unwritten.empty()) return report_problems(unwritten, output);
  }
  if (!options.report.empty()) {
    const Json answer = validation_json(replayed, score(replayed, *by), options.by);
    const Problems unwritten = write_report(options.report, answer);
    if (!unwritten.empty()) return report_problems(unwritten, output);
  }
  const int printed = print(replayed, options, *by, out);
  return printed == 0 && !all_read ? 4 : printed;
}

}  // namespace shardwise
