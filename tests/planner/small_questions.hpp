// Questions of one plan on sequences of 1,024 tokens, and their forecasts.
#pragma once

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/forecast/forecast.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

inline Question short_question(const char* model, const char* gpus, Method method,
                               const char* framework, const char* plan) {
  Question q;
  q.workload.model = **find_model(known_facts().catalog, model);
  q.workload.method = method;
  q.workload.sequence = 1024;
  q.workload.framework = **find_framework(known_facts().catalog, framework);
  q.plan = *parse_plan(plan);
  q.cluster = parse_gpus(known_facts().catalog, gpus)->front();
  return q;
}

// With its timeline of every rank where it is to be unfolded.
inline Forecast forecast_of(const Question& q, bool unfold = false) {
  const auto f = forecast(q, known_facts().profile, {.unfold = unfold});
  if (!f) FAIL(f.error().front().what);
  return *f;
}

}  // namespace shardwise
