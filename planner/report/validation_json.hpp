// What `validate --report` draws: the score, and one row per published run.
//
//   score    as validate prints it: {time, memory} of all runs and of each row, outcomes, ranking
//   runs     columns: id, source, gpu, framework, method; measured and predicted step [s] with the
//            80 % interval; the same of memory [GiB]; outcomes; why a run was skipped
#pragma once

#include "planner/report/json_parts.hpp"
#include "planner/validation/score.hpp"

namespace shardwise {

Json validation_json(const std::vector<ReplayedRun>& runs, const ValidationScore& score,
                     std::string_view by);

}  // namespace shardwise
