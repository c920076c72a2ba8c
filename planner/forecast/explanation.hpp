// Explanation: every figure of a forecast as a short derivation, for people who ask "why?".
//
// A figure is a formula and its inputs; an input is a number with its unit, where it was read, and
// what kind of number that makes it. Inputs without a trust are other figures of the same forecast,
// or what was asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "planner/forecast/kernel_account.hpp"
#include "planner/forecast/step_bound.hpp"

namespace shardwise {

struct ExplainedInput {
  std::string name;
  double value = 0;
  std::string unit;  // "GiB", "s", "TFLOP/s", "GB/s", "B", "parameters", "" for a bare number
  std::optional<Trust> trust;
  std::string source;
};

struct ExplainedFigure {
  std::string key;   // as the JSON answer names it, or a memory category or kind of work
  std::string what;  // in words
  double value = 0;
  std::string unit;
  std::string formula;
  std::vector<ExplainedInput> inputs;
};

struct Explanation {
  std::vector<ExplainedFigure> figures;
  StepBound bound;
  int stage = 0;                           // the busiest
  std::vector<OperatorAccount> operators;  // of that stage, to hold beside a profiler's table
};

// REQUIRES a forecast of this question, with its time and its plays.
Explanation explain(const Question& question, const Forecast& forecast, const Profile& profile);

}  // namespace shardwise
