#include "planner/commands/calibrate.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "calibrate/import_log.hpp"
#include "calibrate/median.hpp"
#include "calibrate/size_fit.hpp"
#include "catalog/catalog_root.hpp"
#include "catalog/device_profile.hpp"
#include "catalog/find.hpp"
#include "catalog/json_document.hpp"
#include "catalog/load.hpp"
#include "catalog/names.hpp"
#include "catalog/reading.hpp"
#include "catalog/whole_file.hpp"
#include "planner/commands/calibrate_profile.hpp"
#include "planner/report/calibration_difference.hpp"
#include "planner/report/calibration_rates.hpp"
#include "planner/report/calibration_text.hpp"
#include "planner/report/html_report.hpp"
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
  Json measured = Json::array();
  for (const SweepPoint& p : sweep.points)
    measured.push_back({{"bytes", p.bytes.value},
                        {"time_s", p.time.value},
                        {"fitted_s", fit.time(p.bytes).value}});
  Json j{{"name", sweep.name()},
         {"bench", sweep.bench},
         {"sizes", sweep.sizes},
         {"labels", sweep.labels},
         {"points", sweep.points.size()},
         {"discarded", sweep.discarded},
         {"regimes", std::move(regimes)},
         {"measured", std::move(measured)},
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

// Who typed "imprt" meant an inner command, not an argument of the measuring program.
std::optional<Problem> unknown_word(const CalibrateOptions& options) {
  for (const std::string& word : options.app->remaining()) {
    if (word.starts_with('-')) return std::nullopt;
    const bool file = word.find_first_of("./") != std::string::npos;
    const std::string hint =
        file ? sentence("a log is read by shardwise calibrate import ", printable(word))
             : did_you_mean(word, {"import", "diff"});
    return Problem{ProblemKind::request, "calibrate",
                   sentence("unknown word \"", printable(word), "\"; expected import, diff or none",
                            hint.empty() ? "" : "; ", hint)};
  }
  return std::nullopt;
}

struct Imported {
  std::vector<ImportedLog> logs;
  std::vector<Measurement> measurements;
  Problems problems;
};

// What is not understood of a log whose format is known is told line by line with the answer.
std::string why_empty(const ImportedLog& log) {
  if (log.format.empty()) return log.unread.front().why;
  return sentence("holds no measurement", log.unread.empty() ? "" : " that is understood");
}

Imported import_all(const std::vector<std::string>& files,
                    const std::vector<KernelClass>& classes) {
  Imported all;
  for (const std::string& file : files) {
    auto log = import_file(file, classes);
    if (!log) {
      add_problems(all.problems, log.error());
      continue;
    }
    all.measurements.insert(all.measurements.end(), log->measurements.begin(),
                            log->measurements.end());
    if (log->measurements.empty())
      all.problems.push_back({ProblemKind::file, file, why_empty(*log)});
    all.logs.push_back(*std::move(log));
  }
  return all;
}

Json import_json(const Imported& all, const std::vector<Sweep>& sweeps,
                 const std::optional<ProfileFit>& fit) {
  Json files = Json::array(), fits = Json::array();
  for (const ImportedLog& log : all.logs) files.push_back(log_json(log));
  for (const Sweep& s : sweeps) fits.push_back(fit_json(s, fit_sizes(s.points)));
  Json document{{"schema_version", schema_version},
                {"command", "calibrate import"},
                {"files", files},
                {"fits", fits}};
  if (fit) document["profile"] = device_profile_json(fit->profile);
  if (fit) document["notes"] = fit->notes;
  return document;
}

void print_text(const Imported& all, const std::vector<Sweep>& sweeps,
                const std::optional<ProfileFit>& fit, const CalibrateOptions& options,
                std::ostream& out) {
  for (const ImportedLog& log : all.logs)
    if (!log.format.empty()) out << import_text(log);  // else it is a problem, told as one
  if (options.fits)
    for (const Sweep& s : sweeps) out << sweep_text(s, fit_sizes(s.points));
  if (options.check && !sweeps.empty()) out << left_out_text(sweeps);
  if ((options.fits || options.check) && sweeps.empty() && !all.measurements.empty())
    out << "  no sweep over sizes (collectives, copies) is among them, so --fits and --check have "
           "nothing to show; --out fits the rest\n";
  if (!options.fits && !options.check && options.out.empty() && !all.measurements.empty())
    out << "  read and not kept: --fits shows what they say, --out FILE writes a profile for "
           "--profile\n";
  if (!fit) return;
  out << "profile " << fit->profile.name << " of " << fit->profile.gpu << ", written to "
      << options.out << "\n"
      << constants_text(fit->profile);
  for (const std::string& note : fit->notes) out << "  " << note << "\n";
}

// As CLI11 has it: why the text is no day, or nothing.
std::string no_day(const std::string& text) {
  std::tm day{};
  std::istringstream in(text);
  in >> std::get_time(&day, "%Y-%m-%d");
  const std::chrono::year_month_day date{std::chrono::year{day.tm_year + 1900},
                                         std::chrono::month(static_cast<unsigned>(day.tm_mon + 1)),
                                         std::chrono::day(static_cast<unsigned>(day.tm_mday))};
  const bool whole =
      text.size() == 10 && !in.fail() && in.peek() == std::istringstream::traits_type::eof();
  if (whole && date.ok()) return "";
  return sentence("expected a day as YYYY-MM-DD, found \"", printable(text), '"');
}

ProfileRequest profile_request(const CalibrateOptions& options) {
  ProfileRequest request;
  request.name = std::filesystem::path(options.out).stem().string();
  request.gpu = options.gpu;
  request.only = options.only;
  if (!options.peer_access.empty())
    request.peer_over_pcie = options.peer_access == "yes" ? PeerAccess::yes : PeerAccess::no;
  request.published = !options.source.empty();
  std::vector<std::string> files;
  for (const std::string& file : options.files)
    files.push_back(std::filesystem::path(file).filename().string());
  request.source = request.published ? options.source : joined(files);
  request.date = options.date.empty() ? today() : options.date;
  return request;
}

// Fits and writes the profile that --out asks for.
Result<ProfileFit> write_profile(const Imported& all, const CalibrateOptions& options,
                                 const std::filesystem::path& root) {
  const auto catalog = load_catalog(root);
  if (!catalog) return catalog.error();
  const auto reading = load_reading(root);
  if (!reading) return reading.error();
  std::map<std::string, std::string> facts;
  for (const ImportedLog& log : all.logs) facts.insert(log.facts.begin(), log.facts.end());
  auto fit =
      fit_device_profile(all.measurements, facts, profile_request(options), *catalog, *reading);
  if (!fit) return fit;
  const Problems unwritten = write_whole_file(options.out, [&](std::ostream& file) {
    file << device_profile_json(fit->profile).dump(2, ' ', false, Json::error_handler_t::replace)
         << "\n";
  });
  if (!unwritten.empty()) return unwritten;
  return fit;
}

int import_logs(const CalibrateOptions& options, const Output& output) {
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), output);
  const auto classes = load_kernel_classes(*root);
  if (!classes) return report_problems(classes.error(), output);
  Imported all = import_all(options.files, *classes);
  const std::vector<Sweep> sweeps = sweeps_of(all.measurements);
  std::optional<ProfileFit> fit;
  if (!options.out.empty() && !all.measurements.empty()) {
    auto written = write_profile(all, options, *root);
    if (written)
      fit = *std::move(written);
    else
      add_problems(all.problems, written.error());
  }
  if (!options.report.empty()) {
    const Problems unwritten = write_report(options.report, import_json(all, sweeps, fit));
    all.problems.insert(all.problems.end(), unwritten.begin(), unwritten.end());
  }
  if (options.json)
    output.out << import_json(all, sweeps, fit).dump(2, ' ', false, Json::error_handler_t::replace)
               << "\n";
  else
    print_text(all, sweeps, fit, options, output.out);
  return all.problems.empty() ? 0 : report_problems(all.problems, output);
}

