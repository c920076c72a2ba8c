// shardwise: the command line. Parses, loads the facts a command needs, runs it, and turns whatever
// happens into one of the exit codes: 0 answered, 2 the request is wrong, 3 --require-fit and it
// does not fit, 4 a file fails, 70 our bug.
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog_root.hpp"
#include "catalog/result.hpp"
#include "planner/commands/calibrate.hpp"
#include "planner/commands/catalog.hpp"
#include "planner/commands/collectives.hpp"
#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/launch.hpp"
#include "planner/commands/misunderstood_words.hpp"
#include "planner/commands/models.hpp"
#include "planner/commands/plan.hpp"
#include "planner/commands/request_flags.hpp"
#include "planner/commands/serve.hpp"
#include "planner/commands/shell_pages.hpp"
#include "planner/commands/shop.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/commands/sweep.hpp"
#include "planner/commands/validate.hpp"
#include "planner/request/calibrated_facts.hpp"

namespace shardwise {
namespace {

constexpr int our_bug = 70;

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return 100;
}

// The exit code, once all is written.
int ended(int code) {
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "shardwise: standard output cannot be written\n";
  return static_cast<int>(ProblemKind::file);
}

void leave(int code) { std::_Exit(ended(code)); }

Output terminal(bool json) {
  const bool colour = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  Output output{std::cout, std::cerr, json, colour, terminal_width()};
  if (isatty(STDOUT_FILENO) == 1) output.columns = output.width;
  if (isatty(STDERR_FILENO) == 1) output.progress = &std::cerr;
  return output;
}

// Commands that ask the predictor: their flags state a request.
struct AskingCommand {
  CLI::App* app = nullptr;
  RequestWords words;
  ModelsAsked models = ModelsAsked::one;
  bool json = false;
  bool require_fit = false;
  std::string report;
};

struct Program : CLI::App {
  using CLI::App::App;
  std::string_view first_word;  // behind its name
};

void add_report_flag(CLI::App& command, std::string& report) {
  command.add_option("--report", report, "write the answer as a self-contained web page")
      ->type_name("FILE.html");
}

// Of the commands that judge plans.
void add_verdict_flags(AskingCommand& c, bool& require_fit) {
  c.app->add_flag("--require-fit", require_fit, "exit code 3 where nothing fits");
  add_report_flag(*c.app, c.report);
}

// What the words of all commands say: of those that ask the predictor, then of the others.
struct Commands {
  AskingCommand fit, simulate, compare, launch, plan, models, shop, collectives;
  SimulateOptions simulation;
  LaunchOptions launching;
  PlanOptions planning;
  CollectivesOptions talking;

  ServeOptions serving;
  CatalogQuestion question;
  bool catalog_json = false;
  CalibrateOptions calibration;
  SweepOptions sweeping;
  ValidateOptions validation;
  CLI::App *serve = nullptr, *catalog = nullptr, *sweep = nullptr;
};

// A command that asks: its flags beside a question's, and its answer.
struct AskingRow {
  const char *name, *help;
  AskingCommand Commands::*words;
  void (*add_flags)(const Program& app, Commands& c);
  int (*answer)(const Commands& c, const Request& r, const Facts& f, const Output& o);
};

// Whether somebody asks for the flags of this command. To set up eight times sixty takes 6 M
// instructions before anything else begins: where the first word is such a command, nobody asks
// for those of the others.
bool takes_flags(const Program& program, std::string_view command);

using C = Commands;
using R = Request;
using F = Facts;
using O = Output;

// In the order in which help lists them.
constexpr std::array<AskingRow, 8> asking_rows{{
    {"fit", "does it fit, on which plan, and what would make it fit?", &C::fit,
     [](const Program&, C& c) { add_verdict_flags(c.fit, c.fit.require_fit); },
     [](const C& c, const R& r, const F& f, const O& o) {
       return fit(r, f, c.fit.require_fit, o);
     }},
    {"simulate", "one plan: step time and memory in detail", &C::simulate,
     [](const Program&, C& c) {
       add_simulate_flags(*c.simulate.app, c.simulation);
       add_verdict_flags(c.simulate, c.simulation.require_fit);
     },
     [](const C& c, const R& r, const F& f, const O& o) {
       return simulate(r, f, c.simulation, o);
     }},
    {"compare", "several plans, or several boxes, side by side", &C::compare,
     [](const Program&, C& c) { add_verdict_flags(c.compare, c.compare.require_fit); },
     [](const C& c, const R& r, const F& f, const O& o) {
       return compare(r, f, c.compare.require_fit, o);
     }},
    {"launch", "files and command line that run a plan", &C::launch,
     [](const Program& app, C& c) {
       if (takes_flags(app, "launch")) add_launch_flags(*c.launch.app, c.launching);
     },
     [](const C& c, const R& r, const F& f, const O& o) { return launch(r, c.launching, f, o); }},
    {"plan", "the best plans of the whole plan space, ranked", &C::plan,
     [](const Program& app, C& c) {
       if (takes_flags(app, "plan")) add_plan_flags(*c.plan.app, c.planning);
       add_verdict_flags(c.plan, c.planning.require_fit);
     },
     [](const C& c, const R& r, const F& f, const O& o) { return plan(r, c.planning, f, o); }},
    {"models",
     "which catalogued models will run on these GPUs (MODEL: part of a name)? Without --gpus: "
     "how many cards does MODEL take?",
     &C::models, [](const Program&, C& c) { c.models.models = ModelsAsked::many; },
     [](const C&, const R& r, const F& f, const O& o) { return models(r, f, o); }},
    {"shop", "which cards to buy, or which machines to rent?", &C::shop, [](const Program&, C&) {},
     [](const C&, const R& r, const F& f, const O& o) { return shop(r, f, o); }},
    {"collectives", "how long do all-reduce and its kin take there?", &C::collectives,
     [](const Program&, C& c) { add_collectives_flags(*c.collectives.app, c.talking); },
     [](const C& c, const R& r, const F& f, const O& o) {
       return collectives(r, c.talking, f, o);
     }},
}};

bool takes_flags(const Program& program, std::string_view command) {
  const std::string_view word = program.first_word;
  return word == command || std::none_of(asking_rows.begin(), asking_rows.end(),
                                         [&](const AskingRow& row) { return row.name == word; });
}

void add_asking_commands(Program& app, Commands& c) {
  for (const AskingRow& row : asking_rows) {
    AskingCommand& words = c.*row.words;
    words.app = app.add_subcommand(row.name, row.help);
    if (takes_flags(app, row.name)) add_request_flags(*words.app, words.words);
    words.app->add_flag("--json", words.json, "one JSON document on standard output");
    row.add_flags(app, c);
  }
}

int ask(const Commands& commands, const AskingRow& row) {
  const AskingCommand& c = commands.*row.words;
  Output output = terminal(c.json);
  output.report = c.report;
  output.leave = leave;
  const auto request = request_from(*c.app, c.words);
  if (!request) return report_problems(request.error(), output);
  output.places = request->places;
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), output);
  const auto facts = calibrated_facts(*root, *request, c.models);
  if (!facts) return report_problems(facts.error(), output);
  return row.answer(commands, *request, *facts, output);
}

