// Texts of launch files read as the plan to judge.
#pragma once

#include <string>
#include <vector>

#include "planner/request/plan_from.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

inline Result<PlanFiles> read_as(Request request, const std::vector<PlanText>& texts) {
  const ResolvedRequest r = resolved(request_for(*request.model, *request.gpus));
  return with_plan_texts(request, {&r.model, &r.clusters.front(), &known_facts().catalog}, texts);
}

inline Result<PlanFiles> read_plan(const std::string& file, const std::string& text,
                                   const std::string& gpus = "8xH100-SXM",
                                   const std::string& model = "llama-3.1-8b") {
  return read_as(request_for(model, gpus), {{file, text}});
}

inline std::string plan_of(const Result<PlanFiles>& files) {
  if (!files) return files.error().front().where + ": " + files.error().front().what;
  return files->request.plans.empty() ? "" : files->request.plans.front();
}

inline bool notes(const std::vector<KeyNote>& list, const std::string& key) {
  for (const KeyNote& note : list)
    if (note.key == key) return !note.why.empty();
  return false;
}

}  // namespace shardwise
