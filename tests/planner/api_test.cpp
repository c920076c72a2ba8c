// The API of `serve` with what strangers may send.
#include "planner/commands/api.hpp"

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "planner/commands/fit.hpp"
#include "planner/request/request_field.hpp"
#include "planner/serve/answer_desk.hpp"
#include "tests/catch.hpp"
#include "tests/planner/hostile_names.hpp"
#include "tests/planner/known_facts.hpp"

using namespace shardwise;
using Parsed = nlohmann::json;

namespace {

ApiAnswer ask(const std::string& body, std::string_view command = "fit") {
  return api_answer(command, body, known_facts());
}

Parsed small_config() {
  return {{"model_type", "llama"},       {"hidden_size", 256},
          {"intermediate_size", 1024},   {"num_attention_heads", 4},
          {"num_hidden_layers", 2},      {"num_key_value_heads", 4},
          {"vocab_size", 1000},          {"max_position_embeddings", 512},
          {"tie_word_embeddings", false}};
}

}  // namespace

TEST_CASE("the API answers what --json prints", "[api]") {
  std::ostringstream out, err;
  REQUIRE(fit(request_for("8b", "2x24GB"), known_facts(), false, {out, err, true}) == 0);
  const ApiAnswer answer = ask(R"({"model": "8b", "gpus": "2x24GB"})");
  CHECK(answer.status == 200);
  CHECK(answer.body == out.str());
}

TEST_CASE("every command answers, with its document where it has one", "[api]") {
  const std::string body = R"({"model": "gpt2", "gpus": "2xRTX-4090", "plans": ["dp=2"]})";
  for (const char* command : {"fit", "simulate", "compare"}) {
    INFO(command);
    CHECK(ask(body, command).status == 200);
    const ApiAnswer document = ask(body, std::string(command) + "/document");
    REQUIRE(document.status == 200);
    const Parsed parsed = Parsed::parse(document.body);
    CHECK(parsed.at("answer").at("command") == command);
    CHECK(parsed.at("details").at(0).at("timeline").contains("lanes"));
  }
  const std::string boxes = R"({"model": "gpt2", "gpus": "2xRTX-4090 vs RTX-3090"})";
  CHECK(ask(boxes, "compare").status == 200);
  CHECK(ask(boxes, "compare/document").status == 400);  // a page is of one box
  CHECK(ask(body, "validate").status == 404);
  CHECK(ask(body, "").status == 404);
}

TEST_CASE("an uploaded config.json is a model", "[api]") {
  const Parsed body = {{"config", small_config()}, {"gpus", "rtx-4090"}, {"method", {"full"}}};
  const ApiAnswer answer = ask(body.dump());
  REQUIRE(answer.status == 200);
  CHECK(answer.body.find("llama model with") != std::string::npos);
  Parsed both = body;
  both["model"] = "8b";
  CHECK(ask(both.dump()).status == 400);
  Parsed strange = body;
  strange["config"]["model_type"] = "teapot";
  CHECK(ask(strange.dump()).status == 400);
}

TEST_CASE("no path is read, looked for or told", "[api]") {
  for (const char* path :
       {"/etc/passwd", "../../../etc/passwd", "./config.json", "/proc/self/environ", "/",
        "..%2f..%2fetc%2fpasswd", "file:///etc/passwd", "\\\\host\\share\\config.json"}) {
    INFO(path);
    const ApiAnswer answer = ask(Parsed{{"model", path}, {"gpus", "rtx-4090"}}.dump());
    CHECK(answer.status == 400);
    CHECK(answer.body.find("root:") == std::string::npos);
    CHECK(answer.body.find(source_dir()) == std::string::npos);
    // A path that is there and one that is not are told the same.
    const ApiAnswer absent = ask(Parsed{{"model", "/nowhere"}, {"gpus", "rtx-4090"}}.dump());
    CHECK(absent.status == answer.status);
  }
  const std::string real = source_dir() + "/tests/catalog/hf_configs";
  CHECK(ask(Parsed{{"model", real}, {"gpus", "rtx-4090"}}.dump()).status == 400);
  for (const char* key : {"plan_from", "profile", "lengths"}) {
    Parsed body = {{"model", "gpt2"}, {"gpus", "rtx-4090"}};
    body[key] = "/etc/passwd";
    const ApiAnswer answer = ask(body.dump());
    CHECK(answer.status == 400);
    CHECK(answer.body.find("names a file") != std::string::npos);
  }
}

