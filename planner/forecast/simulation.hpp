// A simulation: one question with its forecast and the record of its step.
#pragma once

#include <string>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "planner/forecast/step_record.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

struct Simulation {
  Question question;
  Forecast forecast;  // with its record and its critical path
  Verdict verdict = Verdict::fits;
  std::vector<std::string> notes;

  const StepRecord& record() const { return *forecast.record; }
};

// Problems: as forecast(). `notes`: what the forecast warns of.
Result<Simulation> simulate_question(const ResolvedRequest& request, const Question& question,
                                     const Variation& variation = {});

}  // namespace shardwise
