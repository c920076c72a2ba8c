// TaskGraph: a training step as timed tasks on in-order lanes, before anything has run.
//
// A *lane* runs one task at a time, in the order in which its tasks were added: a CUDA stream,
// the host thread of a rank, a copy engine. A *task* occupies one lane, or several at once (a
// collective over ranks, a send with its receive), for a duration that is rounded to picoseconds
// when it is added. With S(t) and E(t) the start and the end of task t,
//
//   S(t) = max( E(u) : u just before t on one of its lanes, or u a dependency of t;  0 )
//   E(t) = S(t) + duration(t)
//
// A task that occupies several lanes therefore starts when every one of them has reached it, as a
// collective does that waits for its slowest rank. A dependency may name a task added later
// (`add_dependency`): a graph may hold a cycle, and the engine reports it as a value.
//
// A task may be a *flow* (`share_links`): its duration is what it takes at the full speed of its
// class in the graph's FlowNetwork, and it ends later where others want the same links while it
// runs.
//
//   TaskGraph graph;
//   LaneId compute = graph.add_lane(0, LaneKind::compute);
//   LaneId gather = graph.add_lane(0, LaneKind::data_comm);
//   TaskId weights = graph.add(gather, WorkKind::gather_parameters, Seconds(2e-3), {.layer = 3});
//   graph.add(compute, WorkKind::forward, Seconds(5e-3), {.layer = 3}, {weights});
//
// Memory: per task 16 B (duration and first dependent), 8 B tag, 1 B kind, 4 B count of what it
// waits for, 4 B + 4 B per lane it occupies; 8 B for each dependent after the first, where the
// next task on a lane is a dependent too; 2 B where there are flows. A million tasks of one lane
// and two dependencies each take 53 MB.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/large_pages.hpp"
#include "simulator/network/flow_network.hpp"
#include "simulator/picoseconds.hpp"
#include "simulator/work_kind.hpp"

namespace shardwise {

// What a lane stands for. The order matters in one place: idle time of a rank's compute lane is
// blamed on the first of its other lanes, in this order, that is busy at that instant (see
// timeline.hpp); so what the next kernel waits for most directly comes first, and the host last.
enum class LaneKind : std::uint8_t {
  compute,
  tensor_comm,    // tensor- and sequence-parallel collectives
  context_comm,   // context parallelism: ring steps, all-gathers of keys and values, Ulysses
  expert_comm,    // token dispatch and combine
  pipeline_comm,  // activations and their gradients between stages
  pipeline_comm_backward,  // the second direction, where a framework uses two streams
  data_comm,  // parameter all-gathers and gradient reductions: one group, so one NCCL stream
              // (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, ncclStreams_ by device)
  copy_to_device,
  copy_to_host,
  host_optimizer,  // optimizer arithmetic on the CPU
  loader,
  host,  // the thread that launches kernels
};
inline constexpr std::size_t kLaneKinds = 12;

// Names as in JSON and traces: "pipeline_comm".
std::string_view name(LaneKind kind);

// Indices in order of adding, from 0.
struct LaneId {
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(LaneId, LaneId) = default;
};
struct TaskId {
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(TaskId, TaskId) = default;
};

// Where in the model and the step a task belongs, for traces. Each field is in [0, 65535]; one
// that means nothing for the kind of work stays 0.
struct TaskTag {
  int stage = 0;
  int chunk = 0;
  int microbatch = 0;
  int layer = 0;
  friend bool operator==(const TaskTag&, const TaskTag&) = default;
};

class TaskGraph {
 public:
  void reserve(std::size_t tasks, std::size_t dependencies);

  // A new in-order lane of `rank` (not negative). A rank has at most one compute lane.
  LaneId add_lane(int rank, LaneKind kind);

  // Appends a task to `lane`, after everything already on it. Durations are not negative; one
  // beyond the clock's 106 days is kept as the longest there is, and the engine reports it.
  TaskId add(LaneId lane, WorkKind work, Seconds duration, TaskTag tag = {},
             std::span<const TaskId> after = {});
  TaskId add(LaneId lane, WorkKind work, Seconds duration, TaskTag tag,
             std::initializer_list<TaskId> after);

  // Appends one task to several different lanes, which it occupies together.
  TaskId add_joint(std::span<const LaneId> lanes, WorkKind work, Seconds duration, TaskTag tag = {},
                   std::span<const TaskId> after = {});

  // `after` may not start before `before` has ended. Both exist; either may have been added first.
  void add_dependency(TaskId before, TaskId after);

