#include "planner/search/plan_warnings.hpp"

#include <algorithm>

#include "planner/answers/fit_answer.hpp"
#include "planner/answers/plan_answer.hpp"
#include "planner/figures.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::unique_ptr<PlanAnswer> planned(Request r, int batch) {
  r.batch = batch;
  r.framework = "megatron-lm";
  r.recompute = "none";
  r.microbatch = 1;
  PlanWish wish;
  wish.top = 1;
  auto a = plan_answer(r, wish, known_facts());
  REQUIRE(a);
  REQUIRE_FALSE((*a)->result.best.empty());
  return std::move(*a);
}

const std::string* warning_of(const PlanAnswer& a, const std::string& words) {
  for (const std::string& warning : a.warnings)
    if (warning.find(words) != std::string::npos) return &warning;
  return nullptr;
}

Seconds step_of(const Question& q) {
  return forecast(q, known_facts().profile)->step_time.expected;
}

}  // namespace

TEST_CASE("a box with NVLink and a batch that fills it draws no warning") {
  CHECK(planned(request_for("gpt2", "4xH100-SXM", {Method::pretrain}), 64)->warnings.empty());
}

// 1 Gb/s carries a gradient of 2 x 124 M bytes in two seconds; a node alone needs none of it.
TEST_CASE("a network that holds the plan up is told with what twice of it would bring") {
  Request r = request_for("gpt2", "2 nodes of 2xA100-80GB", {Method::pretrain});
  r.network = "ethernet-1";
  const auto a = planned(r, 8);
  const FoundPlan& best = a->result.best.front();
  const SearchSite& site = a->sites.front();
  Question q{site.space.workload(best.plan), best.plan, site.cluster};
  const Seconds now = step_of(q);
  q.cluster.network->port_bandwidth.value *= 2;
  for (NodeGroup& g : q.cluster.groups) g.node.nic_bandwidth.value *= 2;
  const double faster = now / step_of(q);
  REQUIRE(faster >= worth_telling);
  const std::string* warning = warning_of(*a, "The network between nodes");
  REQUIRE(warning != nullptr);
  CHECK(warning->find(fixed(faster, 2) + " times") != std::string::npos);
  // What is slower than one node waits for the other: most of 2 s.
  const std::string* idle = warning_of(*a, "one node of 2");
  REQUIRE(idle != nullptr);
  CHECK(idle->find(" of it is communication that nothing hides: reduce_gradients)") !=
        std::string::npos);
}

// Loaders of one sequence per second feed 8 sequences in 8 s; the step alone takes far less.
TEST_CASE("a step that waits for its data says what the loaders must do") {
  Request r = request_for("gpt2", "1xA100-80GB", {Method::pretrain});
  r.loader_sequences_per_s = 1;
  const auto a = planned(r, 8);
  CHECK(a->result.best.front().forecast.step_time.expected > Seconds(6));
  CHECK(warning_of(*a, "The step waits for its data") != nullptr);
}

// The two cases above, of the plan that `fit` chooses: one network, one loader.
TEST_CASE("fit warns of the plan that it answers with by the same rules") {
  Request r = request_for("gpt2", "2 nodes of 2xA100-80GB", {Method::full});
  r.network = "ethernet-1";
  r.batch = 8;
  const FitAnswers slow = fit_answers(resolved(r));
  REQUIRE(slow.answers.size() == 1);
  const std::vector<std::string>& warnings = slow.answers.front().warnings;
  const auto told_by = [](const std::vector<std::string>& list, const std::string& words) {
    return std::count_if(list.begin(), list.end(), [&](const std::string& warning) {
      return warning.find(words) != std::string::npos;
    });
  };
  CHECK(told_by(warnings, "The network between nodes") == 1);
  CHECK(told_by(warnings, "one node of 2") == 1);

  Request waits = request_for("gpt2", "1xA100-80GB", {Method::full});
  waits.loader_sequences_per_s = 1;
  waits.batch = 8;
  CHECK(told_by(fit_answers(resolved(waits)).answers.front().warnings, "waits for its data") == 1);

  const Request quick = request_for("gpt2", "4xH100-SXM", {Method::full});
  CHECK(fit_answers(resolved(quick)).answers.front().warnings.empty());
}

// A 3060 and a 3090 hold a 4090 up: the box is slower than that card alone.
TEST_CASE("a box of unlike cards is held against its cards of one kind") {
  Request r = request_for("llama-3.1-8b", "3090+4090+3060", {Method::qlora});
  r.framework = "fsdp_qlora";
  const FitAnswers box = fit_answers(resolved(r));
  REQUIRE(box.answers.size() == 1);
  Request alone = request_for("llama-3.1-8b", "4090", {Method::qlora});
  alone.framework = "fsdp_qlora";
  alone.batch = box.answers.front().chosen.question.plan.global_batch();
  const Seconds together = box.answers.front().chosen.forecast.step_time.expected;
  REQUIRE(fit_answers(resolved(alone)).answers.front().chosen.forecast.step_time.expected <
          together);
  const std::vector<std::string>& warnings = box.answers.front().warnings;
  CHECK(std::count_if(warnings.begin(), warnings.end(), [](const std::string& warning) {
          return warning.find("one GeForce RTX 4090 without the others") != std::string::npos;
        }) == 1);
  Request alike = request_for("llama-3.1-8b", "2x3090+2x3090", {Method::qlora});
  const FitAnswers equal_cards = fit_answers(resolved(alike));
  for (const std::string& warning : equal_cards.answers.front().warnings)
    CHECK(warning.find("without the others") == std::string::npos);
}

}  // namespace shardwise
