// The JSON that every command prints, held against the schemas in docs/schemas.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "planner/commands/calibrate.hpp"
#include "planner/commands/catalog.hpp"
#include "planner/commands/collectives.hpp"
#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/launch.hpp"
#include "planner/commands/models.hpp"
#include "planner/commands/plan.hpp"
#include "planner/commands/shop.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/commands/sweep.hpp"
#include "planner/commands/validate.hpp"
#include "planner/facts.hpp"
#include "planner/launch/launch_target.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"
#include "tests/sweep/sweep_folder.hpp"

#if __has_include(<valijson/validator.hpp>)
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

using namespace shardwise;
using Document = nlohmann::json;

namespace {

const Facts& facts() {
  static const Facts loaded = *load_facts(source_dir() + "/catalog", std::nullopt);
  return loaded;
}

Document schema_of(const std::string& name) {
  std::ifstream file(source_dir() + "/docs/schemas/" + name + ".schema.json");
  return Document::parse(file);
}

// Every breach of a schema, a line each; empty: none.
std::string breaches(const Document& schema, const Document& document) {
  valijson::Schema parsed;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), parsed);
  valijson::Validator validator;
  valijson::ValidationResults results;
  validator.validate(parsed, valijson::adapters::NlohmannJsonAdapter(document), &results);
  std::string text;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    for (const std::string& part : error.context) text += part;
    text += ": " + error.description + "\n";
  }
  return text;
}

void check(const Document& schema, const Document& document) {
  const std::string found = breaches(schema, document);
  INFO(found);
  CHECK(found.empty());
}

// The same, and a document that lacks a key or has a strange one is refused.
void check_strictly(const Document& schema, const Document& document) {
  check(schema, document);
  for (const Document& key : schema["required"]) {
    Document lacking = document;
    lacking.erase(key.get<std::string>());
    INFO(key);
    CHECK_FALSE(breaches(schema, lacking).empty());
  }
  Document strange = document;
  strange["surprise"] = 1;
  CHECK_FALSE(breaches(schema, strange).empty());
}

struct Answer {
  std::ostringstream out, err;
  Output output{out, err, true, false, 100};
  Document json() const { return Document::parse(out.str()); }
};

Request asked(const char* model, const char* gpus, Method method, std::vector<std::string> plans) {
  Request r;
  r.model = model;
  r.gpus = gpus;
  r.methods = {method};
  r.plans = std::move(plans);
  return r;
}

}  // namespace

TEST_CASE("the schemas refuse what they should", "[schemas]") {
  const Document schema = schema_of("simulate");
  Answer a;
  REQUIRE(simulate(asked("gpt2", "RTX-4090", Method::full, {}), facts(), {}, a.output) == 0);
  Document right = a.json();
  CHECK(breaches(schema, right).empty());
  for (const auto& [key, value] : right.items()) {
    Document lacking = right;
    lacking.erase(key);
    INFO(key);
    CHECK_FALSE(breaches(schema, lacking).empty());
  }
  Document strange = right;
  strange["surprise"] = 1;
  CHECK_FALSE(breaches(schema, strange).empty());
  Document wrong = right;
  wrong["step_time_s"]["expected"] = "fast";
  CHECK_FALSE(breaches(schema, wrong).empty());
}

TEST_CASE("fit answers as its schema says", "[schemas]") {
  for (Request r :
       {asked("8b", "2xRTX-4090", Method::full, {}), asked("70b", "6x24GB", Method::qlora, {}),
        asked("llama-3.1-70b", "8xH100-SXM", Method::lora, {})}) {
    INFO(*r.model);
    Answer a;
    REQUIRE(fit(r, facts(), false, a.output) == 0);
    check(schema_of("fit"), a.json());
  }
  Request several = asked("8b", "2xRTX-4090", Method::full, {});
  several.methods.clear();
  several.reach = true;
  Answer a;
  REQUIRE(fit(several, facts(), false, a.output) == 0);
  check(schema_of("fit"), a.json());
}

