// A simulation: one question with its forecast and the record of its step.
#pragma once

#include <string>
#include <vector>

#include "planner/forecast.hpp"
#include "planner/resolved_request.hpp"
#include "planner/step_record.hpp"

namespace shardwise {

struct Simulation {
  Question question;
  Forecast forecast;  // with its record and its critical path
  Verdict verdict = Verdict::fits;
  std::vector<std::string> notes;

  const StepRecord& record() const { return *forecast.record; }
};

}  // namespace shardwise
