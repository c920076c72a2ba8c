// Saving a model that is whole on every GPU for it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "planner/figures.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/small_questions.hpp"

namespace shardwise {
namespace {

constexpr Bytes byte_count(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

// A Llama 7B by FSDP's full sharding in fp32, 2,048 tokens, whole states on GPUs of 40 GB.
Question seven_billion(const char* gpus, const std::string& ranks) {
  const std::string plan = "dp=" + ranks + ",zero=3,mbs=1,ga=16,recompute=full";
  Question q = short_question("llama-7b", gpus, Method::full, "fastchat", plan.c_str());
  q.workload.sequence = 2048;
  return q;
}

bool tells_of_save(const Forecast& f) {
  return std::any_of(f.notes.begin(), f.notes.end(), [](const std::string& note) {
    return note.find("The peak is a save") != std::string::npos;
  });
}

}  // namespace

// 6,738,415,616 parameters: the clones of all of them, and the root's unit, which is let go last,
// of two tables of 32,000 x 4,096 and a norm of 4,096, 262,148,096, in fp32. Of four ranks each
// keeps a quarter of 12 bytes a parameter, 18.8 GiB, and so 18.8 + 25.1 + 1.0 = 44.9 GiB do not fit
// 40 GB, though steps do. Of eight it is 9.4 + 25.1 + 1.0 = 35.5.
TEST_CASE("a save that makes the model whole on every GPU is the peak", "[forecast]") {
  const Bytes whole = byte_count(4.0 * (6'738'415'616 + 262'148'096));
  const Forecast four = forecast_of(seven_billion("4xA100-SXM4-40GB", "4"));
  const StageForecast& s = four.worst();
  const Bytes stays = four.plays->stages.front().after_step;
  CHECK(s.save.allocated - stays == whole);
  CHECK(gib(stays) == Approx(12 * 6'738'415'616.0 / 4 / (1 << 30)).epsilon(0.01));
  CHECK(s.save_is_peak());
  CHECK(s.steps_peak.device <= s.capacity);
  CHECK(four.verdict == Verdict::does_not_fit);
  CHECK(four.margin == s.capacity - s.save.device);
  CHECK(s.needed == s.save.device);
  CHECK(tells_of_save(four));
  CHECK(std::accumulate(s.breakdown.begin(), s.breakdown.end(), std::int64_t{0}) ==
        s.peak.device.value);
  CHECK(s.breakdown[static_cast<std::size_t>(MemoryCategory::gathered_parameters)] == whole.value);

  const Forecast eight = forecast_of(seven_billion("8xA100-SXM4-40GB", "8"));
  CHECK(eight.verdict != Verdict::does_not_fit);
  CHECK(gib(eight.worst().save.allocated) == Approx(9.4 + 25.1 + 1.0).epsilon(0.01));
}

// The same framework that saves a layer at a time: then steps are the peak, and fit.
TEST_CASE("a save of one layer at a time is no peak", "[forecast]") {
  Question q = seven_billion("4xA100-SXM4-40GB", "4");
  q.workload.framework.sharding.saves_whole = false;
  const Forecast f = forecast_of(q);
  CHECK(!f.worst().save_is_peak());
  CHECK(f.worst().peak.device == f.worst().steps_peak.device);
  CHECK(f.verdict != Verdict::does_not_fit);
  CHECK(!tells_of_save(f));
}

// One rank has no shards, and its state dict is the weights themselves.
TEST_CASE("what is not sharded is saved as it lies", "[forecast]") {
  const Forecast f = forecast_of(short_question("llama-3.2-1b", "1xA100-80GB", Method::full,
                                                "fastchat", "dp=1,mbs=1,ga=1,recompute=full"));
  CHECK(f.worst().save.allocated == f.plays->stages.front().after_step);
  CHECK(!tells_of_save(f));
}

}  // namespace shardwise
