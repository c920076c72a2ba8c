#include "planner/forecast/rank_account.hpp"

namespace shardwise {
namespace {

std::map<std::string, Seconds> named(const TimePerWork& times) {
  std::map<std::string, Seconds> by_name;
  for (std::size_t i = 0; i < kWorkKinds; ++i)
    if (times[i].value > 0)
      by_name[std::string(name(static_cast<WorkKind>(i)))] = seconds(times[i]);
  return by_name;
}

int stage_of(const PlayedStep& step, TaskId task) {
  const TaskGraph& graph = step.graph();
  return graph.rank(graph.lanes(task).front()) / step.lowered.ranks_per_stage;
}

}  // namespace

std::vector<PathPart> path_parts(const PlayedStep& step) {
  const TaskGraph& graph = step.graph();
  std::vector<PathPart> parts;
  for (const TaskId on_path : critical_path(graph, step.timeline)) {
    const TaskTimes& times = step.timeline[on_path];
    if (times.end == times.start) continue;
    const int stage = stage_of(step, on_path);
    const WorkKind work = graph.work(on_path);
    const int microbatch = graph.tag(on_path).microbatch;
    if (parts.empty() || parts.back().stage != stage || parts.back().work != work)
      parts.push_back({stage, work, microbatch, microbatch, times.start, times.end, 0});
    PathPart& part = parts.back();
    part.last_microbatch = microbatch;
    part.end = times.end;
    ++part.tasks;
  }
  return parts;
}

std::vector<RankAccount> rank_accounts(const PlayedStep& step) {
  const std::vector<RankSummary> ranks = summarise_ranks(step.graph(), step.timeline);
  std::vector<RankAccount> accounts;
  for (int stage = 0; stage < step.stages(); ++stage) {
    const RankSummary& r = ranks[static_cast<std::size_t>(step.rank_of_stage(stage))];
    const Picoseconds idle = total(r.exposed) + r.bubble;
    accounts.push_back(
        {stage, named(r.busy), named(r.exposed), seconds(r.bubble), seconds(idle), {}});
  }
  for (const PathPart& part : path_parts(step))
    accounts[static_cast<std::size_t>(part.stage)].critical[std::string(name(part.work))] +=
        part.end - part.start;
  return accounts;
}

}  // namespace shardwise
