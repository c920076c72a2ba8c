// The plans that compare sets side by side where none is named.
#include "planner/choice/usual_plans.hpp"

#include <sstream>

#include "catalog/cluster_parser.hpp"
#include "planner/commands/compare.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::vector<std::string> usual_of(int experts, const char* gpus) {
  Transformer model;
  if (experts > 0) model.moe.emplace().experts = experts;
  const auto clusters = parse_gpus(known_facts().catalog, gpus);
  REQUIRE(clusters);
  return usual_plans(model, clusters->front());
}

using Plans = std::vector<std::string>;

}  // namespace

TEST_CASE("Usual plans: every stage of ZeRO, and a node's worth of each other kind", "[usual]") {
  CHECK(usual_of(0, "1xH100-SXM").empty());
  CHECK(usual_of(0, "8xH100-SXM") == Plans{"dp=8,zero=0", "dp=8,zero=1", "dp=8,zero=2",
                                           "dp=8,zero=3", "dp=1,tp=8", "dp=1,pp=8",
                                           "dp=1,cp=8,zero=3"});
  // Two nodes of eight; 12 experts go over 6 of 16 ranks in no way and over 4 in equal parts.
  CHECK(usual_of(12, "16xH100-SXM") == Plans{"dp=16,zero=0", "dp=16,zero=1", "dp=16,zero=2",
                                             "dp=16,zero=3", "dp=16,zero=3,shard=8", "dp=2,tp=8",
                                             "dp=2,pp=8", "tp=8,pp=2", "dp=2,cp=8,zero=3",
                                             "dp=16,ep=4"});
}

TEST_CASE("compare without a plan answers with the usual ones, and says so", "[usual]") {
  std::ostringstream out, err;
  const Output output{out, err, true};
  CHECK(compare(request_for("gpt2", "2xRTX-4090", {Method::pretrain}), known_facts(), false,
                output) == 0);
  INFO(err.str());
  const Json answer = Json::parse(out.str());
  CHECK(answer["plans"].size() == 7);
  CHECK(answer["request"]["assumed"]["plans"].size() == 7);
  CHECK(out.str().find("No --plan") != std::string::npos);
}

}  // namespace shardwise
