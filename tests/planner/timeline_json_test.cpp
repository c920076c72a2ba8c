// The timeline of the report against the step it was made from.
#include "planner/report/timeline_json.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/planner/recorded_plans.hpp"

using namespace shardwise;

namespace {

struct Sums {
  std::int64_t slices = 0, tasks = 0, busy = 0, last = 0;
};

Sums sums_of(const Json& lane) {
  Sums s;
  const std::vector<std::int64_t> n = lane.at("slices");
  REQUIRE(n.size() % 7 == 0);
  for (std::size_t i = 0; i < n.size(); i += 7) {
    CHECK(n[i] >= 0);  // no slice begins before the one before it has ended
    CHECK(n[i + 1] > 0);
    s.last += n[i] + n[i + 1];
    s.busy += n[i + 1];
    s.tasks += n[i + 6];
    ++s.slices;
  }
  return s;
}

}  // namespace

TEST_CASE("lanes hold every task that takes time, apart and within the step", "[timeline]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Forecast f = recorded(plan);
    const PlayedStep& step = f.record->step;
    const Json timeline = timeline_json(*f.record);
    CHECK(timeline.at("end_ns").get<double>() ==
          Approx(f.step_time.expected.value * 1e9).epsilon(1e-6));
    std::int64_t tasks = 0, expected = 0;
    double busy = 0;
    for (const Json& lane : timeline.at("lanes")) {
      const Sums s = sums_of(lane);
      tasks += s.tasks;
      CHECK(s.last <= timeline.at("end_ns").get<std::int64_t>());
      if (lane.at("lane") == "compute" && lane.at("stage") == 0)
        busy = static_cast<double>(s.busy) * 1e-9;
    }
    for (std::uint32_t i = 0; i < step.graph().task_count(); ++i) {
      const TaskTimes& t = step.timeline[TaskId{i}];
      if ((t.start.picoseconds + 500) / 1000 == (t.end.picoseconds + 500) / 1000) continue;
      for (const LaneId lane : step.graph().lanes(TaskId{i})) {
        const int rank = step.graph().rank(lane);
        expected += rank % step.lowered.ranks_per_stage == 0;
      }
    }
    CHECK(tasks == expected);
    // What the rank's account calls busy, each task rounded to a nanosecond.
    Seconds account;
    const std::vector<RankSummary> ranks = summarise_ranks(step.graph(), step.timeline);
    for (const Picoseconds part : ranks.front().busy) account += seconds(part);
    CHECK(busy == Approx(account.value).epsilon(1e-4));
  }
}

TEST_CASE("merged lanes are shorter and lose no time", "[timeline]") {
  const Forecast f = recorded(recorded_plans().front());
  const Json whole = timeline_json(*f.record), merged = timeline_json(*f.record, {1, 60'000});
  CHECK_FALSE(whole.at("merged").get<bool>());
  CHECK(merged.at("merged").get<bool>());
  REQUIRE(whole.at("lanes").size() == merged.at("lanes").size());
  std::int64_t before = 0, after = 0;
  for (std::size_t i = 0; i < whole.at("lanes").size(); ++i) {
    const Sums a = sums_of(whole.at("lanes")[i]), b = sums_of(merged.at("lanes")[i]);
    CHECK(a.busy == b.busy);
    CHECK(a.last == b.last);
    CHECK(a.tasks == b.tasks);
    before += a.slices;
    after += b.slices;
  }
  CHECK(after < before);
}

TEST_CASE("a timeline that would be too large draws some stages in full", "[timeline]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Forecast f = recorded(plan);
    const Json whole = timeline_json(*f.record), first = timeline_json(*f.record, {1, 1});
    CHECK(whole.at("stages_left_out") == 0);
    CHECK(first.at("stages_left_out") == static_cast<int>(f.stages.size()) - 1);
    REQUIRE_FALSE(first.at("lanes").empty());
    for (const char* rows : {"lanes", "links"})
      for (const Json& row : first.at(rows)) CHECK(row.at("stage") == 0);
  }
}

TEST_CASE("links are in use as long as the account says", "[timeline]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    const Forecast f = recorded(plan);
    const Json timeline = timeline_json(*f.record);
    REQUIRE(timeline.at("links").size() == f.record->links.size());
    for (std::size_t i = 0; i < f.record->links.size(); ++i) {
      double expected = 0, shown = 0;
      for (const LinkSegment& s : f.record->links[i].segments) expected += (s.end - s.start).value;
      const std::vector<std::int64_t> n = timeline.at("links")[i].at("slices");
      for (std::size_t k = 0; k < n.size(); k += 3) {
        shown += static_cast<double>(n[k + 1]) * 1e-9;
        CHECK(n[k + 2] < static_cast<std::int64_t>(timeline.at("users").size()));
      }
      CHECK(shown == Approx(expected).epsilon(1e-3));
    }
  }
}
