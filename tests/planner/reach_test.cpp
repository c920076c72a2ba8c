#include "planner/answers/reach.hpp"

#include <algorithm>

#include "planner/answers/fit_answer.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Verdict asked_at(Request request, int sequence) {
  request.sequence = sequence;
  const ResolvedRequest r = resolved(request);
  return choose_plan(r, r.methods.front(), r.clusters.front())->verdict;
}

Reach reach_of(const Request& request) {
  const ResolvedRequest r = resolved(request);
  return reach(r, r.methods.front(), r.clusters.front());
}

}  // namespace

// One tensor of 10,485,760 tokens x 4,096 values x 2 bytes is 80 GiB. Causal attention of a row
// is 2 x 10,485,760^2 x 4,096 x 32 layers = 2.9e19 FLOP forward; forward, again and 2.5 times
// backward for 16 sequences are 2.1e21, at 165e12 a second 150 days: more than the clock's 106.
TEST_CASE("what memory alone rules out does not fit, however long its step would be") {
  Request request = request_for("llama-3.1-8b", "RTX-4090", {Method::full});
  request.sequence = 10'485'760;
  const ResolvedRequest r = resolved(request);
  const auto c = choose_plan(r, r.methods.front(), r.clusters.front());
  REQUIRE(c);
  CHECK(c->verdict == Verdict::does_not_fit);
  CHECK(c->forecast.margin < Bytes(-(std::int64_t{80 - 24} << 30)));
  CHECK(c->forecast.tokens_per_s == 0);
  CHECK(std::any_of(c->notes.begin(), c->notes.end(), [](const std::string& note) {
    return note.find("longer than the 106 days") != std::string::npos;
  }));
}

