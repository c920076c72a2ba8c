#include "calibrate/measuring/calibration.hpp"

#include <algorithm>
#include <ostream>

#include "calibrate/measuring/progress_text.hpp"
#include "calibrate/measuring/simulated_device.hpp"

namespace shardwise {
namespace {

constexpr int exit_interrupted = 130;

std::string fact(const Facts& facts, const char* key) {
  const auto found = facts.find(key);
  return found == facts.end() ? "" : found->second;
}

// A file goes on only with the GPUs and the mode that it was begun with.
Problems other_machine(const MachineFacts& before, const MachineFacts& now,
                       const std::string& path) {
  const auto problem = [&](const std::string& what) {
    return Problems{{ProblemKind::request, path, what}};
  };
  if (fact(before.facts, "mode") != fact(now.facts, "mode"))
    return problem("was begun with --" + fact(before.facts, "mode") + ", and goes on only so");
  if (before.gpus.size() != now.gpus.size())
    return problem("is of " + std::to_string(before.gpus.size()) + " GPUs, here are " +
                   std::to_string(now.gpus.size()));
  for (std::size_t i = 0; i < now.gpus.size(); ++i)
    if (fact(before.gpus[i], "uuid") != fact(now.gpus[i], "uuid"))
      return problem("is of another GPU " + std::to_string(i) + ": " +
                     fact(before.gpus[i], "name") + ", " + fact(before.gpus[i], "uuid"));
  return {};
}

// What was measured so far, by subject, in the order of the subjects. What is of none of them
// (another --gpus) is kept at the end.
class Store {
 public:
  Store(std::filesystem::path path, const CalibrationMachine& machine)
      : path_(std::move(path)), facts_(machine.facts), by_subject_(machine.subjects.size()) {}

  void take(MeasurementFile file, const CalibrationMachine& machine) {
    facts_ = std::move(file.machine);
    for (Entry& entry : file.entries) {
      if (entry.finding.outcome == Outcome::lost) continue;  // a new start, a new try
      const auto subject = std::find_if(machine.subjects.begin(), machine.subjects.end(),
                                        [&](const Subject& one) { return one.gpu == entry.gpu; });
      const auto at = static_cast<std::size_t>(subject - machine.subjects.begin());
      (at < by_subject_.size() ? by_subject_[at] : others_).push_back(std::move(entry));
    }
  }

  std::vector<Entry>& of(std::size_t subject) { return by_subject_[subject]; }

  Problems save() const {
    MeasurementFile file{facts_, {}};
    for (const auto& entries : by_subject_)
      file.entries.insert(file.entries.end(), entries.begin(), entries.end());
    file.entries.insert(file.entries.end(), others_.begin(), others_.end());
    return write_measurement_file(path_, file);
  }

  int measured() const {
    int count = 0;
    for (const auto& entries : by_subject_)
      count += static_cast<int>(std::count_if(entries.begin(), entries.end(), [](const Entry& e) {
        return e.finding.outcome == Outcome::measured;
      }));
    return count;
  }

