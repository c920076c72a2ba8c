// The plans that compare sets side by side where none is named.
#include "planner/choice/usual_plans.hpp"

#include <algorithm>
#include <sstream>

#include "catalog/cluster_parser.hpp"
#include "planner/commands/compare.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::vector<std::string> usual_of(int experts, const char* gpus, int layers = 32) {
  Transformer model;
  model.layers = layers;
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
  // Two nodes of eight; 12 experts go over 6 of 16 ranks in no way and over 4 in equal parts. Each
  // of two stages has 8 ranks: 4 of them again, on its node and on both.
  CHECK(usual_of(12, "16xH100-SXM") == Plans{"dp=16,zero=0", "dp=16,zero=1", "dp=16,zero=2",
                                             "dp=16,zero=3", "dp=16,zero=3,shard=8", "dp=2,tp=8",
                                             "dp=2,pp=8", "dp=1,tp=8,pp=2", "dp=2,cp=8,zero=3",
                                             "dp=16,ep=4", "dp=8,pp=2,ep=4"});
  // One node: two stages of four ranks each.
  const Plans one_node = usual_of(8, "8xH100-SXM");
  REQUIRE(one_node.size() == 9);
  CHECK(one_node[7] == "dp=8,ep=8");
  CHECK(one_node[8] == "dp=4,pp=2,ep=4");
}

TEST_CASE("Usual plans of a large mixture: experts within a pipeline, no stage without a layer",
          "[usual]") {
  // 128 nodes of eight and 61 layers: the largest divisor of 128 up to 16 stages is 16, which
  // leaves 64 ranks to each. Of 256 experts 8 ranks are a node's, 64 all.
  const Plans plans = usual_of(256, "1024xH100-SXM", 61);
  CHECK(std::find(plans.begin(), plans.end(), "dp=8,tp=8,pp=16") != plans.end());
  REQUIRE(plans.size() == 12);
  CHECK(plans[9] == "dp=1024,ep=8");
  CHECK(plans[10] == "dp=64,pp=16,ep=8");
  CHECK(plans[11] == "dp=64,pp=16,ep=64");
  // 6 layers over 8 GPUs: 4 is the largest divisor of 8 that leaves none without.
  const Plans shallow = usual_of(0, "8xH100-SXM", 6);
  CHECK(std::find(shallow.begin(), shallow.end(), "dp=2,pp=4") != shallow.end());
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
