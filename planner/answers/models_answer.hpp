// What `models` answers: will it run here? For every catalogued model and every method asked for,
// the plan that `fit` would choose and its forecast.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

struct ModelRow {
  std::string model;
  std::int64_t parameters = 0;
  struct Cell {
    Method method = Method::full;
    bool legal = false;  // false: no plan is legal, `problem` says why
    std::string problem;
    Verdict verdict = Verdict::does_not_fit;
    Interval<Seconds> step;
    double tokens_per_s = 0;
    Bytes margin;
    std::optional<Question> question;  // the plan chosen, where one is legal
  };
  std::vector<Cell> cells;  // one for each method, in the order of `methods`

  Verdict best() const;
};

struct ModelsAnswer {
  std::vector<Method> methods;
  std::vector<ModelRow> rows;  // what runs first, the largest first within
  std::string cluster;         // as asked
  ResolvedRequest request;     // of one model
};

// `request.model`, where given, is a part of the names wanted, in any spelling, or the path of a
// config.json. Problems where the GPUs or a flag are wrong, or no model has such a name. `told`, if
// any, hears after each cell how many of all have an answer; on any thread.
Result<ModelsAnswer> models_answer(
    const Request& request, const Facts& facts,
    const std::function<void(std::size_t done, std::size_t all)>& told = {});

}  // namespace shardwise
