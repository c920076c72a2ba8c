#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/commands/fit.hpp"
#include "planner/commands/plan.hpp"
#include "planner/commands/request_flags.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/sweep/sweep_report.hpp"
#include "tests/catch.hpp"
#include "tests/sweep/sweep_folder.hpp"

using namespace shardwise;
using AnyJson = nlohmann::json;

namespace {

// Runs what is missing, or at most `most` points of it, and closes the file.
void run(const SweepTask& task, int threads, std::size_t most = 1000) {
  const OpenedStudy study = small_study();
  std::ostringstream progress;
  auto desk = SweepDesk::open(task, study, "facts", point_facts(), progress);
  if (!desk) FAIL(desk.error().front().what);
  if (most >= 1000) {
    CHECK(sweep_here(*desk, study.study, point_facts(), threads).empty());
    CHECK(desk->complete());
    return;
  }
  for (std::size_t i = 0; i < most; ++i)
    CHECK(desk->accept(finish_point(study.study, *desk->next(), point_facts()), 0, "h").empty());
}

std::string csv_of(const std::vector<SweepRow>& rows) {
  std::string text = sweep_csv_head();
  for (const SweepRow& row : rows) text += sweep_csv_line(row);
  return text;
}

std::vector<SweepRow> rows_of(const std::string& path) {
  const auto store = SweepStore::read(path);
  REQUIRE(store);
  return *store->rows();
}

// What a command prints for a row's own request.
template <class Command>
AnyJson answered(const SweepRow& row, Command command) {
  const auto request = read_request_text(*text_in(row, "request"), "request");
  REQUIRE(request);
  const auto facts = point_facts().of(*request);
  REQUIRE(facts);
  std::ostringstream out, err;
  const Output output{out, err, true};
  INFO(err.str());
  REQUIRE(command(*request, **facts, output) == 0);
  return AnyJson::parse(out.str());
}

}  // namespace

TEST_CASE("a sweep gives the same bytes on any number of threads, and resumed", "[sweep]") {
  const SweepFolder folder;
  run({"", folder / "one.sqlite", false, {}}, 1);
  run({"", folder / "three.sqlite", false, {}}, 3);
  run({"", folder / "halves.sqlite", false, {}}, 1, 5);
  CHECK(rows_of(folder / "halves.sqlite").size() == 5);
  run({"", folder / "halves.sqlite", true, {}}, 2);
  const std::vector<SweepRow> rows = rows_of(folder / "one.sqlite");
  CHECK(rows.size() == 12);  // 2 models x 2 sizes x 3 plans
  const std::string csv = csv_of(rows);
  CHECK(csv_of(rows_of(folder / "three.sqlite")) == csv);
  CHECK(csv_of(rows_of(folder / "halves.sqlite")) == csv);
}

TEST_CASE("rows that another program began are not gone on with", "[sweep]") {
  const SweepFolder folder;
  const OpenedStudy study = small_study();
  const SweepTask task{"", folder / "s.sqlite", false, {}};
  std::ostringstream progress;
  {
    auto desk = SweepDesk::open(task, study, "facts", point_facts(), progress);
    REQUIRE(desk);
    FinishedPoint done = finish_point(study.study, 0, point_facts());
    done.row[sweep_column("step_time_s")] = 1.5;  // what that program would have forecast
    REQUIRE(desk->accept(done, 0, "h").empty());
  }
  const auto desk =
      SweepDesk::open({"", task.out, true, {}}, study, "facts", point_facts(), progress);
  REQUIRE_FALSE(desk);
  CHECK(desk.error().front().what.find("answers point 0 otherwise") != std::string::npos);
}

TEST_CASE("a point is what simulate, fit and plan answer to its request", "[sweep]") {
  const auto study = read_study_text(
      R"({"base": {"model": "gpt2", "gpus": "2xRTX-4090", "method": "full", "batch": 16},
          "axes": {"plans": ["dp=2,zero=3", "fit", "best"]}})",
      "s.json");
  REQUIRE(study);
  std::vector<SweepRow> rows;
  for (std::int64_t i = 0; i < 3; ++i) rows.push_back(finish_point(*study, i, point_facts()).row);
  const auto simulated = answered(rows[0], [](const Request& r, const Facts& f, const Output& o) {
    return simulate(r, f, {}, o);
  });
  CHECK(simulated["step_time_s"]["expected"] == *number_in(rows[0], "step_time_s"));
  CHECK(simulated["mfu"] == *number_in(rows[0], "mfu"));
  CHECK(*text_in(rows[0], "plan_by") == "request");
  const auto fitted = answered(rows[1], [](const Request& r, const Facts& f, const Output& o) {
    return fit(r, f, false, o);
  })["answers"][0];
  CHECK(fitted["plan"] == *text_in(rows[1], "plan"));
  CHECK(fitted["step_time_s"]["expected"] == *number_in(rows[1], "step_time_s"));
  CHECK(fitted["peak_memory_gib"]["device"] == *number_in(rows[1], "peak_memory_gib"));
  CHECK(fitted["margin_gib"] == *number_in(rows[1], "margin_gib"));
  const auto planned = answered(rows[2], [](const Request& r, const Facts& f, const Output& o) {
    return plan(r, {}, f, o);
  })["plans"][0];
  CHECK(planned["plan"] == *text_in(rows[2], "plan"));
  CHECK(planned["step_time_s"]["expected"] == *number_in(rows[2], "step_time_s"));
  CHECK(*text_in(rows[2], "plan_by") == "best");
  // No plan at all means the same as the word fit.
  const auto open = read_study_text(
      R"({"base": {"model": "gpt2", "gpus": "2xRTX-4090", "method": "full", "batch": 16}})",
      "s.json");
  REQUIRE(open);
  SweepRow same = finish_point(*open, 0, point_facts()).row;
  same.front() = rows[1].front();
  CHECK(same == rows[1]);
}

