// The answer of `fit` in words, as a knowledgeable friend would give it.
#pragma once

#include <string>
#include <vector>

#include "planner/answers/fit_answer.hpp"

namespace shardwise {

// Stages on cards of another kind than the one with the least room: of each kind the fullest.
std::vector<const StageForecast*> fullest_of_others(const Forecast& forecast);

std::string fit_text(const ResolvedRequest& request, const FitAnswers& answers, int width);

}  // namespace shardwise