 private:
  std::filesystem::path path_;
  MachineFacts facts_;
  std::vector<std::vector<Entry>> by_subject_;
  std::vector<Entry> others_;
};

Problems open_store(const CalibrationOptions& options, const CalibrationMachine& machine,
                    Store& store) {
  std::error_code error;
  if (!std::filesystem::exists(options.output, error)) return store.save();
  const std::string name = options.output.string();
  if (!options.resume)
    return {{ProblemKind::request, name, "exists: --resume goes on with it, or remove it"}};
  auto file = read_measurement_file(options.output);
  if (!file) return file.error();
  if (auto problems = other_machine(file->machine, machine.facts, name); !problems.empty())
    return problems;
  store.take(std::move(*file), machine);
  return store.save();
}

int tell(const Problems& problems, std::ostream& messages) {
  for (const Problem& problem : problems)
    messages << "shardwise-calibrate: error: " << problem.where << ": " << problem.what << '\n';
  return static_cast<int>(problems.front().kind);
}

// All campaigns, one after the other, so that none disturbs another. Problems: of saving.
Problems run_campaigns(const CalibrationMachine& machine, Store& store,
                       const std::function<bool()>& interrupted, std::ostream& messages) {
  Problems unsaved;
  CampaignHands hands;
  hands.interrupted = [&] { return interrupted() || !unsaved.empty(); };
  hands.finished = [&](const Progress& progress) {
    messages << progress_text(progress) << '\n';
    unsaved = store.save();
  };
  for (std::size_t i = 0; i < machine.subjects.size() && !hands.interrupted(); ++i) {
    const Subject& subject = machine.subjects[i];
    const CampaignEnd end = run_campaign(subject, MeasuringRules{}, hands, store.of(i));
    messages << end_text(subject, end) << '\n';
  }
  return unsaved;
}

}  // namespace

Problems restrict_subjects(const CalibrationOptions& options, CalibrationMachine& machine) {
  Problems problems;
  const auto here = static_cast<int>(machine.facts.gpus.size());
  for (const int gpu : options.gpus)
    if (gpu >= here)
      problems.push_back({ProblemKind::request, "--gpus",
                          "there is no GPU " + std::to_string(gpu) + ", only " +
                              std::to_string(here) + " counted from 0"});
  const auto unwanted = [&](const Subject& subject) {
    return !options.gpus.empty() &&
           (!subject.gpu ||
            std::count(options.gpus.begin(), options.gpus.end(), *subject.gpu) == 0);
  };
  auto& subjects = machine.subjects;
  subjects.erase(std::remove_if(subjects.begin(), subjects.end(), unwanted), subjects.end());
  bool found = options.only.empty();
  for (Subject& subject : subjects) {
    if (options.budget) subject.budget = *options.budget;
    const auto other = [&](const BenchPoint& point) {
      return !options.only.empty() && point.bench != options.only;
    };
    auto& plan = subject.plan;
    plan.erase(std::remove_if(plan.begin(), plan.end(), other), plan.end());
    found = found || !plan.empty();
  }
  if (!found)
    problems.push_back({ProblemKind::request, "--only", "no bench \"" + options.only + "\" here"});
  return problems;
}

int run_calibration(const CalibrationOptions& options, const CalibrationMachine& machine,
                    const std::function<bool()>& interrupted, std::ostream& messages) {
  Store store(options.output, machine);
  if (const auto problems = open_store(options, machine, store); !problems.empty())
    return tell(problems, messages);
  const auto unsaved = run_campaigns(machine, store, interrupted, messages);
  if (!unsaved.empty()) return tell(unsaved, messages);
  const std::string path = options.output.string();
  messages << store.measured() << " points measured, in " << path << '\n';
  if (interrupted()) {
    messages << "interrupted: --resume --output " << path << " goes on\n";
    return exit_interrupted;
  }
  return store.measured() > 0 ? 0 : static_cast<int>(ProblemKind::file);
}

CalibrationMachine simulated_machine(CalibrationMode mode) {
  const GpuTraits traits{89, Bytes(std::int64_t{24} << 30)};
  CalibrationMachine machine;
  machine.facts.facts = {{"mode", mode == CalibrationMode::full ? "full" : "quick"},
                         {"version", "simulated"},
                         {"driver", "none"},
                         {"date", "simulated"}};
  for (int gpu = 0; gpu < 2; ++gpu) {
    SimulatedGpu settings;
    settings.memory = Bytes(traits.memory.value >> (6 * gpu));  // the second is small: it adapts
    const std::string uuid = "SIMULATED-" + std::to_string(gpu);
    machine.facts.gpus.push_back({{"name", "Simulated GPU"}, {"uuid", uuid}});
    machine.subjects.push_back({gpu, "GPU " + std::to_string(gpu) + " (simulated)",
                                simulated_device(settings), gpu_plan(mode, traits),
                                gpu_budget(mode)});
  }
  return machine;
}

}  // namespace shardwise
