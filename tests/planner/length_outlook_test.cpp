// What the lengths of samples make of a step, by hand: each figure follows from forecasts of the
// same plan at the lengths of its batches.
#include "planner/answers/length_outlook.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct AskedLengths {
  ResolvedRequest request;
  Question question;
  Forecast forecast;
};

class LengthsFile {
 public:
  explicit LengthsFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("shardwise-lengths-" + std::to_string(getpid()))) {
    std::ofstream(path_) << text;
  }
  ~LengthsFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

AskedLengths asked_of(const std::string& gpus, const std::string& plan, const std::string& lengths,
                      std::optional<int> sequence = std::nullopt,
                      const char* framework = "hf-trainer") {
  const LengthsFile file(lengths);
  Request request = request_for("llama-3.2-1b", gpus, {Method::full});
  request.framework = framework;
  request.lengths = file.path();
  request.sequence = sequence;
  ResolvedRequest r = resolved(request);
  const Cluster cluster = r.clusters.front();
  const Workload w = choose_workload(r, Method::full, cluster, 0).workload;
  Question q{w, *complete_plan(r, w, cluster, plan), cluster};
  Forecast f = *forecast(q, known_facts().profile);
  return {std::move(r), std::move(q), std::move(f)};
}

Seconds step_at(const AskedLengths& a, int length) {
  Question q = a.question;
  q.workload.sequence = length;
  return forecast(q, known_facts().profile)->step_time.expected;
}

LengthOutlook outlook_of(const AskedLengths& a) {
  return *length_outlook(a.request, a.question, a.forecast);
}

}  // namespace

TEST_CASE("samples of one length are the forecast as it stands") {
  const AskedLengths a = asked_of("H100-SXM", "dp=1,mbs=2,ga=2", "1024\n1024\n1024\n1024\n", 4096);
  const LengthOutlook o = outlook_of(a);
  CHECK(a.request.sequence == 1024);  // no batch is longer
  REQUIRE(o.padded);
  CHECK(o.padded->padding == 0);
  CHECK(o.padded->step.value == Approx(a.forecast.step_time.expected.value));
  CHECK(o.padded->tokens_per_s == Approx(o.packed_tokens_per_s));
}

// Both samples are in every batch, which is as long as the longer: 2 x 1,024 tokens computed for
// 256 + 1,024, so 768 of 2,048 are padding; packed, the same time would be for all 2,048.
TEST_CASE("a batch is as long as its longest sample") {
  const AskedLengths a = asked_of("H100-SXM", "dp=1,mbs=2,ga=1", "[256, 1024]");
  const LengthOutlook o = outlook_of(a);
  REQUIRE(o.padded);
  CHECK(o.padded->padding == Approx(768.0 / 2048));
  CHECK(o.padded->step.value == Approx(a.forecast.step_time.expected.value));
  CHECK(o.packed_tokens_per_s / o.padded->tokens_per_s == Approx(2048.0 / 1280));
}

// One sample a step: steps of either length, nothing padded.
TEST_CASE("steps of unlike lengths take their own time") {
  const AskedLengths a = asked_of("H100-SXM", "dp=1,mbs=1,ga=1", "256\n1024\n");
  const LengthOutlook o = outlook_of(a);
  const Seconds both = step_at(a, 256) + step_at(a, 1024);
  REQUIRE(o.padded);
  CHECK(o.padded->padding == 0);
  CHECK(o.padded->step.value == Approx(both.value / 2));
  CHECK(o.padded->tokens_per_s == Approx(1280 / both.value));
  CHECK(step_at(a, 256) < step_at(a, 1024));
}

// Two data ranks, a sample each: the rank of 256 tokens waits for that of 1,024. Nothing is padded
// across ranks.
TEST_CASE("data ranks wait for the longest batch") {
  const AskedLengths a = asked_of("2xH100-SXM", "dp=2,zero=0,mbs=1,ga=1", "256\n1024\n");
  const LengthOutlook o = outlook_of(a);
  REQUIRE(o.padded);
  CHECK(o.padded->padding == 0);
  CHECK(o.padded->step.value == Approx(step_at(a, 1024).value));
}

TEST_CASE("samples are cut at the length asked for") {
  const AskedLengths a = asked_of("H100-SXM", "dp=1,mbs=1,ga=1", "500\n\n5000\n", 2048);
  const LengthOutlook o = outlook_of(a);
  CHECK(a.request.sequence == 2048);
  CHECK(o.samples == 2);
  CHECK(o.longest == 5000);
  CHECK(o.cut == 1);
  CHECK(o.tokens == 500 + 2048);
}

// 1,000 rounded up to a multiple of 128 tokens.
TEST_CASE("memory is judged at the longest sample") {
  CHECK(asked_of("H100-SXM", "dp=1,mbs=1,ga=1", "17\n1000\n").request.sequence == 1024);
}

TEST_CASE("a framework that pads no batch packs") {
  const AskedLengths a =
      asked_of("H100-SXM", "dp=1,mbs=1,ga=1", "256\n1024\n", std::nullopt, "torchtitan");
  const LengthOutlook o = outlook_of(a);
  CHECK_FALSE(o.padded);
  CHECK(o.packed_tokens_per_s == Approx(a.forecast.tokens_per_s));
}

TEST_CASE("lengths that contradict the rest of a request are told") {
  const LengthsFile file("256\n1024\n");
  Request request = request_for("llama-3.2-1b", "H100-SXM", {Method::full});
  request.lengths = file.path();
  request.tokens = 1000;
  auto refused = resolve(request, known_facts(), UnnamedMethods::one);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().where == "--tokens");
  request.tokens.reset();
  request.preference = preference_named("dpo");
  refused = resolve(request, known_facts(), UnnamedMethods::one);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().where == "--lengths");
}

}  // namespace shardwise
