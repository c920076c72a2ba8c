// What the allocator keeps of batches that are shorter than the longest: more, the more of them
// come before it.
#include "planner/forecast/forecast.hpp"
#include "tests/catch.hpp"
#include "tests/planner/asked_runs.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

MemoryFigures peak_of(const Question& q) {
  const auto f = forecast(q, known_facts().profile, {.time = false});
  REQUIRE(f);
  return f->stages.front().peak;
}

}  // namespace

// One shorter length is expected before the first sample that was cut, four before the longest of
// data that were not, none where all samples are packed. What is allocated is the longest's.
TEST_CASE("samples that are cut to the limit leave less behind than those left out beyond it") {
  Question q = asked("issue-lf7409-qwen2-7b-lora-1024-bs1").question;
  REQUIRE(q.workload.framework.defaults.lengths_vary);
  REQUIRE(q.workload.framework.defaults.cuts_samples);
  const MemoryFigures cut = peak_of(q);
  q.workload.framework.defaults.cuts_samples = false;
  const MemoryFigures left_out = peak_of(q);
  q.workload.framework.defaults.lengths_vary = false;
  const MemoryFigures packed = peak_of(q);
  CHECK(packed.reserved < cut.reserved);
  CHECK(cut.reserved < left_out.reserved);
  CHECK(cut.allocated == packed.allocated);
  CHECK(left_out.allocated == packed.allocated);
}

TEST_CASE("a sample that is told to be the longest was not cut") {
  CHECK_FALSE(asked("ruozhiba-qwen3-4b-lora-b8").question.workload.framework.defaults.cuts_samples);
}

}  // namespace shardwise