// Batches that are padded, and a framework that forecasts full sequences.
TEST_CASE("lengths of samples are answered as the schemas say", "[schemas]") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("shardwise-schema-lengths-" + std::to_string(getpid()));
  std::ofstream(path) << "100\n200\n";
  for (const char* framework : {"hf-trainer", "torchtitan"}) {
    Request r = asked("gpt2", "RTX-4090", Method::full, {"dp=1,mbs=1,ga=2"});
    r.framework = framework;
    r.lengths = path.string();
    Answer of_fit, of_simulate;
    REQUIRE(fit(r, facts(), false, of_fit.output) == 0);
    REQUIRE(simulate(r, facts(), {}, of_simulate.output) == 0);
    check(schema_of("fit"), of_fit.json());
    check(schema_of("simulate"), of_simulate.json());
    CHECK(of_fit.json()["answers"][0]["lengths"]["padded"].is_null() ==
          (framework == std::string_view("torchtitan")));
    CHECK(of_simulate.json()["lengths"]["samples"] == 2);
  }
  std::filesystem::remove(path);
}

TEST_CASE("simulate answers as its schema says", "[schemas]") {
  for (const Request& r :
       {asked("llama-3.1-8b", "8xH100-SXM", Method::pretrain, {"tp=2,pp=4,ga=8,schedule=zb-h1"}),
        asked("llama-3.1-8b", "8xH100-SXM", Method::full, {"dp=8,zero=3,recompute=best"}),
        asked("llama-2-7b", "2xRTX-3090", Method::qlora, {}),
        asked("mixtral-8x7b", "16xA100-80GB", Method::pretrain, {"dp=16,ep=8,zero=1"}),
        asked("gpt2", "RTX-4090", Method::full, {})}) {
    INFO(*r.model);
    Answer a;
    REQUIRE(simulate(r, facts(), {}, a.output) == 0);
    check(schema_of("simulate"), a.json());
  }
}

TEST_CASE("simulate tells of a whole run as its schema says", "[schemas]") {
  for (const char* gpus : {"8xH100-SXM", "2xRTX-3090"}) {  // rented, and nobody rents it
    Request r = asked("llama-3.1-8b", gpus, Method::qlora, {});
    r.tokens = 1'000'000'000;
    Answer a;
    REQUIRE(simulate(r, facts(), {}, a.output) == 0);
    REQUIRE(a.json().contains("outlook"));
    check(schema_of("simulate"), a.json());
  }
}

TEST_CASE("collectives answers as its schema says", "[schemas]") {
  for (const char* gpus : {"2xRTX-3090", "2x24GB", "32xH100-SXM"}) {
    Request request;
    request.gpus = gpus;
    Answer a;
    REQUIRE(collectives(request, {}, facts(), a.output) == 0);
    const Document answer = a.json();
    check(schema_of("collectives"), answer);
    // Four collectives of 1 KiB to 1 GiB by fours; bus bandwidth is algorithm bandwidth times
    // 2(n-1)/n of an all-reduce.
    REQUIRE(answer["collectives"].size() == 4 * 11);
    const Document& largest = answer["collectives"][10];
    CHECK(largest["size_bytes"] == 1 << 30);
    const double n = answer["ranks"];
    CHECK(largest["bus_gb_per_s"].get<double>() ==
          Approx(2 * (n - 1) / n * largest["algorithm_gb_per_s"].get<double>()).epsilon(1e-4));
  }
  for (const char* wrong : {"all_reduec", "send_recv"}) {
    Request request;
    request.gpus = "2xRTX-3090";
    Answer a;
    CHECK(collectives(request, {{wrong}}, facts(), a.output) == 2);
  }
  Request request;
  Answer unsaid, alone, uneven, spread;
  CHECK(collectives(request, {}, facts(), unsaid.output) == 2);
  request.gpus = "RTX-3090";
  CHECK(collectives(request, {}, facts(), alone.output) == 2);
  request.gpus = "8xA100-80GB";
  request.nodes = 3;
  CHECK(collectives(request, {}, facts(), uneven.output) == 2);
  request.nodes = 2;
  REQUIRE(collectives(request, {}, facts(), spread.output) == 0);
  CHECK(spread.json()["nodes"] == 2);
  CHECK(spread.json()["request"]["nodes"] == 2);
}

