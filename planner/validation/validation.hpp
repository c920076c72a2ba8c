// Validation: published runs replayed through the forecast, and what came of each.
//
// The order of the records is kept, on any number of threads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/load.hpp"
#include "catalog/profile.hpp"
#include "catalog/reading.hpp"
#include "catalog/run_record.hpp"
#include "planner/forecast/forecast.hpp"
#include "planner/forecast/step_bound.hpp"
#include "planner/validation/replay.hpp"
#include "planner/validation/spread_fit.hpp"

namespace shardwise {

enum class Outcome { ran, oom };
constexpr std::string_view name(Outcome o) { return o == Outcome::ran ? "ran" : "oom"; }

// The plan as it was forecast, by the figures that errors are told apart by.
struct ReplayedShape {
  int sequence = 0, microbatch = 0;
  int tensor = 1, pipeline = 1, data = 1, expert = 1, nodes = 1;
  DType compute = DType::bf16;
  int experts = 0;  // of a layer; 0: its MLP is dense
  std::int64_t parameters = 0;
  std::string gpu;  // name of the catalog's entry
};

struct ReplayedRun {
  const RunRecord* run = nullptr;
  std::optional<Skipped> skipped;              // nothing below is set then
  bool bug = false;                            // skipped because an invariant of ours broke
  std::optional<Interval<Seconds>> step_time;  // of the recorded global batch
  std::optional<StepBound> bound;              // what that time waits for
  std::optional<Interval<double>> memory_gib;  // of the kind and stage that the record reads
  MemoryKind memory_kind = MemoryKind::device;
  std::optional<StageForecast> memory_stage;  // that figure is this stage's
  std::optional<Outcome> outcome;
  std::string framework;  // id of the row that stood for it
  SpreadKey kind;         // of question, as the intervals tell them apart
  ReplayedShape shape;
  std::vector<std::string> notes;
};

struct ValidationInputs {
  const Catalog& catalog;
  const Reading& reading;
  const Profile& profile;
};

// One entry per record, in order. `threads` < 1: as many as the machine has. `runs` must outlive
// the answer. `done` is told, by any thread, about how many are done.
std::vector<ReplayedRun> replay_runs(const std::vector<RunRecord>& runs,
                                     const ValidationInputs& inputs, int threads,
                                     const std::function<void(std::size_t)>& done = {});

}  // namespace shardwise
