#include "planner/report/trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/planner/recorded_plans.hpp"

using namespace shardwise;
using TraceJson = nlohmann::json;

namespace {

std::int64_t picoseconds(const TraceJson& microseconds) {
  return std::llround(microseconds.get<double>() * 1e6);
}

struct Slice {
  std::int64_t start, end;
  std::string kind;
};
using Track = std::pair<int, int>;  // process, thread

struct ReadTrace {
  std::map<Track, std::vector<Slice>> slices;
  std::map<Track, std::string> threads;
  std::map<int, std::string> processes;
  std::map<int, std::vector<TraceJson>> memory;  // counters, by process
  std::map<std::pair<int, std::string>, std::vector<TraceJson>> link_counters;
  std::map<int, std::vector<TraceJson>> arrows;  // by number
  bool valid = true;
};

bool has(const TraceJson& e, std::initializer_list<const char*> keys) {
  return std::all_of(keys.begin(), keys.end(), [&](const char* k) { return e.contains(k); });
}

void read_metadata(const TraceJson& e, ReadTrace& trace) {
  const std::string what = e.at("name");
  const Track track{e.at("pid"), e.at("tid")};
  static const std::set<std::string> known{"process_name", "process_sort_index", "thread_name",
                                           "thread_sort_index"};
  trace.valid = trace.valid && known.count(what) == 1 && e.at("args").is_object();
  if (what == "thread_name") trace.threads[track] = e.at("args").at("name");
  if (what == "process_name") trace.processes[track.first] = e.at("args").at("name");
}

// Every kind of event that the writer has, with the fields that the format asks of it.
void read_event(const TraceJson& e, ReadTrace& trace) {
  trace.valid = trace.valid && has(e, {"ph", "name", "pid"});
  const std::string phase = e.at("ph");
  if (phase == "M") return read_metadata(e, trace);
  trace.valid = trace.valid && has(e, {"ts"}) && e.at("ts").is_number() && e.at("ts") >= 0;
  if (phase == "X") {
    trace.valid = trace.valid && has(e, {"dur", "tid", "cat"}) && e.at("dur") > 0;
    const std::int64_t start = picoseconds(e.at("ts"));
    trace.slices[{e.at("pid"), e.at("tid")}].push_back(
        {start, start + picoseconds(e.at("dur")), e.at("cat")});
  } else if (phase == "C") {
    for (const auto& [key, value] : e.at("args").items())
      trace.valid = trace.valid && value.is_number() && value >= 0;
    if (e.at("name") == "memory_gib")
      trace.memory[e.at("pid")].push_back(e);
    else
      trace.link_counters[{e.at("pid"), e.at("name")}].push_back(e);
  } else if (phase == "s" || phase == "f") {
    trace.valid =
        trace.valid && has(e, {"id", "tid", "cat"}) && (phase == "s" || e.at("bp") == "e");
    trace.arrows[e.at("id")].push_back(e);
  } else {
    trace.valid = false;
  }
}

ReadTrace read_trace(const Forecast& f) {
  std::ostringstream out;
  write_trace(*f.record, out);
  const TraceJson document = TraceJson::parse(out.str());
  ReadTrace trace;
  trace.valid = document.at("traceEvents").is_array() && !document.at("traceEvents").empty();
  for (const TraceJson& e : document.at("traceEvents")) read_event(e, trace);
  return trace;
}

std::map<std::string, std::int64_t> sums(const std::vector<Slice>& slices) {
  std::map<std::string, std::int64_t> by_kind;
  for (const Slice& s : slices) by_kind[s.kind] += s.end - s.start;
  return by_kind;
}

}  // namespace

TEST_CASE("traces are valid trace-event JSON whose tracks are named and never overlap", "[trace]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Forecast f = recorded(plan);
    ReadTrace trace = read_trace(f);
    CHECK(trace.valid);
    const std::int64_t step = f.record->step.timeline.makespan.picoseconds;
    std::int64_t last = 0;
    for (auto& [track, slices] : trace.slices) {
      CHECK(trace.threads.count(track) == 1);
      CHECK(trace.processes.count(track.first) == 1);
      std::sort(slices.begin(), slices.end(),
                [](const Slice& a, const Slice& b) { return a.start < b.start; });
      bool apart = true;
      for (std::size_t i = 1; i < slices.size(); ++i)
        apart = apart && slices[i - 1].end <= slices[i].start;
      CHECK(apart);
      last = std::max(last, slices.back().end);
    }
    CHECK(last == step);
  }
}

