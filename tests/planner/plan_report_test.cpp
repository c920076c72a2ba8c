#include "planner/report/plan_report.hpp"

#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::unique_ptr<PlanAnswer> plan_answer(const char* model, const char* gpus) {
  Request r = request_for(model, gpus, {Method::pretrain});
  r.batch = 16;
  auto a = plan_answer(r, {}, known_facts());
  REQUIRE(a);
  return *std::move(a);
}

std::int64_t whole_number(const Json& j, const char* key) {
  REQUIRE(j.at(key).is_number_integer());
  return j.at(key).get<std::int64_t>();
}

}  // namespace

TEST_CASE("the JSON of plan leaves plans out for the reasons that its text tells", "[search]") {
  // 70 B weights in 16 bits alone are 140 GB: nothing fits one card of 24.
  for (const auto& [model, gpus] : {std::pair{"gpt2", "2xA100-80GB"}, {"70b", "2xRTX-4090"}}) {
    INFO(model);
    const auto a = plan_answer(model, gpus);
    const std::string text = plan_text(*a);
    const Json j = plan_json(*a), &out = j["pruned"];
    const std::int64_t no_better = whole_number(out, "no_better"),
                       too_large = whole_number(out, "too_large");
    INFO(text);
    const auto sets = [&](const char* key) {
      const std::int64_t n = whole_number(out, key);
      return n > 0 ? sentence(" (", grouped(n), " in sets)") : std::string();
    };
    if (a->result.best.empty()) {
      CHECK(no_better == 0);
      CHECK(text.find(sentence(grouped(too_large), " too large", sets("too_large_in_sets"))) !=
            std::string::npos);
    } else {
      CHECK(text.find(sentence(grouped(no_better), " no better", sets("no_better_in_sets"), ", ",
                               grouped(too_large), " too large")) != std::string::npos);
    }
    CHECK(text.find("(0.0 M") == std::string::npos);
    CHECK(text.find("(0 in sets)") == std::string::npos);
    // Every legal plan is forecast, refused or left out.
    CHECK(whole_number(j, "considered") == a->result.proof.begun +
                                               whole_number(out, "refused_by_framework") +
                                               no_better + too_large);
    CHECK(whole_number(j, "combinations") >= whole_number(j, "considered"));
    CHECK(a->result.best.empty() == (std::string(model) == "70b"));
  }
}

}  // namespace shardwise
