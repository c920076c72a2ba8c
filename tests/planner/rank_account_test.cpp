#include "planner/forecast/rank_account.hpp"

#include <numeric>

#include "tests/planner/recorded_plans.hpp"
#include "tests/simulator/played_slots.hpp"

using namespace shardwise;

namespace {

Seconds sum_of_times(const std::map<std::string, Seconds>& times) {
  return std::accumulate(times.begin(), times.end(), Seconds(0),
                         [](Seconds s, const auto& t) { return s + t.second; });
}

}  // namespace

TEST_CASE("each stage's busy, exposed and bubble time make the step; its idle time is the rest") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.plan);
    const Forecast f = recorded(plan);
    const double step = f.step_time.expected.value;
    Seconds path;
    const auto accounts = rank_accounts(f.record->step);
    CHECK(accounts.size() == f.stages.size());
    for (const RankAccount& a : accounts) {
      CHECK((sum_of_times(a.busy) + sum_of_times(a.exposed) + a.bubble).value ==
            Approx(step).epsilon(1e-9));
      CHECK((sum_of_times(a.busy) + a.idle).value == Approx(step).epsilon(1e-9));
      path += sum_of_times(a.critical);
    }
    CHECK(path.value == Approx(step).epsilon(1e-9));
    CHECK(sum_of_times(f.critical_path).value == Approx(step).epsilon(1e-9));
  }
}

TEST_CASE(
    "the critical path is told in parts, without gaps from the start of the step to its end") {
  for (const RecordedPlan& plan : recorded_plans()) {
    const Forecast f = recorded(plan);
    SimTime at;
    bool gapless = true;
    for (const PathPart& part : path_parts(f.record->step)) {
      gapless = gapless && part.start == at && part.end > part.start && part.tasks > 0;
      at = part.end;
    }
    CHECK(gapless);
    CHECK(at == f.record->step.timeline.makespan);
  }
}

TEST_CASE("GPipe's critical path with equal stages goes down the pipeline and back") {
  // p = 2, m = 2, f = 3, b = 6: F0 on stage 0 (0-3), F0 and F1 on stage 1 (3-9), then B0 on stage 1
  // (9-15) and, in the order of events, B0 and B1 on stage 0 (15-27): 3 + 6 + 6 + 12 = 27 ps.
  const auto parts = path_parts(played_slots("gpipe", {2, 1, 2}, 3, 3, 3));
  REQUIRE(parts.size() == 4);
  CHECK(parts[0].stage == 0);
  CHECK(parts[1].stage == 1);
  CHECK(parts[1].work == WorkKind::forward);
  CHECK(parts[1].first_microbatch == 0);
  CHECK(parts[1].last_microbatch == 1);
  CHECK(parts[2].work == WorkKind::backward);
  CHECK(parts[2].stage == 1);
  CHECK(parts[3].stage == 0);
  CHECK(parts[3].tasks == 2);
  CHECK(parts[3].end.picoseconds == 27);
}