TEST_CASE("models answers as its schema says", "[schemas]") {
  Request r = asked("llama", "2xRTX-3090", Method::full, {});  // some fit, some do not
  r.methods = {Method::full, Method::qlora};
  Answer a;
  REQUIRE(models(r, facts(), a.output) == 0);
  check_strictly(schema_of("models"), a.json());
  r.plans = {"tp=3"};  // legal on no two cards
  Answer illegal;
  REQUIRE(models(r, facts(), illegal.output) == 0);
  check(schema_of("models"), illegal.json());
  CHECK(illegal.json()["models"][0]["answers"][0].contains("problem"));
}

TEST_CASE("models without GPUs answers as its schema says", "[schemas]") {
  Request r = asked("8b", "", Method::qlora, {});
  r.gpus.reset();
  Answer a;
  REQUIRE(models(r, facts(), a.output) == 0);
  check_strictly(schema_of("models"), a.json());
  Document half = a.json();
  half.erase("requirements");
  CHECK_FALSE(breaches(schema_of("models"), half).empty());
  r.images = 1;  // of which it sees none
  Answer refused;
  CHECK(models(r, facts(), refused.output) == 2);
}

TEST_CASE("shop answers as its schema says", "[schemas]") {
  Request r = asked("llama-3.2-1b", "", Method::qlora, {});
  r.gpus.reset();
  r.samples = 1000;
  r.budget = 1500;
  Answer a;
  REQUIRE(shop(r, facts(), a.output) == 0);
  const Document answer = a.json();
  check_strictly(schema_of("shop"), answer);
  bool buys = false, rents = false;
  for (const Document& offer : answer["offers"]) (offer["kind"] == "buy" ? buys : rents) = true;
  CHECK((buys && rents));
  r.budget = 0.001;  // less than any hour
  Answer nothing;
  REQUIRE(shop(r, facts(), nothing.output) == 0);
  CHECK(nothing.json()["offers"].empty());
  check(schema_of("shop"), nothing.json());
}

TEST_CASE("a measured step and files read answer as the schemas say", "[schemas]") {
  Request r = asked("llama-3.2-1b", "2xRTX-4090", Method::full, {});
  const std::string path =
      std::filesystem::temp_directory_path() / "shardwise-output-schema-ds.json";
  std::ofstream(path) << R"({"zero_optimization": {"stage": 2}, "steps_per_print": 10})";
  r.plan_from = {path};
  r.measured_step_s = 2;
  r.measured_memory = Bytes(18LL << 30);
  Answer simulated, judged, compared;
  REQUIRE(simulate(r, facts(), {}, simulated.output) == 0);
  check(schema_of("simulate"), simulated.json());
  CHECK(simulated.json()["measured"]["step_time_s"] == 2);
  CHECK(simulated.json()["plan_from"][0]["format"] == "DeepSpeed");
  CHECK(simulated.json()["measured_memory"]["memory_gib"] == 18);
  r.measured_step_s.reset();
  r.measured_memory.reset();
  REQUIRE(fit(r, facts(), false, judged.output) == 0);
  check(schema_of("fit"), judged.json());
  REQUIRE(compare(r, facts(), false, compared.output) == 0);
  check(schema_of("compare"), compared.json());
  std::filesystem::remove(path);
}

TEST_CASE("launch answers as its schema says, for every target", "[schemas]") {
  int written = 0;
  for (const LaunchTarget& target : launch_targets()) {
    INFO(target.name);
    Request r = asked("llama-3.1-8b", "8xH100-SXM", Method::full, {});
    r.target = std::string(target.name);
    r.learning_rate = 1e-4;
    Answer a;
    if (launch(r, {}, facts(), a.output))
      continue;  // cannot run it, and says so on the error stream
    check_strictly(schema_of("launch"), a.json());
    ++written;
  }
  CHECK(written >= 4);
}

