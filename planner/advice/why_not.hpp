// "Why not that plan?": what another plan breaks, overflows or loses against the one answered with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

// What a plan is held against.
struct ReferencePlan {
  const Question& question;
  const Forecast& forecast;
  Verdict verdict;
};

struct WhyNot {
  std::string plan;                  // completed; as it was asked where it cannot be
  std::vector<std::string> reasons;  // whole sentences, the gravest first
  std::optional<Verdict> verdict;    // absent: it cannot run at all
  // Absent where it cannot run. Per token, as plans may differ in the sequences of a step.
  std::optional<double> time_ratio;
  Bytes memory_difference;  // of the fullest GPU; positive: it needs more
  // What makes up the difference, by memory category and by part of the step (per step of the
  // reference's batch); both sum to the whole difference.
  std::map<std::string, Bytes> memory_parts;
  std::map<std::string, Seconds> time_parts;
};

WhyNot why_not(const ResolvedRequest& request, const ReferencePlan& reference,
               const std::string& text);

}  // namespace shardwise
