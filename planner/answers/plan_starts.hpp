// Which targets of `launch` start a plan that was forecast.
//
// A target runs plans in a framework of its own. It starts one where it can be told the plan, and
// where that framework's forecast of the same work (optimizer, number format, adapters) fits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/answers/launch_answer.hpp"

namespace shardwise {

struct PlanStarts {
  // In the order of launch_targets(), after the one that runs what was forecast.
  std::vector<std::string_view> targets;
  std::vector<std::string_view> too_large;  // can be told the plan, which does not fit there
  // What has to be said to them beside the plan: where one of them would choose otherwise.
  std::vector<std::string> flags;

  bool any() const { return !targets.empty(); }
};

// The work and plan of a question in the framework that a target runs, or in a row of its family
// that was asked for.
Question question_in(const ResolvedRequest& request, const Question& question,
                     const LaunchTarget& target);

// What was played for the targets of earlier questions: the same plan allocates the same on another
// card, unless that trains in another format or attends by another kernel. A framework's forecast
// is that of every target which runs it.
struct PlayedStart {
  Workload workload;
  ParallelPlan plan;
  std::shared_ptr<const MemoryPlays> plays;
};

// With `played`, to which it adds, the answer is the same. So it is where the question was forecast
// by the same predictor already, and did fit (`fits_here`).
PlanStarts plan_starts(const ResolvedRequest& request, const Question& question,
                       std::vector<PlayedStart>* played = nullptr, bool fits_here = false);

// Those that can say the plan and run the very framework that it was forecast in: nothing has to be
// forecast anew. Others may start it too.
std::vector<std::string_view> own_targets(const Question& question);

// "accelerate or axolotl, with this --plan, --lora-rank 8 and --lora-targets q,v"
std::string listed_targets(const PlanStarts& starts);
// "Started by shardwise launch --target ...", or that nothing starts `what` ("this plan").
std::string told(const PlanStarts& starts, std::string_view what);

// Of the plans that `launch` chooses for its targets, the fastest; where a tight one counts twice
// its time. Nothing where none fits, or where plans were asked for.
std::optional<LaunchAnswer> best_start(const Request& request, Method method, const Facts& facts);

}  // namespace shardwise
