// The answer to one point of a study, from the one predictor, on the path that `simulate` (a plan),
// `fit` (none) or `plan` (the word `best`) takes.
#pragma once

#include <optional>
#include <string_view>

#include "planner/answers/run_outlook.hpp"
#include "planner/forecast/cost.hpp"
#include "planner/forecast/forecast.hpp"
#include "planner/request/request.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/sweep/point_facts.hpp"

namespace shardwise {

struct PointForecast {
  Question question;
  Forecast forecast;
  Verdict verdict = Verdict::does_not_fit;
};

struct PointAnswer {
  std::optional<ResolvedRequest> request;  // absent where it names what nobody knows
  std::optional<PointForecast> found;      // absent: `problems` say why
  std::optional<Rental> rental;            // where somebody rents these GPUs out
  std::optional<RunOutlook> outlook;       // where the request states an amount of data
  Problems problems;
};

// `fit` or `best`, where one of them chooses the plan; nothing where the request states it.
std::optional<std::string_view> plan_word(const Request& asked);

// A bare memory size stands for the first card that it could mean. With `best`, where no plan fits,
// the answer is that of `fit`: the plan that misses by least.
PointAnswer answer_point(const Request& asked, PointFacts& facts);

}  // namespace shardwise
