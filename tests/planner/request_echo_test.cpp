// The request that every answer echoes: it says all that was asked and filled in, and asks the same
// question again.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/launch.hpp"
#include "planner/commands/models.hpp"
#include "planner/commands/plan.hpp"
#include "planner/commands/request_flags.hpp"
#include "planner/commands/shop.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/report/request_json.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

using Run = int (*)(const Request&, const Facts&, const Output&);

struct EchoCase {
  const char* command;
  Run run;
  const char* request;
  std::set<std::string> resolved;  // keys that nobody asked for and that have one value
};

int run_fit(const Request& r, const Facts& f, const Output& o) { return fit(r, f, false, o); }
int run_compare(const Request& r, const Facts& f, const Output& o) {
  return compare(r, f, false, o);
}
int run_plan(const Request& r, const Facts& f, const Output& o) { return plan(r, {}, f, o); }
int run_simulate(const Request& r, const Facts& f, const Output& o) {
  return simulate(r, f, {}, o);
}
int run_launch(const Request& r, const Facts& f, const Output& o) { return launch(r, {}, f, o); }

// Of pre-training one method has one framework, one optimizer and one format; a plan that is asked
// for leaves what it does not say to the framework. Of several methods the frameworks differ, of
// QLoRA on several cards their formats do.
const std::vector<EchoCase>& cases() {
  static const std::vector<EchoCase> all{
      {"fit",
       run_fit,
       R"({"model": "gpt2", "gpus": "2x24GB", "host_ram_gib": 119.20928955078125})",
       {"method", "sequence", "batch", "optimizer"}},
      {"fit",
       run_fit,
       R"({"model": "8b", "gpus": "2xRTX-4090", "method": "qlora"})",
       {"framework", "sequence", "batch", "optimizer", "precision", "lora_rank", "lora_targets",
        "quantization"}},
      {"simulate",
       run_simulate,
       R"({"model": "8b", "gpus": "8xH100-SXM", "method": "pretrain",
           "plans": ["tp=2,pp=4,ga=16,zero=0"], "straggler": 1.2})",
       {"framework", "sequence", "batch", "optimizer", "precision", "microbatch", "recompute",
        "offload", "seed"}},
      {"simulate",
       run_simulate,
       R"({"model": "gpt2", "gpus": "2xRTX-4090", "method": "lora"})",
       {"framework", "sequence", "batch", "optimizer", "precision", "microbatch", "recompute",
        "offload", "plans", "lora_rank", "lora_targets"}},
      {"compare",
       run_compare,
       R"({"model": "gpt2", "gpus": "2xRTX-4090",
           "plans": ["dp=2,zero=3", "tp=2"]})",
       {"method", "framework", "sequence", "batch", "optimizer", "precision"}},
      {"compare",
       run_compare,
       R"({"model": "llama-3.2-1b", "gpus": "8xH100-SXM", "method": "pretrain",
           "plans": ["pp=8,ga=16"], "schedules": true, "memory_gib": 56.81067705154419})",
       {"framework", "sequence", "batch", "optimizer", "precision"}},
      {"plan",
       run_plan,
       R"({"model": "gpt2", "gpus": "1..2xA100-80GB", "batch": 16, "top": 2,
           "objective": "dollars", "allow_tight": true})",
       {"method", "framework", "sequence", "optimizer", "precision", "max_memory"}},
      {"plan",
       run_plan,
       R"({"model": "gpt2", "gpus": "2xA100-80GB", "batch": 16})",
       {"method", "framework", "sequence", "optimizer", "precision", "max_memory", "top",
        "objective"}},
      {"launch",
       run_launch,
       R"({"model": "8b", "gpus": "8xH100-SXM", "method": "full",
           "target": "torchtitan", "learning_rate": 1.23456789e-05})",
       {"framework", "sequence", "batch", "optimizer", "precision"}},
      {"shop",
       shop,
       R"({"model": "smollm2-135m", "budget_usd": 400.55})",
       {"method", "sequence", "optimizer", "samples"}},
      {"models",
       models,
       R"({"model": "smollm", "gpus": "rtx-4090", "method": ["lora", "qlora"]})",
       {"framework", "sequence", "batch", "optimizer", "precision"}},
      {"models",
       models,
       R"({"model": "smollm2-135m", "method": ["full"]})",
       {"sequence", "microbatch", "precision"}},
  };
  return all;
}

std::string echo_answer(const EchoCase& c, const Request& r) {
  std::ostringstream out, err;
  const int code = c.run(r, known_facts(), {out, err, true});
  INFO(err.str());
  REQUIRE(code == 0);
  return out.str();
}

