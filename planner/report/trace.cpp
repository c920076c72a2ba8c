#include "planner/report/trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "planner/report/json_parts.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// Microseconds as the format has them, without the rounding of a double.
std::string microseconds(std::int64_t picoseconds) {
  std::string fraction = std::to_string(picoseconds % 1'000'000);
  fraction.insert(0, 6 - fraction.size(), '0');
  return sentence(picoseconds / 1'000'000, ".", fraction);
}

// "F12", "B3'": as the drawing names them; other work by its name.
std::string task_title(const TaskGraph& graph, TaskId task) {
  const TaskTag tag = graph.tag(task);
  const WorkKind work = graph.work(task);
  const std::string where =
      std::to_string(tag.microbatch) + std::string(static_cast<std::size_t>(tag.chunk), '\'');
  switch (work) {
    case WorkKind::forward:
      return "F" + where;
    case WorkKind::backward:
      return "B" + where;
    case WorkKind::backward_weight:
      return "W" + where;
    case WorkKind::recompute:
      return "R" + where;
    default:
      return std::string(name(work));
  }
}

class TraceWriter {
 public:
  TraceWriter(const StepRecord& record, std::ostream& out)
      : record_(record), graph_(record.step.graph()), out_(out) {}

  void write() {
    out_ << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    processes();
    threads();
    slices();
    links();
    memory();
    arrows();
    out_ << "\n]}\n";
  }

 private:
  int ranks_per_stage() const { return record_.step.lowered.ranks_per_stage; }
  // Threads of a process: its lanes by their number in the graph, then its links.
  std::size_t lane_thread(LaneId lane) const { return lane.index + 1; }
  std::size_t link_thread(std::size_t link) const { return graph_.lane_count() + 1 + link; }
  int link_process(const LinkOccupancy& link) const {
    return record_.step.rank_of_stage(link.stage);
  }

  void event(const Json& fields, const std::string& times = "") {
    std::string text = fields.dump();
    if (!times.empty()) {
      text.pop_back();
      text += times + "}";
    }
    out_ << (first_ ? "" : ",\n") << text;
    first_ = false;
  }

  void metadata(std::string_view what, int process, std::size_t thread, const Json& arguments) {
    event({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", arguments}});
  }

  void processes() {
    for (int rank = 0; rank < graph_.rank_count(); ++rank) {
      std::string text = sentence("stage ", rank / ranks_per_stage());
      if (ranks_per_stage() > 1) text += sentence(", replica ", rank % ranks_per_stage());
      metadata("process_name", rank, 0, {{"name", text}});
      metadata("process_sort_index", rank, 0, {{"sort_index", rank}});
    }
  }

  void thread(int process, std::size_t number, const std::string& text, std::size_t order) {
    metadata("thread_name", process, number, {{"name", text}});
    metadata("thread_sort_index", process, number, {{"sort_index", order}});
  }

  void threads() {
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
      const LaneId lane{i};
      thread(graph_.rank(lane), lane_thread(lane), std::string(name(graph_.kind(lane))),
             static_cast<std::size_t>(graph_.kind(lane)));
    }
    for (std::size_t i = 0; i < record_.links.size(); ++i)
      thread(link_process(record_.links[i]), link_thread(i), "link: " + record_.links[i].link,
             kLaneKinds + i);
  }

  static std::string span(SimTime start, SimTime end) {
    return sentence(",\"ts\":", microseconds(start.picoseconds),
                    ",\"dur\":", microseconds(end.picoseconds - start.picoseconds));
  }
  static std::string instant(SimTime at) { return ",\"ts\":" + microseconds(at.picoseconds); }

  void slices() {
    for (std::uint32_t i = 0; i < graph_.task_count(); ++i) {
      const TaskId task{i};
      const TaskTimes& times = record_.step.timeline[task];
      if (times.end == times.start) continue;
      const TaskTag tag = graph_.tag(task);
      for (const LaneId lane : graph_.lanes(task))
        event({{"ph", "X"},
               {"name", task_title(graph_, task)},
               {"cat", name(graph_.work(task))},
               {"pid", graph_.rank(lane)},
               {"tid", lane_thread(lane)},
               {"args",
                {{"stage", tag.stage},
                 {"chunk", tag.chunk},
                 {"microbatch", tag.microbatch},
                 {"layer", tag.layer}}}},
              span(times.start, times.end));
    }
  }

  void links() {
    for (std::size_t i = 0; i < record_.links.size(); ++i) {
      const LinkOccupancy& link = record_.links[i];
      SimTime idle_since;
      for (const LinkSegment& segment : link.segments) {
        if (segment.start != idle_since) link_users(link, idle_since, 0);
        std::vector<std::string_view> users;
        for (const WorkKind user : segment.users) users.push_back(name(user));
        event({{"ph", "X"},
               {"name", listed(users, " + ")},
               {"cat", "link"},
               {"pid", link_process(link)},
               {"tid", link_thread(i)}},
              span(segment.start, segment.end));
        link_users(link, segment.start, segment.users.size());
        idle_since = segment.end;
      }
      link_users(link, idle_since, 0);
    }
  }

  void link_users(const LinkOccupancy& link, SimTime at, std::size_t users) {
    event({{"ph", "C"},
           {"name", "uses of " + link.link},
           {"pid", link_process(link)},
           {"args", {{"tasks", users}}}},
          instant(at));
  }

  void memory() {
    for (std::size_t stage = 0; stage < record_.memory.size(); ++stage)
      for (const MemorySample& sample : record_.memory[stage])
        event({{"ph", "C"},
               {"name", "memory_gib"},
               {"pid", record_.step.rank_of_stage(static_cast<int>(stage))},
               {"args",
                {{"allocated", json_gib(sample.allocated)},
                 {"reserved_only", json_gib(sample.reserved - sample.allocated)}}}},
              instant(sample.at));
  }

  // From the end of one task to the start of the next; both slices are on the critical path.
  void arrows() {
    std::vector<TaskId> path;
    for (const TaskId t : critical_path(graph_, record_.step.timeline))
      if (record_.step.timeline[t].end != record_.step.timeline[t].start) path.push_back(t);
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      if (graph_.lanes(path[i]).front() == graph_.lanes(path[i + 1]).front()) continue;
      // Viewers attach an arrow to the slice that holds its time: just before the end.
      const SimTime from{record_.step.timeline[path[i]].end.picoseconds - 1};
      arrow("s", path[i], from, i);
      arrow("f", path[i + 1], record_.step.timeline[path[i + 1]].start, i);
    }
  }

  void arrow(const char* phase, TaskId task, SimTime at, std::size_t number) {
    const LaneId lane = graph_.lanes(task).front();
    Json fields = {{"ph", phase},
                   {"id", number},
                   {"name", "critical path"},
                   {"cat", "critical"},
                   {"pid", graph_.rank(lane)},
                   {"tid", lane_thread(lane)}};
    if (*phase == 'f') fields["bp"] = "e";
    event(fields, instant(at));
  }

  const StepRecord& record_;
  const TaskGraph& graph_;
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

void write_trace(const StepRecord& record, std::ostream& out) { TraceWriter(record, out).write(); }

}  // namespace shardwise
