#include "catalog/run_record.hpp"

#include <algorithm>

#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

std::optional<double> sequences_per_step(const RunRecord& run) {
  if (run.training.global_batch) return *run.training.global_batch;
  if (!run.training.micro_batch || !run.plan.dp) return std::nullopt;
  return static_cast<double>(*run.training.micro_batch) * *run.plan.dp *
         run.training.grad_accum.value_or(1);
}

}  // namespace

std::optional<Seconds> measured_step(const RunRecord& run) {
  const RunMeasured& m = run.measured;
  if (m.time_suspect) return std::nullopt;
  if (m.step_time) return m.step_time;
  const auto sequences = sequences_per_step(run);
  if (!sequences) return std::nullopt;
  if (m.samples_per_s) return Seconds(*sequences / *m.samples_per_s);
  if (!run.training.sequence) return std::nullopt;
  const double tokens = *sequences * *run.training.sequence;
  if (m.tokens_per_s) return Seconds(tokens / *m.tokens_per_s);
  if (m.tokens_per_s_per_gpu && run.hardware.gpus)
    return Seconds(tokens / (*m.tokens_per_s_per_gpu * *run.hardware.gpus));
  return std::nullopt;
}

std::optional<double> measured_memory_gib(const RunRecord& run) {
  if (run.measured.mem_suspect) return std::nullopt;
  return run.measured.peak_mem_gib;
}

void date_framework(RunRecord& run, const std::optional<std::string>& date) {
  const std::string note = run.training.framework_note.value_or("");
  if (!date || std::any_of(note.begin(), note.end(), is_digit)) return;
  run.training.framework_note = note.empty() ? *date : note + ", " + *date;
}

}  // namespace shardwise
