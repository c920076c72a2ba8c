// The collectives of a step: what each is for, and the algorithm and protocol that NCCL picks.
#pragma once

#include <string>

#include "planner/forecast/step_record.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

// Those of the stage that spends most time on them, the longest first. Empty without any.
std::string collectives_text(const StepRecord& record);

// All of them, stage by stage. `time_s`: of one, while nothing else uses its links.
Json collectives_json(const StepRecord& record);

}  // namespace shardwise
