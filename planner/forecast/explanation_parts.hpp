// The halves of an explanation: memory, and time.
#pragma once

#include "planner/forecast/explanation.hpp"

namespace shardwise {

void explain_memory(const Question& question, const Forecast& forecast, const Profile& profile,
                    std::vector<ExplainedFigure>& figures);
void explain_time(const Question& question, const Forecast& forecast, const Profile& profile,
                  std::vector<ExplainedFigure>& figures);

// A field of a catalog entry: its own source where it has one. What its source calls assumed is.
ExplainedInput catalogued(std::string name, double value, std::string unit, Trust trust,
                          const Provenance& provenance, std::string_view field);

// The row of the interval that holds for this question, as inputs.
std::vector<ExplainedInput> interval_inputs(const SpreadRow& row, const Provenance& provenance);

}  // namespace shardwise
