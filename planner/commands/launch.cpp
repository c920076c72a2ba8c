#include "planner/commands/launch.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/launch/written_folder.hpp"
#include "planner/report/request_json.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string one_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += sentence(line.empty() ? "" : " ", word);
  return line;
}

Json launch_json(const LaunchAnswer& a, const LaunchOptions& options) {
  Json files = Json::array();
  for (const LaunchFile& file : a.files.files)
    files.push_back({{"name", file.name}, {"text", file.text}});
  std::vector<std::string> notes = a.files.notes;
  notes.insert(notes.end(), a.notes.begin(), a.notes.end());
  Json j = {{"schema_version", schema_version},
            {"command", "launch"},
            {"request", request_json(a.request, {&a.job.question})},
            {"target", a.target->name},
            {"model", a.job.question.workload.model.id},
            {"method", name(a.job.question.workload.method)},
            {"settings", settings_json(a.job.question)},
            {"plan", whole_text(a.job.question.plan)},
            {"verdict", verdict_name(a.verdict)},
            {"step_time_s", step_time_json(a.forecast.step_time)},
            {"tokens_per_s", json_number(a.forecast.tokens_per_s)},
            {"peak_memory_gib", memory_json(a.forecast.worst().peak)},
            {"margin_gib", json_gib(a.forecast.margin)},
            {"command_line", one_line(a.files.command)},
            {"files", files},
            {"notes", notes}};
  if (a.job.learning_rate) j["learning_rate"] = *a.job.learning_rate;
  if (a.nothing_fits) j["nothing_fits"] = *a.nothing_fits;
  if (!options.folder.empty() && !a.nothing_fits) j["folder"] = options.folder;
  return j;
}

std::string notes_text(const LaunchAnswer& a) {
  std::string text;
  for (const std::string& note : a.notes) text += sentence("  note: ", note, "\n");
  return text;
}

std::string launch_text(const LaunchAnswer& a, const LaunchOptions& options) {
  const Workload& w = a.job.question.workload;
  std::string text =
      sentence(w.model.id, ", ", name(w.method), " in ", w.framework.name, " on ",
               a.job.question.cluster.spoken, "\nplan ", whole_text(a.job.question.plan), ": ",
               verdict_in_words(a.verdict), ", step ", shown_time(a.forecast.step_time.expected),
               ", ", shown_gib(a.forecast.worst().peak.device), " of ",
               shown_gib(a.forecast.worst().capacity), " per GPU\n");
  if (a.nothing_fits) return text + sentence(*a.nothing_fits, "\n") + notes_text(a);
  for (const LaunchFile& file : a.files.files) {
    if (options.folder.empty())
      text += sentence("\n==> ", file.name, " <==\n", file.text);
    else
      text += sentence("wrote ", options.folder, '/', file.name, "\n");
  }
  text += sentence(options.folder.empty() ? "\n" : "", "run    ", one_line(a.files.command), "\n");
  for (const std::string& note : a.files.notes) text += sentence("  to do: ", note, "\n");
  return text + notes_text(a);
}

}  // namespace

void add_launch_flags(CLI::App& command, LaunchOptions& options) {
  std::string known;
  for (const LaunchTarget& t : launch_targets())
    known += sentence(known.empty() ? "" : "; ", t.name, ": ", t.summary);
  command.get_option("--target")->description(known);
  command.add_option("--out", options.folder, "folder to write into; without it they are printed")
      ->type_name("DIR");
  command.add_flag("--force", options.force, "replace files in DIR that say something else");
}

int launch(const Request& request, const LaunchOptions& options, const Facts& facts,
           const Output& output) {
  if (options.force && options.folder.empty())
    return report_problems(
        {{ProblemKind::request, "--force", "replaces files in a folder; expected --out as well"}},
        output);
  const auto answer = launch_answer(request, facts);
  if (!answer) return report_problems(answer.error(), output);
  if (!options.folder.empty() && !answer->nothing_fits) {
    const Problems problems =
        write_launch_files(options.folder, answer->files.files,
                           options.force ? OtherFiles::replaced : OtherFiles::refused);
    if (!problems.empty()) return report_problems(problems, output);
  }
  if (output.json)
    output.out << launch_json(*answer, options).dump(2) << '\n';
  else
    output.out << launch_text(*answer, options);
  return 0;
}

}  // namespace shardwise
