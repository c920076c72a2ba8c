// How fast the engine plays events, against the least that any event loop must do.
//
//   engine_tasks_per_second  `run` on the 1F1B step of many pipelines: tasks / processor time
//   heap_events_per_second   a bare std::priority_queue as deep as the engine's queue gets (one
//                            event in flight per rank), the same number of pop + push with the
//                            same durations, and no other work
//
// Durations differ by rank and task, as on a real cluster; equal ones would make ties, which are
// easier. The graph is built outside the clock. Each figure is the best of several repetitions, in
// which the two take turns.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <queue>
#include <random>
#include <variant>
#include <vector>

#include "catalog/require.hpp"
#include "simulator/step/engine.hpp"
#include "tests/simulator/lower_slots.hpp"

namespace {

using namespace shardwise;

constexpr PipelineShape kShape{.stages = 16, .chunks_per_stage = 1, .microbatches = 64};
constexpr int kPipelines = 1024;  // 16,384 ranks
constexpr int kRepetitions = 7;

// Of the process, which has one thread: what else the machine does counts less than on the wall.
Seconds processor_time() {
  return Seconds(static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC));
}

template <class Work>
Seconds time_of(Work work) {
  const Seconds begin = processor_time();
  work();
  return processor_time() - begin;
}

TaskGraph build() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> jitter(0.9, 1.1);
  TaskGraph graph;
  SlotLowering lowering(*find_pipeline_schedule("1f1b"), kShape);
  for (int pipeline = 0; pipeline < kPipelines; ++pipeline) {
    const double scale = jitter(random) * 1e-3;
    lowering.add_to(graph,
                    {.forward = Seconds(scale),
                     .backward_input = Seconds(scale),
                     .backward_weight = Seconds(1.1 * scale),
                     .pair = std::nullopt},
                    pipeline * kShape.stages);
  }
  return graph;
}

struct HeapEvent {
  std::int64_t time;
  std::uint32_t sequence;
  std::uint32_t task;
  friend bool operator>(const HeapEvent& a, const HeapEvent& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }
};

std::int64_t bare_heap_loop(const TaskGraph& graph, std::uint32_t depth) {
  std::priority_queue<HeapEvent, std::vector<HeapEvent>, std::greater<>> queue;
  const auto tasks = static_cast<std::uint32_t>(graph.task_count());
  std::uint32_t task = 0;
  for (; task < depth; ++task) queue.push({graph.duration(TaskId{task}).value, task, task});
  std::int64_t now = 0;
  while (!queue.empty()) {
    now = queue.top().time;
    queue.pop();
    if (task < tasks) {
      queue.push({now + graph.duration(TaskId{task}).value, task, task});
      ++task;
    }
  }
  return now;
}

void print(const char* name, double value, const char* unit, const char* note) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"note\": "
      "\"%s\"}\n",
      name, value, unit, note);
}

}  // namespace

int main() {
  const TaskGraph graph = build();
  const auto tasks = static_cast<double>(graph.task_count());

  SimTime makespan;
  std::int64_t heap_end = 0;
  const auto depth = static_cast<std::uint32_t>(graph.lane_count());
  Seconds engine(1e9);
  Seconds heap(1e9);
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    engine = std::min(engine, time_of([&] { makespan = std::get<Timeline>(run(graph)).makespan; }));
    heap = std::min(heap, time_of([&] { heap_end = bare_heap_loop(graph, depth); }));
  }
  require(makespan > SimTime{} && heap_end > 0, "both loops have played events");

  char note[128];
  std::snprintf(note, sizeof note, "%zu tasks, %zu ranks, 1f1b, one core", graph.task_count(),
                graph.lane_count());
  print("engine_tasks_per_second", tasks / engine.value, "1/s", note);
  print("heap_events_per_second", tasks / heap.value, "1/s",
        "std::priority_queue, same depth and durations");
}
