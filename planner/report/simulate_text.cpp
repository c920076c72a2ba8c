#include "planner/report/simulate_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/figures.hpp"
#include "planner/forecast/rank_account.hpp"
#include "planner/report/bar.hpp"
#include "planner/report/collective_table.hpp"
#include "planner/report/explanation_report.hpp"
#include "planner/report/host_ram_text.hpp"
#include "planner/report/table.hpp"
#include "planner/report/why_not_report.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

void add_part(std::string& text, std::string_view label, Seconds t, Seconds step) {
  if (t <= Seconds(0)) return;
  const std::string shown = shown_time(t);
  text += sentence("    ", label, std::string(30 - std::min<std::size_t>(label.size(), 29), ' '),
                   std::string(10 - std::min<std::size_t>(shown.size(), 9), ' '), shown, "  ",
                   shown_bar(t / step, 40), "\n");
}

std::string step_text(const Forecast& f, int gpus) {
  const Seconds step = f.step_time.expected;
  std::string text =
      sentence("step ", shown_time(step), " (80 % interval ", shown_time(f.step_time.low), " to ",
               shown_time(f.step_time.high), "), ", shown_rate(f.tokens_per_s), " tokens/s, MFU ",
               fixed(100 * f.mfu, 1), " %\n  where the time of the busiest GPU goes\n");
  for (const auto& [kind, t] : f.breakdown.compute) add_part(text, kind, t, step);
  for (const auto& [kind, t] : f.breakdown.exposed)
    add_part(text, sentence("waiting for ", kind), t, step);
  const char* const idle = f.stages.size() > 1 ? "pipeline bubble"
                           : gpus > 1          ? "waiting for another GPU"
                                               : "idle";
  add_part(text, idle, f.breakdown.bubble, step);
  add_part(text, "waiting for the host", f.breakdown.host, step);
  add_part(text, "waiting for offload copies", f.breakdown.offload, step);
  std::string path;
  for (const auto& [kind, t] : f.critical_path)
    if (t > 0.005 * step) path += sentence(path.empty() ? "" : ", ", kind, " ", shown_time(t));
  text += sentence("  the chain of tasks that sets the step time: ", path, "\n");
  return text;
}

// One row per stage: what its GPU did with the step. A single stage is the breakdown above.
std::string ranks_text(const Simulation& s) {
  const std::vector<RankAccount> accounts = rank_accounts(s.record().step);
  if (accounts.size() < 2) return "";
  const Seconds step = s.forecast.step_time.expected;
  Table t{{"stage", "busy", "communication", "host, copies", "bubble", "on the critical path"}, {}};
  for (const RankAccount& a : accounts) {
    Seconds communication, host, path;
    for (const auto& [kind, time] : a.exposed)
      (kind == "host" || kind == "offload_copy" || kind == "host_optimizer" ? host
                                                                            : communication) +=
          time;
    for (const auto& [kind, time] : a.critical) path += time;
    t.rows.push_back({std::to_string(a.stage), shown_share((step - a.idle) / step),
                      shown_share(communication / step), shown_share(host / step),
                      shown_share(a.bubble / step), shown_share(path / step)});
  }
  return "  what the GPU of each stage does with the step\n" + shown_table(t, "    ");
}

// What the worst stage holds in each phase of a run.
std::string phases_text(const StageForecast& s) {
  std::string text = sentence("  stage ", s.stage, " through a run, allocated: ");
  if (s.load) text += sentence(shown_gib(s.load->allocated), " loaded, ");
  return text + sentence(shown_gib(s.first_step_peak.allocated), " in the first step, ",
                         shown_gib(s.steady_peak.allocated), " in each later one, ",
                         shown_gib(s.save.allocated), " while saving\n");
}

// What was chosen for each block where the plan says "best".
std::string recompute_text(const Forecast& f) {
  std::string text;
  for (const StageRecompute& r : f.recompute)
    text += sentence("    stage ", r.stage, ": ", counted(r.blocks, "block"), ' ',
                     r.operators.empty() ? "keep everything" : "redo ", listed(r.operators), "\n");
  return text.empty() ? "" : "  recomputation, block by block\n" + text;
}

