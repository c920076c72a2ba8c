#include "planner/advice/why_not.hpp"

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

using namespace shardwise;

namespace {

struct Reference {
  ResolvedRequest request;
  Question question;
  Forecast forecast;

  WhyNot why_not(const std::string& text) const {
    return shardwise::why_not(request, {question, forecast, forecast.verdict}, text);
  }
};

// llama-2-13b in full on 8 x A100-80GB with FSDP: fits.
const Reference& reference() {
  static const Reference known = [] {
    Reference r;
    Request asked = request_for("13b", "8xA100-80GB", {Method::full});
    r.request = resolved(asked);
    const Cluster& cluster = r.request.clusters.front();
    const ChosenWorkload w = choose_workload(r.request, Method::full, cluster, 3);
    r.question = {w.workload, *complete_plan(r.request, w.workload, cluster, "dp=8,zero=3"),
                  cluster};
    r.forecast = *forecast(r.question, r.request.facts->profile);
    return r;
  }();
  return known;
}

}  // namespace

TEST_CASE("a plan that cannot run tells every rule that it breaks", "[why_not]") {
  const WhyNot w = reference().why_not("tp=3");
  CHECK_FALSE(w.verdict);
  REQUIRE_FALSE(w.reasons.empty());
  for (const std::string& reason : w.reasons) CHECK(reason.starts_with("It cannot run: "));
  CHECK_FALSE(reference().why_not("no plan at all").reasons.empty());
}

TEST_CASE("a plan that overflows tells by how much and mostly of what", "[why_not]") {
  // Unsharded: 13.0 B x (4 + 4 + 8) B = 194 GiB of states on each GPU of 80 GB.
  const WhyNot w = reference().why_not("dp=8,zero=0");
  REQUIRE(w.verdict);
  CHECK(*w.verdict == Verdict::does_not_fit);
  CHECK(w.reasons.front().starts_with("It does not fit: "));
  CHECK(w.memory_difference > Bytes(0));
  Bytes sum;
  for (const auto& [part, bytes] : w.memory_parts) sum += bytes;
  CHECK(sum == w.memory_difference);
}

TEST_CASE("the parts of a slower step add up to what it loses", "[why_not]") {
  const WhyNot w = reference().why_not("tp=8");
  REQUIRE(w.time_ratio);
  const double step = reference().forecast.step_time.expected.value;
  double sum = 0;
  for (const auto& [part, t] : w.time_parts) sum += t.value;
  CHECK(sum == Approx((*w.time_ratio - 1) * step).epsilon(1e-6));
  CHECK(*w.time_ratio > 1);
  CHECK(w.reasons.back().starts_with("It takes "));
}

TEST_CASE("the plan itself is neither worse nor better", "[why_not]") {
  const WhyNot w = reference().why_not("dp=8,zero=3");
  CHECK(w.memory_difference == Bytes(0));
  CHECK(*w.time_ratio == Approx(1));
  CHECK(w.time_parts.empty());
}