namespace {

// What `shardwise calibrate ...` prints.
Document calibrated(const std::string& words) {
  setenv("SHARDWISE_CATALOG", (source_dir() + "/catalog").c_str(), 1);
  CLI::App app;
  CalibrateOptions options;
  add_calibrate_flags(*app.add_subcommand("calibrate"), options);
  app.parse("calibrate " + words);
  Answer a;
  REQUIRE(calibrate(options, a.output) == 0);
  return a.json();
}

}  // namespace

TEST_CASE("calibrate answers as its schemas say", "[schemas]") {
  const std::string log = source_dir() + "/docs/example/all_reduce_2x4090.log";
  const std::string out = (std::filesystem::temp_directory_path() /
                           ("schema-test-4090-" + std::to_string(getpid()) + ".json"))
                              .string();
  const Document written = calibrated("import --json --peer-access no --out " + out + " " + log);
  REQUIRE(written.contains("profile"));
  check_strictly(schema_of("calibrate-import"), written);
  check(schema_of("calibrate-import"),
        calibrated("import --json " + source_dir() + "/catalog/runs/c_microbench.json"));
  const Document apart = calibrated("diff --json " + out + " rtx-4090-peer-access-off");
  check_strictly(schema_of("calibrate-diff"), apart);
  CHECK_FALSE(apart["constants"].empty());
  const Document others =
      calibrated("diff --json rtx-4090-peer-access-off h200-sxm-141gb-published");
  check_strictly(schema_of("calibrate-diff"), others);
  CHECK(others.at("devices").at("b") == "h200-sxm-141gb");
  CHECK_FALSE(others.at("rates").empty());
  const Document curves =
      calibrated("diff --json rtx-4090-peer-access-on rtx-4090-peer-access-off");
  check_strictly(schema_of("calibrate-diff"), curves);
  CHECK_FALSE(curves["curves"].empty());
  std::filesystem::remove(out);
}

TEST_CASE("compare answers as its schema says", "[schemas]") {
  Answer plans;
  REQUIRE(compare(asked("13b", "8xA100-80GB", Method::full, {"dp=8,zero=3", "tp=8", "tp=3"}),
                  facts(), false, plans.output) == 0);
  check(schema_of("compare"), plans.json());
  Answer schedules;
  Request r = asked("llama-3.2-1b", "4xA100-80GB", Method::pretrain, {"pp=4,ga=8"});
  r.schedules = true;
  REQUIRE(compare(r, facts(), false, schedules.output) == 0);
  check(schema_of("compare"), schedules.json());
  Answer boxes;  // a model of 8.03 G weights on a card of 12 GB: full does not fit, qlora does
  r = asked("8b", "3060-12gb vs 2x3090", Method::full, {});
  r.methods = {Method::full, Method::qlora};
  REQUIRE(compare(r, facts(), false, boxes.output) == 0);
  check(schema_of("compare"), boxes.json());
  CHECK(boxes.json()["boxes"].size() == 4);
  CHECK(boxes.json()["boxes"][0]["verdict"] == "does_not_fit");
  CHECK(boxes.json()["request"]["gpus"] == "3060-12gb vs 2x3090");
}

TEST_CASE("plan answers as its schema says", "[schemas]") {
  for (const char* gpus : {"2xA100-80GB", "1..4xA100-80GB"}) {
    INFO(gpus);
    Request r = asked("gpt2", gpus, Method::pretrain, {});
    r.batch = 16;
    r.top = 3;
    r.pareto = *gpus == '2';
    Answer a;
    REQUIRE(plan(r, {.elapsed = true}, facts(), a.output) == 0);
    check(schema_of("plan"), a.json());
  }
}