  // The links that flows share, and their classes. Filled before a task names a class.
  FlowNetwork& network() { return network_; }
  const FlowNetwork& network() const { return network_; }
  // While it runs, `task` is `members` active members of the class. REQUIRES members > 0.
  void share_links(TaskId task, FlowClassId flow_class, std::int64_t members = 1);

  std::size_t task_count() const { return nodes_.size(); }
  std::size_t lane_count() const { return lanes_.size(); }
  int rank_count() const { return rank_count_; }  // 1 + the highest rank of any lane

  int rank(LaneId lane) const { return lanes_[lane.index].rank; }
  LaneKind kind(LaneId lane) const { return lanes_[lane.index].kind; }

  // Of a flow: at the full speed of its class. When it runs is in its timeline.
  Picoseconds duration(TaskId task) const {
    const Picoseconds stored = nodes_[task.index].duration;
    return stored.value < 0 ? Picoseconds(~stored.value) : stored;
  }
  bool is_flow(TaskId task) const { return nodes_[task.index].duration.value < 0; }
  struct FlowUse {
    FlowClassId flow_class;
    std::int64_t members = 1;
    friend bool operator==(const FlowUse&, const FlowUse&) = default;
  };
  const FlowUse& flow(TaskId task) const { return flow_uses_[flow_use_of_[task.index]]; }
  WorkKind work(TaskId task) const { return works_[task.index]; }
  TaskTag tag(TaskId task) const;
  std::span<const LaneId> lanes(TaskId task) const;  // in the order given, at least one

  // How many ends each task waits for, by task: those of its predecessor on each lane, and of its
  // dependencies as far as a lane's order does not imply them.
  const std::vector<std::uint32_t>& wait_counts() const { return wait_counts_; }

  // Calls visit(TaskId) for every task that waits for `task`: the first linked, then the others
  // from the last linked back. One that waits for it twice is visited twice.
  template <class Visit>
  void for_each_dependent(TaskId task, Visit visit) const {
    const Node& node = nodes_[task.index];
    if (node.dependent_plus_1 == 0) return;
    visit(TaskId{node.dependent_plus_1 - 1});
    for (std::uint32_t link = node.more_links; link != 0; link = links_[link - 1].next) {
      visit(TaskId{links_[link - 1].dependent});
    }
  }

  // Hints to the memory system, for the engine, in this order: that `task` will end soon, and what
  // its end will read. Each calls soon(dependent) where it finds one (the later dependents of the
  // few tasks that have many are left out). Always inlined: g++ 12 drops calls of a function that
  // does nothing but prefetch.
  [[gnu::always_inline]] void prefetch(TaskId task) const {
    __builtin_prefetch(&nodes_[task.index]);
  }
  template <class Soon>
  [[gnu::always_inline]] void prefetch_first_dependent(TaskId task, Soon soon) const {
    const Node& node = nodes_[task.index];
    if (node.more_links != 0) __builtin_prefetch(&links_[node.more_links - 1]);
    if (node.dependent_plus_1 == 0) return;
    prefetch(TaskId{node.dependent_plus_1 - 1});
    soon(TaskId{node.dependent_plus_1 - 1});
  }
  template <class Soon>
  [[gnu::always_inline]] void prefetch_second_dependent(TaskId task, Soon soon) const {
    const Node& node = nodes_[task.index];
    if (node.more_links == 0) return;
    const TaskId dependent{links_[node.more_links - 1].dependent};
    prefetch(dependent);
    soon(dependent);
  }

 private:
  void link(TaskId before, TaskId after);

  struct Lane {
    int rank;
    LaneKind kind;
    std::uint32_t last_task_plus_1;  // 0 while empty
  };
  // What the engine reads of a task as it starts and ends, in one place.
  struct Node {
    Picoseconds duration;            // of a flow: its bits inverted, which makes it negative
    std::uint32_t dependent_plus_1;  // 0: none
    std::uint32_t more_links;        // 1 + the index of a link; 0: no further dependent
  };
  struct Link {
    std::uint32_t dependent;
    std::uint32_t next;  // as more_links
  };

  std::vector<Lane> lanes_;
  int rank_count_ = 0;
  std::vector<bool> has_compute_;  // per rank

  LargeVector<Node> nodes_;
  LargeVector<Link> links_;
  std::vector<std::uint32_t> wait_counts_;
  std::vector<WorkKind> works_;
  std::vector<std::array<std::uint16_t, 4>> tags_;
  std::vector<std::uint32_t> first_occupancy_;  // of task t: [t], up to that of t + 1
  std::vector<LaneId> occupancies_;

  FlowNetwork network_;
  std::vector<FlowUse> flow_uses_;          // the different ones
  std::vector<std::uint16_t> flow_use_of_;  // by task, up to the last flow
};

}  // namespace shardwise
