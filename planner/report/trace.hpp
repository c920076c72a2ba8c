// A step as a Chrome trace (Trace Event Format, JSON object form), for ui.perfetto.dev and
// chrome://tracing.
//
//   process  one per rank that was played: "stage 0"; unfolded "stage 0, replica 3"
//     thread   one per lane (stream, host thread, copy engine); "X" slices are tasks
//     thread   one per link of a stage's first rank; slices say what uses it
//     "C"      counters: GPU memory allocated and reserved in GiB; how many tasks use each link
//   "s", "f"   arrows along the critical path wherever it changes lanes
//
// Times are microseconds with six decimals: the picoseconds of the simulated clock, exactly. Tasks
// of no length are left out. On a thread no slice overlaps another.
// Format: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; phases and keys
// as in chrome-devtools-frontend (models/trace/types/TraceEvents.ts), Go (internal/traceviewer).
#pragma once

#include <ostream>

#include "planner/forecast/step_record.hpp"

namespace shardwise {

void write_trace(const StepRecord& record, std::ostream& out);

}  // namespace shardwise
