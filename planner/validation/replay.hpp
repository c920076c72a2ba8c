// replay: a published run as a Question, so that our forecast can be held against what somebody
// measured.
//
// What a record leaves out is filled by its framework's row, its model's catalog entry and the
// usual node of its GPU, in that order of what each knows; every such filling is a note. A run is
// skipped only for what its record does not tell, or for a method that is no low-rank adapter.
// Where it tells no GPU, memory is forecast on a usual one, and neither time nor outcome is.
//
//   data       = dp                      | GPUs / (tp pp cp)
//   microbatches = global batch / (data x microbatch), at least 1; where that is no whole number
//                  the nearest one is taken and `step_scale` is recorded / replayed batch
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "catalog/load.hpp"
#include "catalog/reading.hpp"
#include "catalog/run_record.hpp"
#include "planner/forecast/forecast.hpp"

namespace shardwise {

struct Replay {
  Question question;
  MemoryKind memory_kind = MemoryKind::device;  // the figure that the record's reading is
  MemoryStage memory_stage = MemoryStage::worst;
  bool gpu_known = true;
  double step_scale = 1;           // multiplies the forecast step time
  bool batch_told = true;          // without it the throughput of a pipeline cannot be compared
  std::vector<std::string> notes;  // what was assumed, in whole sentences
};

// Why a record cannot be asked: the first clause is what skips are counted by.
struct Skipped {
  std::string reason;  // "no sequence length"
  std::string detail;  // may be empty
};

using ReplayResult = std::variant<Replay, Skipped>;

ReplayResult replay(const RunRecord& run, const Catalog& catalog, const Reading& reading);

}  // namespace shardwise
