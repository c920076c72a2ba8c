#include "planner/sweep/study.hpp"

#include <set>

#include "tests/catch.hpp"
#include "tests/sweep/sweep_folder.hpp"

using namespace shardwise;

namespace {

Study read(const std::string& text) {
  auto study = read_study_text(text, "s.json");
  if (!study) FAIL(study.error().front().where + ": " + study.error().front().what);
  return *std::move(study);
}

struct BadStudy {
  const char* text;
  ProblemKind kind;
  const char* where;
  const char* part;  // of the sentence
};

}  // namespace

TEST_CASE("a study is the product of its cases and axes, in a fixed order", "[sweep]") {
  const Study study = read(R"({
    "base": {"model": "8b", "batch": 64},
    "axes": {"sequence": [2048, 4096], "method": ["full", "lora", "qlora"]},
    "cases": [{"gpus": "8xA100-80GB"}, {"gpus": "8xH100-SXM", "batch": 128}]})");
  // 2 cases x 3 methods x 2 sequences; method stands before sequence in a request, so the sequence
  // runs fastest although the file names it first.
  REQUIRE(study.points() == 12);
  const Request first = study.request_of(0), second = study.request_of(1);
  CHECK(first.gpus == "8xA100-80GB");
  CHECK(first.methods == std::vector<Method>{Method::full});
  CHECK(first.sequence == 2048);
  CHECK(second.sequence == 4096);
  CHECK(second.methods == first.methods);
  CHECK(study.request_of(2).methods == std::vector<Method>{Method::lora});
  const Request last = study.request_of(11);
  CHECK(last.gpus == "8xH100-SXM");
  CHECK(last.batch == 128);  // a case wins over the base
  CHECK(first.batch == 64);
  CHECK(last.methods == std::vector<Method>{Method::qlora});
  CHECK(last.model == "8b");
}

TEST_CASE("a range of GPUs on an axis is all its sizes, as if they were written out", "[sweep]") {
  // 8, 16, 32, 64, and the box after them.
  const Study study = read(R"({"axes": {"gpus": ["8..64xH100-SXM", "8xA100-80GB"]}})");
  REQUIRE(study.points() == 5);
  CHECK(study.request_of(0).gpus == "8xH100-SXM");
  CHECK(study.request_of(3).gpus == "64xH100-SXM");
  CHECK(study.request_of(4).gpus == "8xA100-80GB");
  CHECK(study.fingerprint() ==
        read(R"({"axes": {"gpus": ["8xH100-SXM", "16xH100-SXM", "32xH100-SXM", "64xH100-SXM",
                                   "8xA100-80GB"]}})")
            .fingerprint());
}

TEST_CASE("a fingerprint knows the points and nothing else", "[sweep]") {
  const char* axes = R"({"axes": {"batch": [8, 16], "model": ["8b", "13b"]}})";
  const std::string one = read(axes).fingerprint();
  CHECK(one.size() == 16);
  CHECK(
      read(R"({"name": "n", "axes": {"model": ["8b", "13b"], "batch": [8, 16]}})").fingerprint() ==
      one);
  std::set<std::string> all{one};
  for (const char* other : {R"({"axes": {"batch": [16, 8], "model": ["8b", "13b"]}})",
                            R"({"axes": {"batch": [8, 16], "model": ["8b", "13b2"]}})",
                            R"({"axes": {"batch": [8, 16], "model": ["8b1", "3b"]}})",
                            R"({"axes": {"batch": [8, 16]}})",
                            R"({"axes": {"microbatch": [8, 16], "model": ["8b", "13b"]}})",
                            R"({"base": {"batch": 8}})", R"({"cases": [{"batch": 8}]})"})
    CHECK(all.insert(read(other).fingerprint()).second);
}

