// The answer of `fit` in words, as a knowledgeable friend would give it.
#pragma once

#include <string>

#include "planner/answers/fit_answer.hpp"

namespace shardwise {

std::string fit_text(const ResolvedRequest& request, const FitAnswers& answers, int width);

}  // namespace shardwise