// Of different GPUs: each rate beside its own datasheet's, which says more than their times do.
Problems add_rates(const DeviceProfile& a, const DeviceProfile& b,
                   const std::filesystem::path& root, Json& document, std::string& text) {
  auto known = load_gpus(root);
  if (!known) return known.error();
  Catalog catalog;
  catalog.gpus = *std::move(known);
  const auto calibration = load_profile((root / "profiles" / "published.json").string());
  if (!calibration) return calibration.error();
  std::vector<const Gpu*> gpus;
  for (const DeviceProfile* p : {&a, &b}) {
    const auto gpu = find_gpu(catalog, p->gpu);
    if (!gpu) return {{ProblemKind::file, p->name + ":/device", gpu.error().front().what}};
    gpus.push_back(*gpu);
  }
  const ProfiledGpu first{a, *gpus[0]}, second{b, *gpus[1]};
  const HostLinks& host = calibration->links.host;
  document["rates"] = device_rates_json(first, second, host);
  text = device_rates_text(first, second, host) + text;
  return {};
}

int diff_profiles(const CalibrateOptions& options, const Output& output) {
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), output);
  std::vector<DeviceProfile> profiles;
  Problems problems;
  for (const std::string& name : options.profiles) {
    auto profile = find_device_profile(*root, name, "PROFILE");
    if (profile)
      profiles.push_back(*std::move(profile));
    else
      add_problems(problems, profile.error());
  }
  if (!problems.empty()) return report_problems(problems, output);
  Json document = difference_json(profiles[0], profiles[1]);
  std::string text = difference_text(profiles[0], profiles[1]);
  if (profiles[0].gpu != profiles[1].gpu)
    if (const Problems unknown = add_rates(profiles[0], profiles[1], *root, document, text);
        !unknown.empty())
      return report_problems(unknown, output);
  if (options.json)
    output.out << document.dump(2) << "\n";
  else
    output.out << text;
  return 0;
}

}  // namespace

