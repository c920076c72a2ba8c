// Several boxes side by side: `shardwise compare MODEL --gpus A --gpus B`.
#include "planner/answers/boxes_answer.hpp"

#include "planner/report/boxes_report.hpp"
#include "planner/request/named_boxes.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Request boxes_of(const char* gpus, std::vector<Method> methods) {
  Request r = request_for("smollm2-1.7b", gpus, std::move(methods));
  r.samples = 10'000;
  return r;
}

}  // namespace

TEST_CASE("boxes are parted by the words between alternatives", "[boxes]") {
  using Boxes = std::vector<std::string>;
  CHECK(named_boxes("2x3090 vs 4090") == Boxes{"2x3090", "4090"});
  CHECK(named_boxes("2 x 3090  OR rtx 4090 versus A6000") ==
        Boxes{"2 x 3090", "rtx 4090", "A6000"});
  CHECK(named_boxes("2x3090+1x4090") == Boxes{"2x3090+1x4090"});
  CHECK(named_boxes("4 nodes of 8xA100-80GB").size() == 1);
  CHECK(named_boxes("").size() == 1);
}

// Each row is what fit answers on that box alone, in the framework of two GPUs, and 10,000 samples
// of 2,048 tokens take 20.48 M tokens over its rate.
TEST_CASE("each box is answered as fit would", "[boxes]") {
  const auto a = boxes_answer(boxes_of("3090 vs 2x3090 vs 4090", {Method::lora, Method::qlora}),
                              known_facts());
  REQUIRE(a);
  REQUIRE(a->rows.size() == 6);
  const char* const gpus[] = {"3090", "2x3090", "4090"};
  for (std::size_t i = 0; i < 6; ++i) {
    const BoxRow& row = a->rows[i];
    INFO(i);
    CHECK(row.method == (i < 3 ? Method::lora : Method::qlora));
    CHECK(row.box == i % 3);
    REQUIRE(row.chosen);
    ResolvedRequest one = resolved(boxes_of(gpus[row.box], {row.method}));
    one.most_gpus = 2;
    const auto alone = choose_plan(one, row.method, one.clusters.front());
    REQUIRE(alone);
    CHECK(row.chosen->question.plan == alone->question.plan);
    CHECK(row.chosen->forecast.step_time.expected == alone->forecast.step_time.expected);
    CHECK(a->requests[row.box].tokens_in_all() == 20'480'000);
  }
  const std::string text = boxes_text(*a, std::nullopt);
  CHECK(text.find("time for 10,000 samples") != std::string::npos);
  CHECK(text.find("lora: ") != std::string::npos);
  const auto framework = [&](std::size_t i) {
    return a->rows[i].chosen->question.workload.framework.id;
  };
  CHECK(framework(0) == framework(1));
  CHECK(framework(3) == framework(5));
}

// 8.03 G weights of 16 bits are 15 GiB: LoRA of them fits no card of 12 GB, and one of 48.
TEST_CASE("what does not fit is told beside what does", "[boxes]") {
  const auto a =
      boxes_answer(request_for("8b", "3060-12gb vs A6000", {Method::lora}), known_facts());
  REQUIRE(a);
  CHECK_FALSE(a->rows[0].fits());
  CHECK(a->rows[1].fits());
  CHECK(boxes_text(*a, std::nullopt).find("lora: A6000 alone") != std::string::npos);
}

TEST_CASE("every box that is not understood is told", "[boxes]") {
  const auto a =
      boxes_answer(request_for("8b", "3091 vs 4090 vs 4091", {Method::lora}), known_facts());
  REQUIRE_FALSE(a);
  CHECK(a.error().size() == 2);
  const auto half = boxes_answer(request_for("8b", "3091 vs", {Method::lora}), known_facts());
  REQUIRE_FALSE(half);
  CHECK(half.error().front().what ==
        "\"3091 vs\" lacks a box; expected GPUs on both sides of each vs");
}

// One card beside itself takes as long.
TEST_CASE("boxes that are as fast are told so", "[boxes]") {
  const auto a = boxes_answer(boxes_of("4090 vs 4090", {Method::qlora}), known_facts());
  REQUIRE(a);
  CHECK(boxes_text(*a, std::nullopt).find("qlora: 4090 is as fast as 4090") != std::string::npos);
}

}  // namespace shardwise
