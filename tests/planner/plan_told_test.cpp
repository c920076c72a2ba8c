// Where the best plans are more than the usual framework can be told: which of them it can.
#include <algorithm>

#include "planner/answers/plan_answer.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

// Megatron-LM has no flags that recompute norms and activations, by which a 70B on 64 H100 has more
// plans faster than any other than are listed, and an 8B on 8 A100 one.
TEST_CASE("a list whose first plan cannot be told says which can") {
  struct Case {
    const char *model, *gpus;
    int batch;
  };
  bool with_number = false, without = false;
  for (const Case& c :
       {Case{"llama-3.1-70b", "64xH100-SXM", 512}, Case{"llama-3.1-8b", "8xA100-80GB", 64}}) {
    INFO(c.model);
    Request r = request_for(c.model, c.gpus, {Method::pretrain});
    r.batch = c.batch;
    PlanWish wish;
    wish.top = 4;
    const auto a = plan_answer(r, wish, known_facts());
    REQUIRE(a);
    const auto& best = (**a).result.best;
    REQUIRE(best.size() == 4);
    REQUIRE(beyond_usual(**a, best.front()));
    const auto can = std::find_if(best.begin(), best.end(), [&](const FoundPlan& p) {
      return !beyond_usual(**a, p).has_value();
    });
    const std::string end = can == best.end()
                                ? "None of these is one."
                                : "number " + std::to_string(can - best.begin() + 1) + ".";
    (can == best.end() ? without : with_number) = true;
    CHECK(std::any_of((**a).notes.begin(), (**a).notes.end(),
                      [&](const std::string& note) { return note.ends_with(end); }));
  }
  CHECK(with_number);
  CHECK(without);
}

}  // namespace shardwise