int refused(const std::string& line) {
  std::cerr << "shardwise: " << line << '\n';
  return static_cast<int>(ProblemKind::request);
}

// The exit code where the words end the program: it was asked about itself, or they are wrong.
std::optional<int> parsed(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", SHARDWISE_VERSION, "print the version and exit");
  ShellPages pages;
  add_shell_pages(app, pages);
  if (argc == 2 && std::string_view(argv[1]) == "help") return app.exit(CLI::CallForHelp());
  // As git has it: help fit, help calibrate import.
  std::vector<char*> turned(argv, argv + argc);
  std::string help = "--help";
  if (argc > 2 && std::string_view(argv[1]) == "help") {
    turned.erase(turned.begin() + 1);
    turned.push_back(help.data());
    argv = turned.data();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help and --version
    if (const auto unknown = unknown_command(app, argc, argv)) return refused(*unknown);
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return refused(misunderstood(app, e, argc, argv));
  }
  if (const auto nameless = nameless_file(app)) return refused(*nameless);
  return shell_pages(app, pages, terminal(false));
}

CLI::App* add_catalog(CLI::App& app, CatalogQuestion& question, bool& json) {
  CLI::App* command = app.add_subcommand("catalog", "what the catalog holds");
  command->add_option("VERB", question.verb, "list, show, check or pages")->required();
  command->add_option("SUBJECT", question.subject,
                      "list: gpus, nodes, networks, models, frameworks, prices, profiles; show: "
                      "a name; pages: the folder to write them into");
  command->add_flag("--json", json, "one JSON document on standard output");
  return command;
}

void add_validate(CLI::App& app, ValidateOptions& validation) {
  CLI::App* command =
      app.add_subcommand("validate", "replay published runs and print our own error");
  add_validate_flags(*command, validation);
  add_report_flag(*command, validation.report);
}

void add_other_commands(CLI::App& app, Commands& c) {
  c.serve = app.add_subcommand("serve", "the same answers on a local web page");
  add_serve_flags(*c.serve, c.serving);
  c.catalog = add_catalog(app, c.question, c.catalog_json);
  add_calibrate_flags(
      *app.add_subcommand("calibrate", "measure the GPUs here, or read the logs you have"),
      c.calibration);
  c.sweep = add_sweep(app, c.sweeping);
  add_validate(app, c.validation);
}

int run(int argc, char** argv) {
  Program app(
      "Forecasts a distributed training run: will it fit, on which plan, how fast, and why.",
      "shardwise");
  app.first_word = argc > 1 ? argv[1] : "";
  app.require_subcommand(1);
  Commands c;
  add_asking_commands(app, c);
  add_other_commands(app, c);
  if (const auto code = parsed(app, argc, argv)) return *code;
  for (const AskingRow& row : asking_rows)
    if (*(c.*row.words).app) return ask(c, row);
  if (*c.serve) return serve(c.serving, terminal(false));
  if (*c.sweep) return sweep(c.sweeping, terminal(c.sweeping.json));
  if (*c.calibration.app) return calibrate(c.calibration, terminal(c.calibration.json));
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), terminal(false));
  if (*c.catalog) return catalog(c.question, *root, terminal(c.catalog_json));
  return validate(c.validation, *root, std::cout, std::cerr, terminal(false).progress);
}

}  // namespace
}  // namespace shardwise

// Plays take megabytes and give them back, one after the other. By default glibc hands such memory
// back to the kernel each time and has it cleared again.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kept = 64 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, kept);
  mallopt(M_TOP_PAD, 1 << 20);
#endif
}

int main(int argc, char** argv) {
  keep_freed_memory();
  try {
    std::ios::sync_with_stdio(false);
    return shardwise::ended(shardwise::run(argc, argv));
  } catch (const std::exception& e) {
    std::cerr << "shardwise: this is our bug, please report it: " << e.what() << '\n';
    return shardwise::our_bug;
  }
}