// Unsloth publishes 78,475 tokens for QLoRA of rank 32 on 24 GB. Lengths of 64 Ki to 128 Ki tokens
// are looked at in steps of 4,096.
TEST_CASE("the longest sequence fits, one step more does not") {
  Request request = request_for("llama-3.1-8b", "4090", {Method::qlora});
  request.framework = "unsloth";
  request.lora_rank = 32;
  request.batch = 1;
  const Reach r = reach_of(request);
  REQUIRE(r.sequence);
  REQUIRE(r.roomy_sequence);
  CHECK_FALSE(r.sequence->open);
  CHECK(r.sequence->value % 4096 == 0);
  CHECK(asked_at(request, r.sequence->value) != Verdict::does_not_fit);
  CHECK(asked_at(request, r.sequence->value + 4096) == Verdict::does_not_fit);
  CHECK(asked_at(request, r.roomy_sequence->value) == Verdict::fits);
  CHECK(asked_at(request, r.roomy_sequence->value + 4096) == Verdict::tight);
  CHECK(r.roomy_sequence->value < 78'475);
  CHECK(r.sequence->value > 78'475);
  CHECK(r.sequence->chosen.question.workload.sequence == r.sequence->value);
}

// One GPU, so a step of one microbatch: its sequences are the batch.
TEST_CASE("the largest microbatch fits, one sequence more does not") {
  Request request = request_for("llama-3.1-8b", "4090", {Method::lora});
  const Reach r = reach_of(request);
  REQUIRE(r.microbatch);
  const auto verdict = [&](int at_once) {
    request.microbatch = request.batch = at_once;
    return asked_at(request, 2048);
  };
  CHECK(r.microbatch->chosen.question.plan.microbatch == r.microbatch->value);
  CHECK(verdict(r.microbatch->value) != Verdict::does_not_fit);
  CHECK(verdict(r.microbatch->value + 1) == Verdict::does_not_fit);
}

TEST_CASE("the largest rank fits, eight more do not") {
  Request request = request_for("llama-3.1-8b", "4090", {Method::lora});
  const Reach r = reach_of(request);
  REQUIRE(r.rank);
  const auto verdict = [&](int rank) {
    request.lora_rank = rank;
    return asked_at(request, 2048);
  };
  CHECK(r.rank->value % 8 == 0);
  CHECK(verdict(r.rank->value) != Verdict::does_not_fit);
  CHECK(verdict(r.rank->value + 8) == Verdict::does_not_fit);
  CHECK(verdict(r.roomy_rank->value) == Verdict::fits);
  CHECK_FALSE(reach_of(request_for("llama-3.2-1b", "4090", {Method::full})).adapters);
}

// 70 B parameters in 4 bits alone are 33 GiB.
TEST_CASE("nothing is within reach where the weights have no room") {
  const Reach r = reach_of(request_for("llama-3.1-70b", "4090", {Method::qlora}));
  CHECK_FALSE(r.sequence);
  CHECK_FALSE(r.roomy_sequence);
  CHECK_FALSE(r.microbatch);
}

// GPT-2 has a table of 1,024 positions.
TEST_CASE("learned positions end a sequence, not memory") {
  const Reach r = reach_of(request_for("gpt2", "H100-SXM", {Method::full}));
  REQUIRE(r.sequence);
  CHECK(r.sequence->value == 1024);
  CHECK_FALSE(r.sequence->open);
}

// A plan that is named says its microbatch itself.
TEST_CASE("of a plan that is named only the length is looked for") {
  Request request = request_for("llama-3.1-8b", "4090", {Method::lora});
  request.plans = {"dp=1,mbs=2"};
  const Reach r = reach_of(request);
  REQUIRE(r.sequence);
  CHECK(r.sequence->chosen.question.plan.microbatch == 2);
  CHECK_FALSE(r.microbatch);
}

// With most of 24 GB a sharded plan is twice as fast as one that leaves room, so that `fit` answers
// with it; the plan that leaves room is there all the same.
TEST_CASE("room to spare is asked for, not left to what fit prefers") {
  const ResolvedRequest r = resolved(request_for("70b", "6xRTX-3090", {Method::qlora}));
  const auto chosen = [&](Room room) {
    return choose_plan(r, Method::qlora, r.clusters.front(), room)->verdict;
  };
  REQUIRE(chosen(Room::weighed) == Verdict::tight);
  CHECK(chosen(Room::demanded) == Verdict::fits);
  const Reach far = reach(r, Method::qlora, r.clusters.front());
  REQUIRE(far.roomy_sequence);
  CHECK(far.roomy_sequence->value >= 2048);
}

// 512 Ki tokens of width 8,192 are 8 GiB for the input of a layer; its 80 layers' inputs, all that
// recomputation leaves, are 640 GiB for one GPU, 80 where tensor parallelism of 8 shards them.
TEST_CASE("a sequence that no GPU has room for is shared by several") {
  Request request = request_for("llama-3.1-70b", "64xH100-SXM", {Method::full});
  request.sequence = 524'288;
  const ResolvedRequest r = resolved(request);
  const auto chosen = choose_plan(r, Method::full, r.clusters.front());
  REQUIRE(chosen);
  CHECK(chosen->verdict != Verdict::does_not_fit);
  CHECK(chosen->question.plan.context > 1);
  request.framework = "accelerate-fsdp";  // has no context parallelism
  const ResolvedRequest without = resolved(request);
  const auto short_of = choose_plan(without, Method::full, without.clusters.front());
  REQUIRE(short_of);
  CHECK(short_of->question.plan.context == 1);
}

TEST_CASE("fit looks for its reach where that is asked for, on the card that it shows") {
  Request request = request_for("llama-3.1-8b", "24GB", {Method::qlora});
  CHECK_FALSE(fit_answers(resolved(request)).answers.front().reach);
  request.reach = true;
  const FitAnswers all = fit_answers(resolved(request));
  REQUIRE(all.answers.size() > 1);
  CHECK(std::count_if(all.answers.begin(), all.answers.end(),
                      [](const FitAnswer& a) { return a.reach.has_value(); }) == 1);
}

}  // namespace shardwise
