#include "planner/report/timeline_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::int64_t nanoseconds(SimTime at) { return (at.picoseconds + 500) / 1000; }

struct Slice {
  std::int64_t start = 0, end = 0;
  WorkKind work = WorkKind::other;
  TaskTag tag;
  int tasks = 1;
};

struct Lane {
  int stage = 0;
  LaneKind kind = LaneKind::compute;
  std::vector<Slice> slices;
};

// Those of the ranks that stand for a stage, in order of stage and kind.
std::vector<Lane> lanes_of(const PlayedStep& step) {
  const TaskGraph& graph = step.graph();
  std::vector<Lane> lanes;
  std::vector<std::size_t> place(graph.lane_count(), graph.lane_count());
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const int rank = graph.rank(LaneId{i}), stage = rank / step.lowered.ranks_per_stage;
    if (rank != step.rank_of_stage(stage)) continue;
    place[i] = lanes.size();
    lanes.push_back({stage, graph.kind(LaneId{i}), {}});
  }
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    const std::int64_t start = nanoseconds(step.timeline[task].start),
                       end = nanoseconds(step.timeline[task].end);
    if (start == end) continue;
    for (const LaneId lane : graph.lanes(task))
      if (place[lane.index] < lanes.size())
        lanes[place[lane.index]].slices.push_back(
            {start, end, graph.work(task), graph.tag(task), 1});
  }
  std::erase_if(lanes, [](const Lane& lane) { return lane.slices.empty(); });
  for (Lane& lane : lanes)
    std::stable_sort(lane.slices.begin(), lane.slices.end(),
                     [](const Slice& a, const Slice& b) { return a.start < b.start; });
  std::stable_sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) {
    return std::pair(a.stage, a.kind) < std::pair(b.stage, b.kind);
  });
  return lanes;
}

// Of one pass through a chunk, without a gap between.
bool joins(const Slice& a, const Slice& b) {
  return a.end == b.start && a.work == b.work && a.tag.microbatch == b.tag.microbatch &&
         a.tag.chunk == b.tag.chunk;
}

void merge(std::vector<Slice>& slices) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < slices.size(); ++i) {
    if (joins(slices[kept], slices[i])) {
      slices[kept].end = slices[i].end;
      slices[kept].tasks += slices[i].tasks;
    } else {
      slices[++kept] = slices[i];
    }
  }
  if (!slices.empty()) slices.resize(kept + 1);
}

std::size_t count(const std::vector<Lane>& lanes) {
  std::size_t sum = 0;
  for (const Lane& lane : lanes) sum += lane.slices.size();
  return sum;
}

Json lane_json(const Lane& lane) {
  Json numbers = Json::array();
  std::int64_t end = 0;
  for (const Slice& s : lane.slices) {
    for (const std::int64_t n : {s.start - end, s.end - s.start, static_cast<std::int64_t>(s.work),
                                 std::int64_t{s.tag.microbatch}, std::int64_t{s.tag.chunk},
                                 std::int64_t{s.tag.layer}, std::int64_t{s.tasks}})
      numbers.push_back(n);
    end = s.end;
  }
  return {{"stage", lane.stage}, {"lane", name(lane.kind)}, {"slices", numbers}};
}

Json link_json(const LinkOccupancy& link, std::vector<std::string>& users) {
  Json numbers = Json::array();
  std::int64_t before = 0;
  for (const LinkSegment& s : link.segments) {
    const std::int64_t start = nanoseconds(s.start), end = nanoseconds(s.end);
    if (start == end) continue;
    std::vector<std::string_view> names;
    for (const WorkKind user : s.users) names.push_back(name(user));
    const std::string text = listed(names, " + ");
    auto at = std::find(users.begin(), users.end(), text);
    if (at == users.end()) at = users.insert(users.end(), text);
    for (const std::int64_t n : {start - before, end - start, std::int64_t{at - users.begin()}})
      numbers.push_back(n);
    before = end;
  }
  return {{"stage", link.stage}, {"link", link.link}, {"slices", numbers}};
}

// The first stage, the last, the one between them, those between these, and so on.
std::vector<int> spread_out(int stages) {
  std::vector<int> order{0};
  std::vector<char> taken(static_cast<std::size_t>(stages));
  taken[0] = 1;
  for (int step = std::max(1, stages - 1);; step = (step + 1) / 2) {
    for (int stage = step; stage < stages; stage += step)
      if (!std::exchange(taken[static_cast<std::size_t>(stage)], 1)) order.push_back(stage);
    if (step == 1) return order;
  }
}

// The stages that are drawn: as many as have `most` slices together, the first in any case.
std::vector<char> drawn_stages(const std::vector<Lane>& lanes,
                               const std::vector<LinkOccupancy>& links, std::size_t most) {
  std::vector<std::size_t> slices;
  const auto add = [&](int stage, std::size_t n) {
    const auto place = static_cast<std::size_t>(stage);
    if (slices.size() <= place) slices.resize(place + 1);
    slices[place] += n;
  };
  for (const Lane& lane : lanes) add(lane.stage, lane.slices.size());
  for (const LinkOccupancy& link : links) add(link.stage, link.segments.size() / 2);
  std::vector<char> drawn(slices.size());
  std::size_t sum = 0;
  for (const int stage : spread_out(static_cast<int>(slices.size()))) {
    const auto place = static_cast<std::size_t>(stage);
    if (stage > 0 && sum + slices[place] > most) continue;
    sum += slices[place];
    drawn[place] = 1;
  }
  return drawn;
}

}  // namespace

Json timeline_json(const StepRecord& record, TimelineLimits limits) {
  std::vector<Lane> lanes = lanes_of(record.step);
  const bool merged = count(lanes) > limits.merged_above;
  if (merged)
    for (Lane& lane : lanes) merge(lane.slices);
  const std::vector<char> drawn = drawn_stages(lanes, record.links, limits.drawn);
  const auto is_drawn = [&](int stage) { return drawn[static_cast<std::size_t>(stage)] != 0; };
  Json kinds = Json::array(), lane_list = Json::array(), link_list = Json::array();
  for (std::size_t i = 0; i < kWorkKinds; ++i) kinds.push_back(name(static_cast<WorkKind>(i)));
  for (const Lane& lane : lanes)
    if (is_drawn(lane.stage)) lane_list.push_back(lane_json(lane));
  std::vector<std::string> users;
  for (const LinkOccupancy& link : record.links)
    if (is_drawn(link.stage)) link_list.push_back(link_json(link, users));
  return {{"end_ns", nanoseconds(record.step.timeline.makespan)},
          {"kinds", kinds},
          {"lanes", lane_list},
          {"links", link_list},
          {"users", users},
          {"merged", merged},
          {"stages_left_out", std::count(drawn.begin(), drawn.end(), 0)}};
}

}  // namespace shardwise