TEST_CASE("what does not fit or cannot be asked is a row", "[sweep]") {
  const OpenedStudy study = small_study();
  // Points: model, then gpus, then plans. 11: 8b, 4 GPUs, tp=2.
  const SweepRow tp = finish_point(study.study, 11, point_facts()).row;
  CHECK(text_in(tp, "verdict") == "does_not_fit");
  CHECK(*number_in(tp, "margin_gib") < 0);
  CHECK_FALSE(text_in(tp, "problem"));
  // 10: dp=2,zero=3 on 4 GPUs does not multiply out.
  const SweepRow dp = finish_point(study.study, 10, point_facts()).row;
  CHECK(text_in(dp, "verdict") == "refused");
  CHECK(text_in(dp, "problem")->find("4") != std::string::npos);
  CHECK_FALSE(number_in(dp, "step_time_s"));
  const auto unknown =
      read_study_text(R"({"base": {"model": "nobody", "gpus": "A100"}})", "s.json");
  REQUIRE(unknown);
  const SweepRow none = finish_point(*unknown, 0, point_facts()).row;
  CHECK(text_in(none, "verdict") == "refused");
  CHECK(text_in(none, "problem")->find("nobody") != std::string::npos);
}

TEST_CASE("the ranking keeps to rows that do the same work", "[sweep]") {
  const auto row = [](std::int64_t point, const char* verdict, std::int64_t sequence, double tokens,
                      double margin) {
    SweepRow r(sweep_columns().size());
    r[sweep_column("point")] = point;
    r[sweep_column("verdict")] = std::string(verdict);
    r[sweep_column("model")] = std::string("m");
    r[sweep_column("method")] = std::string("full");
    r[sweep_column("sequence")] = sequence;
    r[sweep_column("tokens_per_s")] = tokens;
    r[sweep_column("margin_gib")] = margin;
    return r;
  };
  std::vector<SweepRow> rows{
      row(0, "fits", 1024, 10, 5),          row(1, "tight", 1024, 30, 1),
      row(2, "fits", 2048, 99, 5),          row(3, "does_not_fit", 1024, 90, -7),
      row(4, "does_not_fit", 1024, 50, -2), row(5, "fits", 1024, 10, 5)};
  rows.push_back(SweepRow(sweep_columns().size()));
  rows[6][0] = std::int64_t{6};
  rows[6][sweep_column("verdict")] = std::string("refused");
  rows[6][sweep_column("problem")] = std::string("why");
  const SweepRanking by_tokens = rank_sweep(rows, *sweep_measure("tokens"));
  REQUIRE(by_tokens.groups.size() == 2);
  // 30 tokens/s, then the two of 10 by point; of what does not fit 2 GiB short before 7.
  CHECK(by_tokens.groups[0].ranked == std::vector<std::size_t>{1, 0, 5});
  CHECK(by_tokens.groups[0].do_not_fit == std::vector<std::size_t>{4, 3});
  CHECK(by_tokens.groups[1].ranked == std::vector<std::size_t>{2});
  CHECK(by_tokens.refused.at("why") == std::vector<std::size_t>{6});
  CHECK(by_tokens.counts.at("fits") == 3);
  // Nobody said what they cost.
  const SweepRanking by_dollars = rank_sweep(rows, *sweep_measure("dollars"));
  CHECK(by_dollars.groups[0].ranked.empty());
  CHECK(by_dollars.groups[0].unmeasured == std::vector<std::size_t>{0, 1, 5});
}

TEST_CASE("every measure ranks by a column that there is", "[sweep]") {
  for (const SweepMeasure& m : sweep_measures()) {
    INFO(m.name);
    CHECK(sweep_columns()[sweep_column(m.column)].type == SweepType::real);
  }
}

TEST_CASE("the documented columns are those that there are", "[sweep]") {
  std::ifstream file(source_dir() + "/docs/sweep.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const SweepColumn& c : sweep_columns()) {
    const std::string type = c.type == SweepType::integer ? "INTEGER"
                             : c.type == SweepType::real  ? "REAL"
                                                          : "TEXT";
    const std::string row = "| `" + std::string(c.name) + "` | " + type + " | ";
    INFO(row << c.what);
    CHECK(text.str().find(row + std::string(c.what)) != std::string::npos);
  }
}

TEST_CASE("CSV quotes what has to be quoted", "[sweep]") {
  SweepRow row(sweep_columns().size());
  row[0] = std::int64_t{4};
  row[1] = std::string("fits");
  row[2] = std::string("a \"b\", c");
  const std::string line = sweep_csv_line(row);
  // The other columns are empty: a comma before each, and the end of the line.
  CHECK(line == "4,fits,\"a \"\"b\"\", c\"" + std::string(sweep_columns().size() - 3, ',') + "\n");
}

TEST_CASE("cores are shared fairly among the processes that may use them", "[sweep]") {
  const std::vector<bool> all{true, true, true, true}, left{true, true, false, false},
      right{false, false, true, true}, one{true, false, false, false};
  CHECK(fair_threads({all}, 0) == 4);
  CHECK(fair_threads({left, right}, 1) == 2);
  CHECK(fair_threads({all, all}, 0) == 2);
  // Three on four cores: 4/3 each, and nobody less than one.
  CHECK(fair_threads({all, all, all}, 2) == 1);
  CHECK(fair_threads({one, one, one}, 0) == 1);
  // Alone on two cores, shared on two: 2 + 2/2 = 3, and the other 2/2 = 1.
  CHECK(fair_threads({all, left}, 0) == 3);
  CHECK(fair_threads({all, left}, 1) == 1);
}