// Eighths of a character's height.
const char* eighths(double fraction) {
  constexpr std::array<const char*, 9> blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  return blocks[static_cast<std::size_t>(std::clamp(std::lround(fraction * 8), 0L, 8L))];
}

// What tensors take over the step, a row per stage.
std::string memory_curves(const Simulation& s) {
  constexpr int columns = 64;
  const StepRecord& record = s.record();
  const SimTime end = record.step.timeline.makespan;
  Bytes full;
  for (const MemoryTimeline& timeline : record.memory)
    for (const MemorySample& sample : timeline) full = std::max(full, sample.allocated);
  std::string text = "  allocated over the step\n";
  for (std::size_t stage = 0; stage < record.memory.size(); ++stage) {
    const MemoryTimeline& timeline = record.memory[stage];
    const std::string label = std::to_string(stage);
    text += sentence("    ", label, std::string(label.size() < 7 ? 7 - label.size() : 0, ' '));
    Bytes most;
    for (const MemorySample& sample : evenly(timeline, end, columns)) {
      text += eighths(sample.allocated / full);
      most = std::max(most, sample.allocated);
    }
    text += sentence(" ", shown_gib(most), "\n");
  }
  return text;
}

std::string memory_text(const Forecast& f) {
  Table t{{"stage", "gpu", "layers", "allocated", "reserved", "device", "of"}, {}};
  for (const StageForecast& s : f.stages)
    t.rows.push_back({std::to_string(s.stage), s.gpu, std::to_string(s.layers),
                      shown_gib_number(s.peak.allocated), shown_gib_number(s.peak.reserved),
                      shown_gib_number(s.peak.device), shown_gib_number(s.capacity)});
  const StageForecast& worst = f.worst();
  std::string text = sentence("  memory per GPU in GiB\n", shown_table(t, "    "));
  for (const StageForecast& s : f.stages)
    if (s.cache_fills())
      text += sentence("  stage ", s.stage, " needs ", shown_gib(s.needed),
                       "; the rest is the allocator's cache, which gives way\n");
  text += sentence("  stage ", worst.stage, " at its peak\n");
  for (std::size_t c = 0; c < memory_category_count; ++c) {
    const Bytes bytes(worst.breakdown[c]);
    if (bytes.value < (8 << 20)) continue;
    const std::string label(memory_category_names[c]), size = shown_gib(bytes);
    text += sentence("    ", label, std::string(30 - label.size(), ' '),
                     std::string(10 - std::min<std::size_t>(size.size(), 9), ' '), size, "  ",
                     shown_bar(bytes / worst.capacity, 40), "\n");
  }
  return text;
}

}  // namespace

std::string simulate_text(const ResolvedRequest& r, const Simulation& s) {
  const Forecast& f = s.forecast;
  std::string text =
      sentence(r.model.id, ", ", name(s.question.workload.method), " in ",
               s.question.workload.framework.name, ", ", grouped(r.sequence), " tokens x ",
               shown_samples(s.question.plan.global_batch(), r.asked.preference), " on ",
               s.question.cluster.spoken, "\nplan ", whole_text(s.question.plan), ": ",
               verdict_in_words(s.verdict), "\n");
  text += step_text(f, s.question.plan.gpus());
  if (f.slowest)
    text += sentence("  the slowest GPU is rank ", f.slowest->rank, " of ", s.question.plan.gpus(),
                     ", a ", f.slowest->gpu, " of stage ", f.slowest->stage,
                     ": the others wait for it\n");
  text += recompute_text(f) + ranks_text(s) + collectives_text(s.record()) + memory_text(f) +
          memory_curves(s) + phases_text(f.worst());
  text += host_ram_text(f);
  for (const std::string& note : s.notes) text += sentence("  note: ", note, "\n");
  if (r.asked.explain) text += explanation_text(explain(s.question, f, r.facts->profile));
  return text + why_not_text(why_not_asked(r, {s.question, f, s.verdict}));
}

}  // namespace shardwise