TEST_CASE("catalog answers as its schema says", "[schemas]") {
  const std::filesystem::path root = source_dir() + "/catalog";
  std::vector<CatalogQuestion> questions{
      {"check", ""}, {"show", "rtx-4090"}, {"show", "llama-3.1-8b"}};
  for (const char* what :
       {"gpus", "nodes", "networks", "models", "frameworks", "prices", "profiles"})
    questions.push_back({"list", what});
  const auto pages =
      std::filesystem::temp_directory_path() / ("schema-test-pages-" + std::to_string(getpid()));
  questions.push_back({"pages", pages.string()});
  for (const CatalogQuestion& question : questions) {
    INFO(question.verb << " " << question.subject);
    Answer a;
    REQUIRE(catalog(question, root, a.output) == 0);
    check(schema_of("catalog"), a.json());
  }
  std::filesystem::remove_all(pages);
}

TEST_CASE("every line of validate is as its schema says", "[schemas]") {
  const std::filesystem::path root = source_dir() + "/catalog";
  const Document schema = schema_of("validate");
  std::set<std::string> kinds;
  ValidateOptions options;
  options.json = true;
  // Every eighth file, and one whose memory is that of the first step.
  std::vector<std::string> runs;
  for (const auto& entry : std::filesystem::directory_iterator(root / "runs"))
    if (entry.path().extension() == ".json") runs.push_back(entry.path().string());
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 7; i < runs.size(); i += 8) options.files.push_back(runs[i]);
  options.files.push_back((root / "runs/r_reports.json").string());
  std::ostringstream out, err;
  REQUIRE(validate(options, root, out, err) == 0);
  std::istringstream lines(out.str());
  int count = 0;
  std::string found;
  for (std::string line; std::getline(lines, line); ++count) {
    const Document record = Document::parse(line);
    found += breaches(schema, record);
    if (record.contains("peak_mem_gib") && record["peak_mem_gib"].contains("kind"))
      kinds.insert(record["peak_mem_gib"]["kind"]);
    if (!record.contains("step_time_s") || !record["step_time_s"].contains("waits_for")) continue;
    // What a step waits for adds up to it.
    double sum = 0;
    for (const auto& [what, seconds] : record["step_time_s"]["waits_for"].items())
      sum += seconds.get<double>();
    INFO(record["id"]);
    CHECK(sum == Approx(record["step_time_s"]["predicted"].get<double>()).epsilon(1e-6));
  }
  INFO(found);
  CHECK(found.empty());
  CHECK(count > 10);
  CHECK(kinds.count("allocated_first") == 1);
}

TEST_CASE("sweep answers as its schema says", "[schemas]") {
  const SweepFolder folder;
  std::ofstream(folder / "study.json") << R"({"base": {"gpus": "2xRTX-4090", "samples": 1000},
      "axes": {"model": ["gpt2", "llama-3.1-8b", "nobody"], "plans": ["fit", "best", "tp=2"]}})";
  SweepOptions options;
  options.task.study_file = folder / "study.json";
  options.task.out = folder / "study.sqlite";
  options.json = true;
  Answer a;
  REQUIRE(sweep(options, a.output) == 0);
  const Document document = a.json();
  check(schema_of("sweep"), document);
  CHECK(document["rows"].size() == 9);
}

// Adapters of a 70B in 16 bits over 8 cards: every layer is gathered, which the text says too.
TEST_CASE("fit's JSON has what its text says of waiting and of other cards", "[schemas]") {
  Request r = asked("70b", "2xRTX-4090+2xRTX-3090", Method::qlora, {});
  Answer mixed, sharded;
  REQUIRE(fit(r, facts(), false, mixed.output) == 0);
  check(schema_of("fit"), mixed.json());
  CHECK(mixed.json()["answers"][0]["gpu"] == "rtx-3090");
  CHECK(mixed.json()["answers"][0]["other_gpus"][0]["gpu"] == "rtx-4090");
  r = asked("70b", "8xA100-80GB", Method::lora, {});
  REQUIRE(fit(r, facts(), false, sharded.output) == 0);
  check(schema_of("fit"), sharded.json());
  CHECK(sharded.json()["answers"][0]["exposed_s"].contains("gather_parameters"));
}

#else
TEST_CASE("output schemas", "[schemas]") {
  WARN("not checked: there is no valijson (libvalijson-dev)");
}
#endif
