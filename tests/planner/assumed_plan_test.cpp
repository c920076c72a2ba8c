// What is told of a plan, or a part of one, that nobody named.
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/commands/compare.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/report/output.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// How many notes hold this text.
int noted(const std::string& json, std::string_view text) {
  const Json answer = Json::parse(json);
  int many = 0;
  for (const Json& note : answer["notes"])
    many += note.get<std::string>().find(text) != std::string::npos ? 1 : 0;
  return many;
}

}  // namespace

// FSDP2 shards where nobody says a stage: its row's default is 3.
TEST_CASE("plans that are compared and are one are told") {
  const auto notes_of = [](std::vector<std::string> plans) {
    std::ostringstream out, err;
    Request r = request_for("gpt2", "2xRTX-4090", {Method::full});
    r.framework = "pytorch-fsdp2";
    r.plans = std::move(plans);
    REQUIRE(compare(r, known_facts(), false, {out, err, true}) == 0);
    return noted(out.str(), "are both dp=2,zero=3");
  };
  CHECK(notes_of({"dp=2", "dp=2,zero=3"}) == 1);
  CHECK(notes_of({"dp=2,zero=0", "dp=2,zero=3"}) == 0);
}

TEST_CASE("a simulation says where nobody named its plan") {
  for (const bool named : {false, true}) {
    std::ostringstream out, err;
    Request r = request_for("gpt2", "2xRTX-4090", {Method::full});
    if (named) r.plans = {"dp=2,zero=3"};
    REQUIRE(simulate(r, known_facts(), {}, {out, err, true}) == 0);
    CHECK(noted(out.str(), "No plan named: ") == (named ? 0 : 1));
  }
}

}  // namespace shardwise