Request read_file_of(const std::string& text, std::string_view command) {
  const auto request = read_request_text(text, "question", command);
  INFO((request ? "" : request.error().front().where + ": " + request.error().front().what));
  REQUIRE(request);
  return *request;
}

}  // namespace

TEST_CASE("the echoed request asks the same question, to the byte", "[echo]") {
  for (const EchoCase& c : cases()) {
    INFO(c.command << " " << c.request);
    const std::string first = echo_answer(c, read_file_of(c.request, c.command));
    CHECK(echo_answer(c, read_file_of(first, c.command)) ==
          first);  // the answer holds it under "request"
  }
}

TEST_CASE("what was asked is echoed, what nobody asked for is assumed", "[echo]") {
  for (const EchoCase& c : cases()) {
    INFO(c.command << " " << c.request);
    const Json asked = Json::parse(c.request);
    const Json echo = Json::parse(echo_answer(c, read_file_of(c.request, c.command))).at("request");
    for (const auto& [key, value] : asked.items()) {
      INFO(key);
      CHECK(echo.at(key) == (key == "method" && value.is_string() ? Json{value} : value));
      CHECK_FALSE(echo.at(assumed_key).contains(key));
    }
    for (const std::string& key : c.resolved) {
      INFO(key);
      REQUIRE(echo.contains(key));
      CHECK(echo.at(assumed_key).at(key) == echo.at(key));
    }
  }
}

TEST_CASE("a plan that gives the batch gives that of the echo", "[echo]") {
  // dp = 8 / (2 x 4) = 1, so a step has 1 x 1 x 16 sequences; without the plan it would be 128.
  const EchoCase& simulated = cases()[2];
  CHECK(Json::parse(echo_answer(
            simulated, read_file_of(simulated.request, "simulate")))["request"]["batch"] == 16);
  const EchoCase& schedules = cases()[5];
  CHECK(Json::parse(echo_answer(
            schedules, read_file_of(schedules.request, "compare")))["request"]["batch"] == 16);
}

TEST_CASE("answers that rest on different things leave those out of the echo", "[echo]") {
  // On two cards full fine-tuning runs in FSDP2, LoRA through Accelerate, QLoRA in fsdp_qlora.
  const EchoCase& several = cases()[0];
  const Json echo =
      Json::parse(echo_answer(several, read_file_of(several.request, "fit"))).at("request");
  for (const char* key : {"framework", "lora_rank", "quantization"})
    CHECK_FALSE(echo.contains(key));
}

TEST_CASE("an assumed key that was changed is asked for, one that was not stays open", "[echo]") {
  const char* text = R"({"model": "gpt2", "gpus": "rtx-4090", "sequence": 512, "batch": 18,
                         "assumed": {"sequence": 1024, "batch": 18, "top": 10}})";
  const Request r = read_file_of(text, "fit");
  CHECK(r.sequence == 512);
  CHECK_FALSE(r.batch);
}

TEST_CASE("keys of another command are refused, unless nobody asked for them there", "[echo]") {
  const auto problems = [](const char* text) {
    const auto r = read_request_text(text, "question", "fit");
    return r ? Problems{} : r.error();
  };
  const Problems unknown = problems(R"({"model": "gpt2", "gpus": "4090", "top": 3})");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown.front().where == "question:/top");
  CHECK(unknown.front().what == "expected no such key (top belongs to plan, not to fit), found 3");
  CHECK(problems(R"({"model": "gpt2", "gpus": "4090", "top": 9, "assumed": {"top": 10}})").size() ==
        1);
  CHECK(
      problems(R"({"model": "gpt2", "gpus": "4090", "top": 10, "assumed": {"top": 10}})").empty());
}

TEST_CASE("a flag's name in a request file is told the key", "[echo]") {
  const auto r = read_request_text(
      R"({"model": "gpt2", "gpus": "4090", "seq": 512, "lora-rank": 8, "plan": "dp=1",
          "per_device_train_batch_size": 1})",
      "question", "fit");
  REQUIRE_FALSE(r);
  const auto told = [&](const char* where, const char* what) {
    return std::any_of(r.error().begin(), r.error().end(), [&](const Problem& p) {
      return p.where == where && p.what == what && p.kind == ProblemKind::request;
    });
  };
  CHECK(r.error().size() == 4);
  CHECK(told("question:/per_device_train_batch_size",
             "unknown key; expected microbatch, which is --microbatch of the command line"));
  CHECK(
      told("question:/seq", "unknown key; expected sequence, which is --seq of the command line"));
  CHECK(told("question:/plan", "unknown key; expected plans, which is --plan of the command line"));
  CHECK(told("question:/lora-rank", "unknown key; did you mean lora_rank?"));
}

}  // namespace shardwise
