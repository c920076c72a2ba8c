// Host RAM that somebody has stated decides which plan is chosen, and what is told of the others.
#include "tests/catch.hpp"
#include "tests/planner/chosen_plan.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::string told_with(const ChosenPlan& c, const std::string& words) {
  for (const std::string& note : c.notes)
    if (note.find(words) != std::string::npos) return note;
  return "";
}

}  // namespace

// Eight ranks that read a 70B model each for itself take some 70 GiB of a host's RAM: with 64, what
// is left is a split over cards that take turns, of which one works at a time.
TEST_CASE("a plan that lacks nothing but host RAM is told of where it is so much faster") {
  Request request = request_for("70b", "8x4090", {Method::qlora});
  request.host_ram = Bytes(std::int64_t{64} << 30);
  const ChosenPlan poor = chosen(request);
  CHECK(poor.question.plan.layer_split);
  const std::string note = told_with(poor, "Faster with more host RAM");
  CHECK(note.find("dp=8,zero=3") != std::string::npos);
  CHECK(note.find("instead of 64.0 GiB") != std::string::npos);
  request.host_ram = Bytes(std::int64_t{256} << 30);
  const ChosenPlan rich = chosen(request);
  CHECK(rich.question.plan.zero_stage == 3);
  CHECK(told_with(rich, "more host RAM").empty());
}

}  // namespace shardwise
