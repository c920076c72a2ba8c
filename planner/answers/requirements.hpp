// What a model takes: for every usual way to train it, the smallest number of each usual card on
// which the plan that `fit` would choose fits, by the one predictor.
//
// Counts are those that people build with: 1 to 8 cards in one box, then whole boxes of 8. The
// smallest is found by doubling and bisection, so of every count that is told the one before it
// was forecast too, and does not do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

inline constexpr int most_cards_tried = 1024;  // a choice: beyond it `plan` is the command

// One way to train: a method, and the optimizer where it is not left to the framework.
struct TrainingWay {
  Method method = Method::full;
  const OptimizerRow* optimizer = nullptr;
};

struct Requirement {
  std::optional<ChosenPlan> roomy;  // the smallest number with room for the forecast's error
  std::optional<ChosenPlan> tight;  // a smaller number, on which it fits as forecast
  std::string problem;              // where no number does: what the most cards lack
};

struct RequirementRow {
  TrainingWay way;
  std::vector<Requirement> cells;  // one for each card
};

struct RequirementsAnswer {
  ResolvedRequest request;  // of one card, of all ways
  std::vector<Gpu> cards;   // by memory
  std::vector<RequirementRow> rows;
};

// The name of a way in a table: "full, adamw8bit", "qlora".
std::string way_name(const TrainingWay& way);

// `request` without GPUs; one sequence per GPU at once where it does not say. Problems where it
// says what hangs on a number of GPUs: a plan, nodes.
Result<RequirementsAnswer> requirements(const Request& request, const Facts& facts);

}  // namespace shardwise
