// A played step as columns of whole numbers, for the timeline of the HTML report.
//
//   end_ns   length of the step
//   kinds    names of kinds of work
//   lanes    of the first replica of each stage: {stage, lane, slices}; slices are seven numbers
//            each: gap (ns since the end of the one before), duration (ns), index in `kinds`,
//            microbatch, chunk, layer, and how many tasks it stands for
//   links    {stage, link, slices}; slices of three: gap, duration, index in `users`
//   users    what uses a link together, such as "tensor_comm + gather_parameters"
//   merged   true where neighbouring tasks of one pass were made one slice to keep the file small
//
// Times are picoseconds rounded to nanoseconds, ends as well as starts, so that no slice overlaps
// another; what is then of no length is left out.
#pragma once

#include "planner/report/json_parts.hpp"
#include "planner/step_record.hpp"

namespace shardwise {

// Above `most_slices` (60,000 are about 1.5 MB) neighbours are merged.
Json timeline_json(const StepRecord& record, std::size_t most_slices = 60'000);

}  // namespace shardwise
