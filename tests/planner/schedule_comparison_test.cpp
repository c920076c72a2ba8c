#include "planner/forecast/schedule_comparison.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "planner/facts.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

ResolvedRequest resolved(const char* plan) {
  Request r;
  r.model = "llama-3.2-1b";
  r.gpus = "4xA100-80GB";
  r.methods = {Method::pretrain};
  r.sequence = 2048;
  r.plans = {plan};
  auto result = resolve(r, known_facts(), UnnamedMethods::one);
  REQUIRE(result);
  return *std::move(result);
}

Bytes most(const Forecast& f) {
  Bytes bytes;
  for (const StageForecast& s : f.stages) bytes = std::max(bytes, s.peak.device);
  return bytes;
}

}  // namespace

TEST_CASE("every pipeline schedule is compared, or says why it cannot run", "[schedules]") {
  const char* plan = "pp=4,mbs=1,ga=8,recompute=none";
  const ResolvedRequest r = resolved(plan);
  const auto c = compare_schedules(r, plan, std::nullopt);
  REQUIRE(c);
  std::set<std::string> names;
  for (const ScheduleRow& row : c->rows) {
    INFO(row.schedule << " x" << row.chunks);
    names.insert(row.schedule);
    CHECK(row.as_asked.has_value() == row.refused.empty());
    if (!row.as_asked) continue;
    // As asked, nothing but the schedule and its chunks differs.
    CHECK(row.as_asked->plan.schedule == row.schedule);
    CHECK(row.as_asked->plan.chunks == row.chunks);
    CHECK(row.as_asked->plan.microbatch == 1);
    CHECK(row.as_asked->plan.recompute == "none");
    if (!row.equal_memory) continue;
    CHECK(most(row.equal_memory->forecast) <= c->budget);
    CHECK(row.equal_memory->plan.global_batch() == 8);
    // Where the schedule fits as it is, its best can only be as fast or faster.
    if (most(row.as_asked->forecast) <= c->budget)
      CHECK(row.equal_memory->forecast.step_time.expected <=
            row.as_asked->forecast.step_time.expected);
  }
  for (const PipelineSchedule& schedule : pipeline_schedules())
    CHECK(names.count(std::string(schedule.name)) == (schedule.name == "sequential" ? 0 : 1));
  // The budget is what the asked plan, 1F1B, needs; so that row is found again as it was asked.
  const auto own = std::find_if(c->rows.begin(), c->rows.end(),
                                [](const ScheduleRow& row) { return row.schedule == "1f1b"; });
  REQUIRE(own != c->rows.end());
  CHECK(most(own->as_asked->forecast) == c->budget);
  CHECK(own->equal_memory.has_value());
}

TEST_CASE("more memory never makes a schedule's best slower, and too little leaves none",
          "[schedules]") {
  const char* plan = "pp=4,mbs=1,ga=8,recompute=none";
  const ResolvedRequest r = resolved(plan);
  std::vector<std::optional<Seconds>> before;
  for (const std::int64_t gib : {1, 8, 12, 24, 70}) {
    const auto c = compare_schedules(r, plan, Bytes(gib << 30));
    REQUIRE(c);
    before.resize(c->rows.size());
    for (std::size_t i = 0; i < c->rows.size(); ++i) {
      const auto& best = c->rows[i].equal_memory;
      if (gib == 1) CHECK_FALSE(best.has_value());
      CHECK((best.has_value() || !before[i].has_value()));
      if (!best) continue;
      if (before[i]) CHECK(best->forecast.step_time.expected <= *before[i]);
      before[i] = best->forecast.step_time.expected;
    }
  }
}

TEST_CASE("uneven stages keep their layers under every schedule", "[schedules]") {
  // Stages of 2, 4, 5 and 5 layers, the first of two chunks the larger half: 1 2 3 3 and 1 2 2 2.
  // Looped, stage r holds chunks r and 4 + r; in a V r and 7 - r: the second row is turned round.
  ParallelPlan asked = *parse_plan("pp=4,ga=8,layers=2/4/5/5");
  ParallelPlan changed = asked;
  changed.chunks = 2;
  changed.schedule = "interleaved";
  CHECK(layers_under(asked, changed) == std::vector<int>{1, 2, 3, 3, 1, 2, 2, 2});
  changed.schedule = "zb-v";
  CHECK(layers_under(asked, changed) == std::vector<int>{1, 2, 3, 3, 2, 2, 2, 1});
  // DualPipe's chunk c lies on stages c and 3 - c: four chunks, those of the stages.
  changed.schedule = "dualpipe";
  CHECK(layers_under(asked, changed) == std::vector<int>{2, 4, 5, 5});
  CHECK(layers_under(changed, asked) == std::vector<int>{2, 4, 5, 5});
  asked.layers_per_stage.clear();
  CHECK(layers_under(asked, changed).empty());

  const char* plan = "pp=4,mbs=1,ga=8,recompute=none,layers=2/4/5/5";
  const auto c = compare_schedules(resolved(plan), plan, std::nullopt);
  REQUIRE(c);
  for (const ScheduleRow& row : c->rows) {
    if (!row.as_asked || row.schedule == "dualpipe") continue;
    INFO(row.schedule << " x" << row.chunks);
    std::vector<int> held;
    for (const StageForecast& s : row.as_asked->forecast.stages) held.push_back(s.layers);
    CHECK(held == std::vector<int>{2, 4, 5, 5});
  }
}

// GPT-2's 12 layers on 8 stages: two chunks of each are 16, more than there are layers. What runs
// two chunks and nothing else (ZB-V, both DualPipes) or two at least has one row all the same.
TEST_CASE("a schedule whose chunks outnumber the layers still has its row", "[schedules]") {
  Request request = request_for("gpt2", "8xH100-SXM", {Method::pretrain});
  const char* plan = "pp=8,mbs=1,ga=16,recompute=none";
  request.plans = {plan};
  const ResolvedRequest r = resolved(request);
  const auto c = compare_schedules(r, plan, std::nullopt);
  REQUIRE(c);
  for (const char* name : {"interleaved", "zb-v", "dualpipe", "dualpipe-v"}) {
    INFO(name);
    const auto of_it = [&](const ScheduleRow& row) { return row.schedule == name; };
    CHECK(std::count_if(c->rows.begin(), c->rows.end(), of_it) == 1);
    const auto row = std::find_if(c->rows.begin(), c->rows.end(), of_it);
    REQUIRE(row != c->rows.end());
    CHECK(row->chunks == 2);
    CHECK(row->as_asked.has_value() == row->refused.empty());
  }
}

TEST_CASE("layers that do not fit the schedule's chunks are refused", "[schedules]") {
  for (const char* plan :
       {"pp=4,ga=8,layers=4/4/4", "pp=4,ga=8,layers=4/4/4/5", "pp=4,ga=8,layers=20/-4/0/0",
        "pp=4,vpp=2,ga=8,schedule=dualpipe,layers=2/2/2/2/2/2/2/2"}) {
    INFO(plan);
    const auto c = compare_schedules(resolved(plan), plan, std::nullopt);
    REQUIRE_FALSE(c);
    CHECK(c.error().front().what.find("layers per stage must be 4 numbers") != std::string::npos);
  }
  const auto c = compare_schedules(resolved("dp=4"), "dp=4", std::nullopt);
  REQUIRE_FALSE(c);
  CHECK(c.error().front().where == "--schedules");
}
