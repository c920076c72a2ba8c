#include "planner/answers/boxes_answer.hpp"

#include <algorithm>
#include <utility>

#include "catalog/json_document.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/request/named_boxes.hpp"
#include "planner/search/near_batch.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

Result<BoxesAnswer> boxes_answer(const Request& request, const Facts& facts) {
  BoxesAnswer a;
  Problems problems;
  const std::vector<std::string> boxes = named_boxes(request.gpus.value_or(""));
  if (std::find(boxes.begin(), boxes.end(), "") != boxes.end())
    return Problem{ProblemKind::request, "--gpus",
                   sentence('"', printable(*request.gpus),
                            "\" lacks a box; expected GPUs on both sides of each vs")};
  for (const std::string& box : boxes) {
    Request one = request;
    one.gpus = box;
    auto resolved = resolve(one, facts, UnnamedMethods::fine_tuning);
    if (!resolved)
      add_problems(problems, resolved.error());
    else
      a.requests.push_back(*std::move(resolved));
  }
  if (!problems.empty()) return problems;
  int most = 0;
  for (const ResolvedRequest& r : a.requests) most = std::max(most, r.gpus());
  for (ResolvedRequest& r : a.requests) r.most_gpus = most;
  for (const Method method : a.requests.front().methods)
    for (std::size_t box = 0; box < a.requests.size(); ++box)
      a.rows.push_back({box, method, std::nullopt, {}, std::nullopt});
  on_all_cores(a.rows.size(), [&](std::size_t i) {
    BoxRow& row = a.rows[i];
    const CrewMember alone;
    const ResolvedRequest& r = a.requests[row.box];
    const Cluster& cluster = r.clusters.front();
    auto chosen = choose_near_plan(r, row.method, cluster, nullptr, Looked::decisive);
    if (chosen)
      row.chosen = *std::move(chosen);
    else
      row.problem = chosen.error().front().what;
    row.rental = cheapest_rental(facts.catalog.prices, cluster);
  });
  return a;
}

}  // namespace shardwise
