// What `fit` answers: for every method asked for and every card a request stands for, the plan
// chosen, its forecast, and, where it does not fit, what would change that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/advice/advice.hpp"
#include "planner/answers/length_outlook.hpp"
#include "planner/answers/reach.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

struct FitAnswer {
  Method method = Method::full;
  std::string gpu;          // id; of a mixed box the smallest
  std::size_t cluster = 0;  // index in the request's clusters
  ChosenPlan chosen;
  Bytes model_states;  // of the whole model, once
  std::vector<Advice> advice;
  std::vector<Advice> faster;         // of a method's first card that fits (advise_faster)
  std::vector<std::string> warnings;  // as `plan` gives them, of a method's first card that fits
  std::string started;  // of a method's first card that fits: which launch targets start its plan
  std::optional<LengthOutlook> lengths;  // where asked about, of a method's first card that fits
  std::optional<Reach> reach;  // where it is asked for, of a method's first card that fits
};

struct UnplannedMethod {
  Method method = Method::full;
  Problems problems;  // why no plan is legal on the first card for which none is
};

struct FitAnswers {
  std::vector<FitAnswer> answers;  // methods in order, cards in order within
  std::vector<UnplannedMethod> unplanned;
};

// What is told of the answers. `in_text`: of a method that fits on no card, the first card's and no
// more than the verdicts of the others, whose other figures may then be missing or too low.
enum class FitTold { whole, in_text };

FitAnswers fit_answers(const ResolvedRequest& request, FitTold told = FitTold::whole);

}  // namespace shardwise
