#include "planner/commands/sweep.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "catalog/catalog_root.hpp"
#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/expected_name.hpp"
#include "planner/report/html_report.hpp"
#include "planner/sentence.hpp"
#include "planner/sweep/announced_ranks.hpp"
#include "planner/sweep/sweep_report.hpp"

namespace shardwise {
namespace {

constexpr int our_bug = 70;
constexpr const char* program_for_ranks = "shardwise-sweep-mpi";

void add_answer_flags(CLI::App& command, SweepOptions& options) {
  const std::string names = joined(names_in(sweep_measures()));
  command.add_option("--by", options.by, "what to rank by: " + names + " (tokens)")
      ->type_name("NAME");
  command.add_option("--top", options.top, "rows of each group to print (10)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  command.add_flag("--json", options.json, "one JSON document on standard output");
  command.add_option("--report", options.report, "write the answer as a self-contained web page")
      ->type_name("FILE.html");
}

std::vector<std::string> words_of(const SweepOptions& o) {
  std::vector<std::string> words{o.task.study_file,    "--out", o.task.out, "--by", o.by, "--top",
                                 std::to_string(o.top)};
  if (o.task.resume) words.emplace_back("--resume");
  if (o.json) words.emplace_back("--json");
  if (o.task.threads) {
    words.emplace_back("--threads");
    words.push_back(std::to_string(*o.task.threads));
  }
  if (!o.report.empty()) {
    words.emplace_back("--report");
    words.push_back(o.report);
  }
  return words;
}

// Returns only where the program cannot be run.
int become_a_rank(const SweepOptions& options, const Output& output) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (self.parent_path() / program_for_ranks).string();
  std::vector<std::string> words = words_of(options);
  std::vector<char*> arguments{program.data()};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  output.out.flush();
  execv(program.c_str(), arguments.data());
  return report_problems(
      {{ProblemKind::file, program,
        "is not there, and a sweep under mpirun or srun needs it; it is built where Open MPI is "
        "found (Debian: libopenmpi-dev openmpi-bin)"}},
      output);
}

bool has_failed(const SweepRow& row) { return text_in(row, "verdict") == sweep_failed; }

// Line by line: a sweep may have a million rows.
int print_csv(const SweepStore& store, const Output& output) {
  bool failed = false;
  output.out << sweep_csv_head();
  const Problems problems = store.for_each([&](const SweepRow& row) {
    failed = failed || has_failed(row);
    output.out << sweep_csv_line(row);
  });
  if (!problems.empty()) return report_problems(problems, output);
  return failed ? our_bug : 0;
}

int sweep_on_this_machine(const SweepOptions& options, const Output& output) {
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), output);
  const auto study = open_study(options.task.study_file);
  if (!study) return report_problems(study.error(), output);
  const auto facts = PointFacts::load(*root);
  if (!facts) return report_problems(facts.error(), output);
  {
    std::ostream nobody(nullptr);
    auto desk = SweepDesk::open(options.task, *study, facts_fingerprint(*root, study->study),
                                **facts, output.progress ? *output.progress : nobody);
    if (!desk) return report_problems(desk.error(), output);
    const int threads = options.task.threads.value_or(fair_threads({own_cores()}, 0));
    const Problems problems = sweep_here(*desk, study->study, **facts, threads);
    if (!problems.empty()) return report_problems(problems, output);
    output.err << desk->summary()
               << sentence("sweep: its answers are kept in ", options.task.out, '\n');
  }
  return show_sweep(options, options.task.out, output);
}

}  // namespace

void add_sweep_flags(CLI::App& command, SweepOptions& options) {
  command.add_option("STUDY", options.task.study_file, "a study: JSON, see docs/sweep.md");
  command.add_option("--out", options.task.out, "the SQLite file (STUDY's name with .sqlite)")
      ->type_name("FILE");
  command.add_flag("--resume", options.task.resume,
                   "go on with the file; begin it where there is none");
  command
      .add_option("--threads", options.task.threads,
                  "threads of each process that answer points (default: one per core)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  add_answer_flags(command, options);
}

CLI::App* add_sweep(CLI::App& program, SweepOptions& options) {
  CLI::App* command = program.add_subcommand(
      "sweep", "many models, clusters and settings at once, stored as they are answered");
  add_sweep_flags(*command, options);
  CLI::App* report = command->add_subcommand("report", "what a sweep came to, also while it runs");
  report->add_option("FILE", options.file, "the SQLite file of a sweep")->required();
  add_answer_flags(*report, options);
  report->add_flag("--csv", options.csv, "the rows as CSV on standard output");
  return command;
}

Problems complete(SweepOptions& options) {
  if (sweep_measure(options.by) == nullptr) {
    const std::vector<std::string_view> names = names_in(sweep_measures());
    return {{ProblemKind::request, "--by",
             expected_one_of(names, options.by, did_you_mean(options.by, names))}};
  }
  if (options.json && options.csv)
    return {{ProblemKind::request, "--csv", "and --json exclude one another"}};
  if (!options.file.empty()) return {};
  if (options.task.study_file.empty())
    return {{ProblemKind::request, "STUDY",
             "is missing; expected a study file, or report and the file of a sweep"}};
  if (options.task.out.empty())
    options.task.out = std::filesystem::path(options.task.study_file).stem().string() + ".sqlite";
  return {};
}

int show_sweep(const SweepOptions& options, const std::string& file, const Output& output) {
  const auto store = SweepStore::read(file);
  if (!store) return report_problems(store.error(), output);
  if (options.csv) return print_csv(*store, output);
  const auto rows = store->rows();
  if (!rows) return report_problems(rows.error(), output);
  const SweepReport report{store->header(), *rows, sweep_measure(options.by), options.top};
  if (!options.report.empty()) {
    const Problems problems = write_report(options.report, sweep_json(report));
    if (!problems.empty()) return report_problems(problems, output);
  }
  if (options.json)
    output.out << sweep_json(report).dump(2) << '\n';
  else
    output.out << sweep_text(report, output.columns);
  return std::any_of(rows->begin(), rows->end(), has_failed) ? our_bug : 0;
}

int sweep(const SweepOptions& asked, const Output& output) {
  SweepOptions options = asked;
  if (const Problems problems = complete(options); !problems.empty())
    return report_problems(problems, output);
  if (!options.file.empty()) return show_sweep(options, options.file, output);
  if (ranks_announced() > 1) return become_a_rank(options, output);
  return sweep_on_this_machine(options, output);
}

}  // namespace shardwise
