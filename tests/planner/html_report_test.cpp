// The HTML report: what stands in it is text, whatever anybody calls a model or a GPU.
#include "planner/report/html_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/report/embedded_files.hpp"
#include "tests/catch.hpp"
#include "tests/planner/hostile_names.hpp"
#include "tests/planner/known_facts.hpp"

using namespace shardwise;
namespace fs = std::filesystem;

namespace {

// The one document that the page draws from.
Json document_in(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"document\">";
  const std::size_t at = page.find(open);
  REQUIRE(at != std::string::npos);
  const std::size_t end = page.find("</script>", at);
  return Json::parse(page.substr(at + open.size(), end - at - open.size()));
}

std::ptrdiff_t tags(const std::string& page) { return std::count(page.begin(), page.end(), '<'); }

std::string content(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct ReportFolder {
  fs::path path = fs::temp_directory_path() / ("shardwise-html-report-" + std::to_string(getpid()));
  ReportFolder() { fs::create_directories(path); }
  ~ReportFolder() { fs::remove_all(path); }
};

// A small model's config.json with a name of somebody's choice, which may be any text.
std::string config_named(const std::string& name) {
  return Json{
      {"model_type", "llama"},       {"_name_or_path", name},    {"hidden_size", 256},
      {"intermediate_size", 1024},   {"num_attention_heads", 4}, {"num_hidden_layers", 2},
      {"num_key_value_heads", 4},    {"vocab_size", 1000},       {"max_position_embeddings", 512},
      {"tie_word_embeddings", false}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The page that a command wrote for a question.
template <class Command>
std::string page_of(const ReportFolder& folder, Command command) {
  std::ostringstream out, err;
  Output output{out, err, true, false, 100};
  output.report = (folder.path / "report.html").string();
  INFO(err.str());
  REQUIRE(command(output) == 0);
  return content(output.report);
}

}  // namespace

TEST_CASE("JSON in a page reads back as it was and opens no tag", "[html]") {
  REQUIRE(hostile_names().size() >= 50);
  for (const std::string& name : hostile_names()) {
    INFO(name.substr(0, 80));
    const Json value = {{name, {name, {{"key", name}}}}};
    const std::string text = json_in_html(value);
    CHECK(text.find_first_of("<>&") == std::string::npos);
    CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 127; }));
    CHECK(Json::parse(text) == value);
  }
}

TEST_CASE("a page has the tags of its template, whatever the names in it", "[html]") {
  const std::ptrdiff_t plain = tags(report_page({{"model", "m"}}));
  for (const std::string& name : hostile_names()) {
    const Json answer = {
        {"command", name}, {"model", name}, {"plans", {{{"plan", name}}}}, {name, 1}};
    const std::string page = report_page(answer, {{0, {{"gpu", name}}, Json()}});
    INFO(name.substr(0, 80));
    CHECK(tags(page) == plain);
    CHECK(document_in(page).at("answer") == answer);
  }
}

TEST_CASE("names from a config.json reach the page as text", "[html]") {
  const ReportFolder folder;
  std::optional<std::ptrdiff_t> plain;
  std::vector<std::string> names{"plain"};
  names.insert(names.end(), hostile_names().begin(), hostile_names().end());
  for (const std::string& name : names) {
    INFO(name.substr(0, 80));
    std::ofstream(folder.path / "config.json") << config_named(name);
    const Request r =
        request_for((folder.path / "config.json").string(), "rtx-4090", {Method::full});
    const std::string page =
        page_of(folder, [&](const Output& o) { return fit(r, known_facts(), false, o); });
    if (!plain) plain = tags(page);
    CHECK(tags(page) == *plain);
  }
}

TEST_CASE("names from catalog files and requests reach the page as text", "[html]") {
  const ReportFolder folder;
  const Request asked = request_for("gpt2", "rtx-4090", {Method::full});
  const auto page_with = [&](const std::string& name) {
    Facts facts = known_facts();
    for (Gpu& gpu : facts.catalog.gpus)
      if (gpu.id == "rtx-4090") gpu.name = gpu.family = name;
    for (Transformer& model : facts.catalog.models)
      if (model.id == "gpt2") model.id = name, model.aliases = {"gpt2"};
    for (Framework& framework : facts.catalog.frameworks) framework.name = name;
    Request r = asked;
    r.samples = 10;
    return page_of(folder, [&](const Output& o) { return simulate(r, facts, {}, o); });
  };
  const std::ptrdiff_t plain = tags(page_with("plain"));
  for (const std::string& name : hostile_names()) {
    INFO(name.substr(0, 80));
    const std::string page = page_with(name);
    CHECK(tags(page) == plain);
    CHECK(document_in(page).at("answer").at("model") == Json(name));
  }
  Request wrong = asked;  // a plan that cannot be read stands in the answer, with why
  wrong.plans = {"dp=1", "</script><script>alert(1)</script>"};
  const std::string page =
      page_of(folder, [&](const Output& o) { return compare(wrong, known_facts(), false, o); });
  CHECK(tags(page) == plain);
}

TEST_CASE("the page needs nothing from outside and carries its library's licence", "[html]") {
  const std::string page = report_page({{"command", "fit"}});
  for (const char* outside : {"<link", "<iframe", "@import", "src="}) {
    const std::string own = page.substr(0, page.find("<script>"));
    CHECK(own.find(outside) == std::string::npos);
  }
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.find("Chart.js v3.") != std::string::npos);
  CHECK(page.find("Copyright (c) 2014-2022 Chart.js Contributors") != std::string::npos);
  CHECK(embedded_file("chart.js").find("</script") == std::string_view::npos);
  CHECK(page.find("{{") > page.find("<script>"));  // no place of the template is left open
}

TEST_CASE("a report that cannot be written is a problem of its file", "[html]") {
  const Problems problems = write_report("/nowhere/at/all/report.html", Json::object());
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().kind == ProblemKind::file);
}
