#include "planner/commands/calibrate.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibrate/import_log.hpp"
#include "calibrate/median.hpp"
#include "calibrate/size_fit.hpp"
#include "catalog/catalog_root.hpp"
#include "planner/report/calibration_text.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::string_view measuring_program = "shardwise-calibrate";

Json measurement_json(const Measurement& m) {
  return {{"bench", m.bench},       {"sizes", m.sizes},         {"labels", m.labels},
          {"quantity", m.quantity}, {"value", m.value},         {"spread", m.spread},
          {"samples", m.samples},   {"discarded", m.discarded}, {"source", m.source}};
}

Json log_json(const ImportedLog& log) {
  Json measurements = Json::array(), unread = Json::array();
  for (const Measurement& m : log.measurements) measurements.push_back(measurement_json(m));
  for (const UnreadLine& u : log.unread)
    unread.push_back({{"line", u.line}, {"text", u.text}, {"why", u.why}});
  return {{"file", log.file},
          {"format", log.format},
          {"lines", log.lines},
          {"facts", log.facts},
          {"measurements", std::move(measurements)},
          {"unread", std::move(unread)}};
}

Json fit_json(const Sweep& sweep, const SizeFit& fit) {
  Json regimes = Json::array();
  for (const Regime& r : fit.regimes) {
    Json j{{"from_bytes", r.from.value},
           {"to_bytes", r.to.value},
           {"alpha_us", r.alpha.value * 1e6},
           {"points", r.points}};
    if (const auto rate = r.bandwidth()) j["gb_per_s"] = rate->value / 1e9;
    regimes.push_back(std::move(j));
  }
  Json j{{"bench", sweep.bench},
         {"sizes", sweep.sizes},
         {"labels", sweep.labels},
         {"points", sweep.points.size()},
         {"discarded", sweep.discarded},
         {"regimes", std::move(regimes)},
         {"low", fit.low},
         {"high", fit.high}};
  std::vector<double> errors;
  for (const LeftOut& left : leave_one_size_out(sweep)) errors.push_back(left.error());
  if (!errors.empty()) j["leave_one_size_out_error"] = median(errors);
  return j;
}

// Beside this program, else on the path; empty where it is nowhere.
std::filesystem::path find_measuring_program() {
  std::error_code error;
  std::vector<std::filesystem::path> folders{
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path()};
  if (const char* path = std::getenv("PATH")) {
    const std::string all(path);
    for (std::size_t at = 0; at <= all.size();) {
      const std::size_t end = std::min(all.find(':', at), all.size());
      if (end > at) folders.emplace_back(all.substr(at, end - at));
      at = end + 1;
    }
  }
  for (const auto& folder : folders)
    if (access((folder / measuring_program).c_str(), X_OK) == 0) return folder / measuring_program;
  return {};
}

// Does not return where the program runs.
int measure(const CalibrateOptions& options, const Output& output) {
  const std::filesystem::path program = find_measuring_program();
  if (!program.empty()) {
    std::vector<std::string> words{program.string()};
    for (const std::string& word : options.app->remaining()) words.push_back(word);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(program.c_str(), arguments.data());
  }
  return report_problems(
      {{ProblemKind::file, "calibrate",
        sentence("cannot measure GPUs here: ", measuring_program,
                 program.empty() ? " was not built (it needs a CUDA toolkit 12 or 13: install one "
                                   "and build again)"
                                 : " does not start",
                 "; logs of other tools need no GPU: shardwise calibrate import FILE... (",
                 known_log_formats(), ")")}},
      output);
}

int import_logs(const CalibrateOptions& options, const Output& output) {
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), output);
  const auto classes = load_kernel_classes(*root);
  if (!classes) return report_problems(classes.error(), output);
  std::vector<ImportedLog> logs;
  std::vector<Measurement> all;
  Problems problems;
  for (const std::string& file : options.files) {
    auto log = import_file(file, *classes);
    if (!log) {
      problems.insert(problems.end(), log.error().begin(), log.error().end());
      continue;
    }
    all.insert(all.end(), log->measurements.begin(), log->measurements.end());
    if (log->measurements.empty())
      problems.push_back({ProblemKind::file, file,
                          log->unread.empty() ? "holds no measurement" : log->unread.front().why});
    logs.push_back(*std::move(log));
  }
  const std::vector<Sweep> sweeps = sweeps_of(all);
  if (options.json) {
    Json files = Json::array(), fits = Json::array();
    for (const ImportedLog& log : logs) files.push_back(log_json(log));
    for (const Sweep& s : sweeps) fits.push_back(fit_json(s, fit_sizes(s.points)));
    const Json document{{"schema_version", schema_version}, {"files", files}, {"fits", fits}};
    output.out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    for (const ImportedLog& log : logs) output.out << import_text(log);
    if (options.fits)
      for (const Sweep& s : sweeps) output.out << sweep_text(s, fit_sizes(s.points));
    if (options.check) output.out << left_out_text(sweeps);
  }
  return problems.empty() ? 0 : report_problems(problems, output);
}

}  // namespace

void add_calibrate_flags(CLI::App& command, CalibrateOptions& options) {
  options.app = &command;
  command.allow_extras();
  options.import_app = command.add_subcommand("import", "read logs: " + known_log_formats());
  CLI::App& import = *options.import_app;
  import.add_option("FILE", options.files, "logs, traces and tables, any number")->required();
  import.add_flag("--fits", options.fits, "measured against fitted, size by size");
  import.add_flag("--check", options.check,
                  "the error at every size when it is left out of the fit");
  import.add_flag("--json", options.json, "one JSON document on standard output");
}

int calibrate(const CalibrateOptions& options, const Output& output) {
  if (*options.import_app) return import_logs(options, output);
  return measure(options, output);
}

}  // namespace shardwise