void add_calibrate_flags(CLI::App& command, CalibrateOptions& options) {
  options.app = &command;
  command.allow_extras();
  command.footer("Without a subcommand: measures the GPUs here, with the arguments of " +
                 std::string(measuring_program) + " (see its --help).");
  options.import_app = command.add_subcommand("import", "read logs: " + known_log_formats());
  CLI::App& import = *options.import_app;
  import.allow_extras(false);  // those are of the measuring program alone
  import.add_option("FILE", options.files, "logs, traces and tables, any number")->required();
  import.add_flag("--fits", options.fits, "measured against fitted, size by size");
  import.add_flag("--check", options.check, "the error at every size when it is left out of a fit");
  import.add_option("--out", options.out, "write a profile: one JSON file, for catalog/profiles")
      ->type_name("FILE");
  import.add_option("--gpu", options.gpu, "of the profile, where the logs do not name one alone");
  import.add_option("--only", options.only, "fit what has this text in a label or its source");
  import.add_option("--peer-access", options.peer_access, "yes or no: the machine's PCIe")
      ->check(CLI::IsMember({"yes", "no"}));
  import.add_option("--source", options.source, "who published the logs; absent: measured by you");
  import.add_option("--date", options.date, "of the measurement, YYYY-MM-DD (default: today)")
      ->check(CLI::Validator(no_day, "YYYY-MM-DD"));
  import.add_flag("--json", options.json, "one JSON document on standard output");
  import.add_option("--report", options.report, "write the fits as a self-contained web page")
      ->type_name("FILE.html");
  options.diff_app = command.add_subcommand("diff", "how two profiles differ");
  options.diff_app->allow_extras(false);
  options.diff_app->add_option("PROFILE", options.profiles, "files, or names in catalog/profiles")
      ->required()
      ->expected(2);
  options.diff_app->add_flag("--json", options.json, "one JSON document on standard output");
}

int calibrate(const CalibrateOptions& options, const Output& output) {
  if (*options.import_app) return import_logs(options, output);
  if (*options.diff_app) return diff_profiles(options, output);
  if (const auto problem = unknown_word(options)) return report_problems({*problem}, output);
  return measure(options, output);
}

}  // namespace shardwise
