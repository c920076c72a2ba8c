// The steps in full that a report shows beside an answer, one for each plan as far as they fit into
// a file that still opens at once.
#pragma once

#include <vector>

#include "planner/forecast/simulation.hpp"
#include "planner/report/html_report.hpp"

namespace shardwise {

struct AskedDetail {
  const ResolvedRequest* request;
  Question question;
  std::size_t of;  // the plan's place in the answer
};

// As many as there is room for, the first ones.
std::vector<ReportDetail> report_details(const std::vector<AskedDetail>& asked);

// `questions`: the plans in the answer's order; absent ones (which cannot run) are passed over.
std::vector<ReportDetail> report_details(const ResolvedRequest& request,
                                         const std::vector<std::optional<Question>>& questions);

}  // namespace shardwise