TEST_CASE("problems name the keys of a request, not the flags of the command line", "[api]") {
  const auto problem_of = [](const Parsed& body) {
    return Parsed::parse(ask(body.dump()).body).at("problems").at(0);
  };
  CHECK(problem_of({{"model", "gpt2"}}).at("where") == "gpus");
  CHECK(problem_of({{"gpus", "rtx-4090"}}).at("where") == "model");
  const Parsed batch = problem_of(
      {{"model", "gpt2"}, {"gpus", "8xrtx-4090"}, {"plans", {"dp=8,zero=3"}}, {"batch", 7}});
  CHECK(batch.at("where") == "batch");
  // "--plan" within a sentence, and no part of a longer flag.
  const Parsed twice = problem_of(
      {{"model", "gpt2"}, {"gpus", "8xrtx-4090"}, {"plans", {"dp=8,mbs=2"}}, {"microbatch", 1}});
  CHECK(twice.at("where") == "microbatch");
  CHECK(twice.at("what") == "1 contradicts mbs=2 in plans dp=8,mbs=2");
}

TEST_CASE("malformed, deep, large and hostile bodies are refused in words", "[api]") {
  const std::vector<std::string> bodies{"",
                                        "{",
                                        "[]",
                                        "null",
                                        "42",
                                        "\"fit\"",
                                        "{\"model\":",
                                        "{\"gpus\": 4}",
                                        "{\"surprise\": 1}",
                                        std::string("\0\0", 2),
                                        std::string(100'000, '['),
                                        "{\"model\": \"\xff\xfe\"}",
                                        "{\"model\":1e999}",
                                        "{\"model\":\"a\",\"model\":\"b\"}",
                                        "{\"method\":[\"fly\"]}",
                                        "{\"model\":\"8b\",\"gpus\":\"99999999999999999999xH100\"}",
                                        "{\"model\":\"8b\",\"gpus\":\"2x24GB\",\"sequence\":-1}"};
  for (const std::string& body : bodies) {
    INFO(body.substr(0, 60));
    const ApiAnswer answer = ask(body);
    CHECK(answer.status == 400);
    CHECK_FALSE(Parsed::parse(answer.body).at("problems").empty());
  }
  CHECK(ask(std::string(api_max_body + 1, ' ')).status == 413);
  for (const std::string& name : hostile_names()) {
    const ApiAnswer answer = ask(Parsed{{"model", name}, {"gpus", name}}.dump());
    CHECK(answer.status == 400);
    CHECK_FALSE(Parsed::parse(answer.body).at("problems").empty());
  }
}

TEST_CASE("docs/openapi.json names the keys and commands that there are", "[api]") {
  std::ifstream file(source_dir() + "/docs/openapi.json");
  const Parsed api = Parsed::parse(file);
  const Parsed& schemas = api.at("components").at("schemas");
  const auto add_keys = [&](const Parsed& schema, std::set<std::string>& to) {
    if (!schema.contains("properties")) return;
    for (const auto& [key, property] : schema["properties"].items()) to.insert(key);
  };
  for (const std::string_view command : api_commands()) {
    INFO(command);
    const Parsed& post = api.at("paths").at("/api/" + std::string(command)).at("post");
    const std::string ref = post.at("requestBody")
                                .at("content")
                                .at("application/json")
                                .at("schema")
                                .at("$ref")
                                .get<std::string>();
    const std::string place = "#/components/schemas/";
    REQUIRE(ref.starts_with(place));
    std::set<std::string> described, known{"config", "assumed"};
    add_keys(schemas.at("Question"), described);
    add_keys(schemas.at(ref.substr(place.size())), described);
    for (const RequestField& field : request_fields())
      if (field.belongs_to(command) && field.key != "plan_from" && field.key != "profile" &&
          field.key != "lengths")
        known.insert(std::string(field.key));
    CHECK(described == known);
  }
}

TEST_CASE("an answer has its time and its memory, and the desk goes on", "[api]") {
  AnswerLimits limits;
  limits.time = std::chrono::milliseconds(300);
  limits.memory = Bytes(std::int64_t{256} << 20);
  AnswerDesk desk(2, limits, Bytes(1 << 20));
  const auto forever = [] {
    for (volatile bool on = true; on;) {
    }
    return ApiAnswer{};
  };
  CHECK(desk.answer("slow", forever)->status == 504);
  CHECK(desk.answer("large",
                    [] {
                      return ApiAnswer{200, std::string(std::size_t{1} << 30, 'x')};
                    })
            ->status == 500);
  const auto killed = [] {  // as the kernel does where memory runs out
    std::raise(SIGKILL);
    return ApiAnswer{};
  };
  CHECK(desk.answer("crash", killed)->status == 500);
  CHECK(desk.answer("good", [] { return ApiAnswer{200, "yes"}; })->body == "yes");
  // Known by now: nobody works it out again.
  CHECK(desk.answer("good", forever)->body == "yes");
}
