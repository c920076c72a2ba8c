// What `compare` answers for several boxes: the plan that `fit` would choose for each method on
// each of them, side by side, and what the cheapest machines with such GPUs cost to rent. All run
// the framework that is usual on the largest, so that rows differ in nothing but the GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/forecast/cost.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

struct BoxRow {
  std::size_t box = 0;  // in BoxesAnswer::requests
  Method method = Method::full;
  std::optional<ChosenPlan> chosen;  // nothing where no plan is legal: `problem` says why
  std::string problem;
  std::optional<Rental> rental;  // of the whole box, where somebody rents it out

  bool fits() const { return chosen && chosen->verdict != Verdict::does_not_fit; }
};

struct BoxesAnswer {
  std::vector<ResolvedRequest> requests;  // of each box, in the order asked
  std::vector<BoxRow> rows;               // methods in order, boxes in order within
};

// `request.gpus` names several boxes (named_boxes.hpp). Of a bare memory size the first card is
// taken. Problems where one of them is not understood, or a flag is wrong.
Result<BoxesAnswer> boxes_answer(const Request& request, const Facts& facts);

}  // namespace shardwise
