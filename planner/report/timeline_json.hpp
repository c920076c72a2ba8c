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
//   stages_left_out   how many stages have no lanes here, for the same reason
//
// Times are picoseconds rounded to nanoseconds, ends as well as starts, so that no slice overlaps
// another; what is then of no length is left out.
#pragma once

#include "planner/forecast/step_record.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

struct TimelineLimits {
  std::size_t merged_above = 60'000;  // slices; so many are about 1.5 MB
  std::size_t drawn = 60'000;         // stages beyond that are left out, spread over the pipeline
};

Json timeline_json(const StepRecord& record, TimelineLimits limits = {});

}  // namespace shardwise
