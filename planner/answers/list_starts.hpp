// Which plans of a list that a search ranks launch targets start.
#pragma once

#include <cstddef>
#include <optional>

#include "planner/answers/plan_answer.hpp"
#include "planner/answers/plan_starts.hpp"

namespace shardwise {

Question question_of(const PlanAnswer& answer, const FoundPlan& found);

// REQUIRES a plan that fits, as all do that were found.
PlanStarts starts_of(const PlanAnswer& answer, const FoundPlan& found);

// Which of a list is started, the first of them, and by what; that of the first plan beside it.
struct ListStarts {
  PlanStarts first;
  std::optional<std::size_t> started;
  PlanStarts by;
};

// Where none of the list is started, the search goes on to the best plan that is: unless one of the
// list is one, but does not fit in what the target runs.
// `list` is filled in while the search runs; it and `answer` outlive that. The search's sites are
// those of the answer from `first_site` on.
void seek_startable(const PlanAnswer& answer, SearchWish& search, std::optional<ListStarts>& list,
                    std::size_t first_site = 0);

}  // namespace shardwise