TEST_CASE("the sums of a trace are the forecast's, to the picosecond", "[trace]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Forecast f = recorded(plan);
    const PlayedStep& step = f.record->step;
    const ReadTrace trace = read_trace(f);
    const auto ranks = summarise_ranks(step.graph(), step.timeline);
    bool slowest_found = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::map<std::string, std::int64_t> found, expected;
      for (const auto& [track, name] : trace.threads)
        if (track.first == static_cast<int>(rank) && name == "compute")
          found = sums(trace.slices.at(track));
      for (std::size_t w = 0; w < kWorkKinds; ++w)
        if (ranks[rank].busy[w].value > 0)
          expected[std::string(name(static_cast<WorkKind>(w)))] = ranks[rank].busy[w].value;
      CHECK(found == expected);
      std::map<std::string, std::int64_t> told;  // by the forecast, of its slowest rank
      for (const auto& [kind, t] : f.breakdown.compute) told[kind] = std::llround(t.value * 1e12);
      slowest_found = slowest_found || found == told;
    }
    CHECK(slowest_found);
  }
}

TEST_CASE("memory counters reach the forecast's steady peak and stay below the reserved",
          "[trace]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Forecast f = recorded(plan);
    const ReadTrace trace = read_trace(f);
    REQUIRE(trace.memory.size() == f.stages.size());
    for (std::size_t stage = 0; stage < f.stages.size(); ++stage) {
      const auto& samples = trace.memory.at(f.record->step.rank_of_stage(static_cast<int>(stage)));
      double most = 0, before = -1;
      bool in_order = true;
      for (const TraceJson& e : samples) {
        most = std::max(most, e.at("args").at("allocated").get<double>());
        in_order = in_order && e.at("ts").get<double>() > before;
        before = e.at("ts");
      }
      CHECK(in_order);
      CHECK(samples.front().at("ts") == 0.0);
      // Rounded to a thousandth of a GiB.
      CHECK(most == Approx(static_cast<double>(f.stages[stage].steady_peak.allocated.value) /
                           (1024.0 * 1024.0 * 1024.0))
                        .margin(0.00051));
    }
  }
}

TEST_CASE("link counters follow the slices of their link", "[trace]") {
  std::set<std::string> links;
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Forecast f = recorded(plan);
    const ReadTrace trace = read_trace(f);
    for (const auto& [track, name] : trace.threads) {
      if (name.rfind("link: ", 0) != 0) continue;
      const std::string link = name.substr(6);
      links.insert(link);
      std::int64_t counted = 0, since = 0;
      bool busy = false;
      for (const TraceJson& e : trace.link_counters.at({track.first, "uses of " + link})) {
        const std::int64_t at = picoseconds(e.at("ts"));
        if (busy) counted += at - since;
        busy = e.at("args").at("tasks") > 0;
        since = at;
      }
      std::int64_t sliced = 0;
      for (const Slice& s : trace.slices.at(track)) sliced += s.end - s.start;
      CHECK_FALSE(busy);
      CHECK(counted == sliced);
    }
  }
  CHECK(links ==
        std::set<std::string>{"NVLink", "PCIe through host memory", "host memory", "network"});
}

TEST_CASE("arrows join tasks of the critical path, the end of one to the start of the next",
          "[trace]") {
  const Forecast f = recorded(recorded_plans().front());
  const ReadTrace trace = read_trace(f);
  CHECK_FALSE(trace.arrows.empty());
  for (const auto& [number, ends] : trace.arrows) {
    REQUIRE(ends.size() == 2);
    CHECK(ends[0].at("ph") == "s");
    CHECK(ends[1].at("ph") == "f");
    // The tail lies a picosecond before the end, so that viewers find the slice it leaves.
    CHECK(picoseconds(ends[1].at("ts")) == picoseconds(ends[0].at("ts")) + 1);
    for (const TraceJson& e : ends) {
      const std::int64_t at = picoseconds(e.at("ts"));
      const auto& slices = trace.slices.at({e.at("pid"), e.at("tid")});
      CHECK(std::any_of(slices.begin(), slices.end(),
                        [&](const Slice& s) { return s.start <= at && at < s.end; }));
    }
  }
}