TEST_CASE("a wrong study is refused with file, pointer and reason", "[sweep]") {
  const ProblemKind request = ProblemKind::request, file = ProblemKind::file;
  const BadStudy bad[] = {
      {R"({"axes": {"modle": ["8b"]}})", request, "s.json:/axes/modle", "model"},
      {R"({"axis": {}})", request, "s.json:/axis", "axes"},
      {R"({"gpus": ["8xL4"]})", request, "s.json:/gpus", "expected under base, cases or axes"},
      {R"({"models": ["8b"]})", request, "s.json:/models", R"(under axes, as {"model": [...]})"},
      {R"({"methods": ["lora"]})", request, "s.json:/methods", R"(as {"method": [...]})"},
      {R"({"axes": {"seq": [2048]}})", request, "s.json:/axes/seq", "expected sequence"},
      {R"({"base": {"plan": "dp=1"}})", request, "s.json:/base/plan", "expected plans"},
      {R"({"axes": {"model": "8b"}})", request, "s.json:/axes/model", "array"},
      {R"({"axes": {"model": []}})", request, "s.json:/axes/model", "empty"},
      {R"({"axes": {"model": ["8b", 7]}})", request, "s.json:/axes/model/1", "7"},
      {R"({"axes": {"batch": [8, 1.5]}})", request, "s.json:/axes/batch/1", "whole number"},
      {R"({"axes": {"batch": [8, 0]}})", request, "s.json:/axes/batch/1", "positive"},
      {R"({"axes": {"batch": [8, 16, 8]}})", request, "s.json:/axes/batch/2", "twice"},
      {R"({"axes": {"method": ["full", "lorra"]}})", request, "s.json:/axes/method/1", "lora"},
      {R"({"axes": {"host_ram_gib": [-4]}})", request, "s.json:/axes/host_ram_gib/0", "GiB"},
      {R"({"axes": {"unfold": [true]}})", request, "s.json:/axes/unfold", "axis"},
      {R"({"base": {"explain": true}})", request, "s.json:/base/explain", "no place"},
      {R"({"base": {"method": ["full", "lora"]}})", request, "s.json:/base/method", "axes"},
      {R"({"base": {"batch": "8"}})", request, "s.json:/base/batch", "whole number"},
      {R"({"base": {"batch": 8}, "axes": {"batch": [8]}})", request, "s.json:/base/batch", "axes"},
      {R"({"cases": [{}, {"batch": 8}], "axes": {"batch": [8]}})", request, "s.json:/cases/1/batch",
       "axes"},
      {R"({"axes": {"gpus": ["8xL4", "8..65xH100-SXM"]}})", request, "s.json:/axes/gpus/1",
       "doubles"},
      {R"({"axes": {"gpus": ["8..16xL4", "16xL4"]}})", request, "s.json:/axes/gpus/2", "twice"},
      {R"({"base": {"gpus": "8..64xH100-SXM"}})", request, "s.json:/base/gpus", "under axes"},
      {R"({"cases": []})", request, "s.json:/cases", "at least one"},
      {R"([1])", request, "s.json", "object"},
      {R"({"axes": )", file, "s.json", "line 1"},
      {R"({"axes": {}, "axes": {}})", file, "s.json", "axes"},
  };
  for (const BadStudy& b : bad) {
    INFO(b.text);
    const auto study = read_study_text(b.text, "s.json");
    REQUIRE_FALSE(study);
    const Problem& p = study.error().front();
    CHECK(p.kind == b.kind);
    CHECK(p.where.substr(0, std::string(b.where).size()) == b.where);
    CHECK((p.where + p.what).find(b.part) != std::string::npos);
  }
}

TEST_CASE("a study has at most a million points", "[sweep]") {
  std::string batches, sequences;
  for (int i = 1; i <= 1000; ++i) {
    batches += (i > 1 ? "," : "") + std::to_string(i);
    sequences += (i > 1 ? "," : "") + std::to_string(i);
  }
  const std::string full =
      R"({"axes": {"batch": [)" + batches + R"(], "sequence": [)" + sequences + "]";
  CHECK(read(full + "}}").points() == 1'000'000);
  CHECK_FALSE(read_study_text(full + R"(, "microbatch": [1, 2]}})", "s.json"));
}
