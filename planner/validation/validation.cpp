#include "planner/validation/validation.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "catalog/require.hpp"
#include "planner/forecast/spread_key.hpp"

namespace shardwise {
namespace {

Bytes figure(const MemoryFigures& f, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::tensors:  // the caller takes the workspaces off
    case MemoryKind::allocated:
    case MemoryKind::allocated_first:  // the caller reads the first step's
      return f.allocated;
    case MemoryKind::reserved:
      return f.reserved;
    case MemoryKind::reserved_at_step:
      return f.reserved_at_step;
    case MemoryKind::device:
      break;
  }
  return f.device;
}

// What is published was read while steps ran; whether a run also saves, its verdict tells.
Bytes stage_peak(const StageForecast& s, MemoryKind kind) {
  if (kind == MemoryKind::tensors)
    return s.steps_peak.allocated -
           Bytes(s.breakdown[static_cast<std::size_t>(MemoryCategory::workspace)]);
  const MemoryFigures& steps =
      kind == MemoryKind::allocated_first ? s.first_step_peak : s.steps_peak;
  return s.load ? std::max(figure(steps, kind), figure(*s.load, kind)) : figure(steps, kind);
}

const StageForecast& stage_read(const Forecast& f, MemoryKind kind, MemoryStage stage) {
  if (stage == MemoryStage::first) return f.stages.front();
  return *std::max_element(f.stages.begin(), f.stages.end(),
                           [&](const StageForecast& a, const StageForecast& b) {
                             return stage_peak(a, kind) < stage_peak(b, kind);
                           });
}

// The forecast's doubt is stated of the worst stage's device figure; others get the same share.
Interval<double> memory(const Forecast& f, Bytes peak) {
  if (f.peak_device.expected.value <= 0) return {gib(peak), gib(peak), gib(peak)};
  return {gib(peak) * (f.peak_device.low / f.peak_device.expected), gib(peak),
          gib(peak) * (f.peak_device.high / f.peak_device.expected)};
}

void fill(const Replay& replayed, const Forecast& f, const Profile& profile, ReplayedRun& out) {
  out.memory_kind = replayed.memory_kind;
  out.memory_stage = stage_read(f, replayed.memory_kind, replayed.memory_stage);
  out.memory_gib = memory(f, stage_peak(*out.memory_stage, replayed.memory_kind));
  if (!replayed.gpu_known) return;
  const double k = replayed.step_scale;
  if (replayed.batch_told) {
    out.step_time = {k * f.step_time.low, k * f.step_time.expected, k * f.step_time.high};
    out.bound = step_bound(replayed.question, f, profile);
    for (Seconds& part : out.bound->parts) part = k * part;
  }
  const bool fits = f.verdict != Verdict::does_not_fit && f.host_fits;
  out.outcome = fits ? Outcome::ran : Outcome::oom;
}

ReplayedShape shape_of(const Replay& replayed) {
  const Question& q = replayed.question;
  ReplayedShape s;
  s.sequence = q.workload.sequence;
  s.microbatch = q.plan.microbatch;
  s.tensor = q.plan.tensor;
  s.pipeline = q.plan.pipeline;
  s.data = q.plan.data;
  s.expert = q.plan.expert;
  s.nodes = q.cluster.nodes();
  if (q.workload.model.moe) s.experts = q.workload.model.moe->experts;
  s.compute = q.workload.compute;
  s.parameters = parameter_count(q.workload.model).total;
  s.gpu = replayed.gpu_known ? q.cluster.groups.front().gpu.name : "not stated";
  return s;
}

ReplayedRun replay_run(const RunRecord& run, const ValidationInputs& inputs) {
  ReplayedRun out;
  out.run = &run;
  ReplayResult result = replay(run, inputs.catalog, inputs.reading);
  if (auto* skipped = std::get_if<Skipped>(&result)) {
    out.skipped = std::move(*skipped);
    return out;
  }
  Replay& replayed = std::get<Replay>(result);
  out.framework = replayed.question.workload.framework.id;
  out.kind = spread_key(replayed.question);
  out.shape = shape_of(replayed);
  out.notes = std::move(replayed.notes);
  try {
    const auto answer = forecast(replayed.question, inputs.profile);
    if (!answer)
      out.skipped = Skipped{"the forecast refuses the plan", answer.error().front().what};
    else
      fill(replayed, *answer, inputs.profile, out);
  } catch (const BrokenInvariant& broken) {
    out.skipped = Skipped{"internal error", broken.what()};
    out.bug = true;
  }
  return out;
}

}  // namespace

std::vector<ReplayedRun> replay_runs(const std::vector<RunRecord>& runs,
                                     const ValidationInputs& inputs, int threads,
                                     const std::function<void(std::size_t)>& done) {
  std::vector<ReplayedRun> out(runs.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      out[i] = replay_run(runs[i], inputs);
      if (done) done(i + 1);
    }
  };
  if (threads < 1) threads = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return out;
}

}  // namespace shardwise
