#include "calibrate/measuring/measurement_file.hpp"

#include "tests/catch.hpp"

using namespace shardwise;

namespace {

MeasurementFile example() {
  MeasurementFile file;
  file.machine.facts = {{"version", "0.1.0"}, {"date", "2026-01-02"}, {"mode", "quick"}};
  file.machine.gpus = {{{"name", "RTX \"4090\"\n"}, {"uuid", "GPU-1"}}};
  file.machine.links = {{{"a", "0"}, {"b", "1"}, {"kind", "PHB"}}};
  Entry gemm{0, {"gemm", {{"m", 4096}, {"n", 1}}, {{"dtype", "bf16"}}, "time_s", "m", 3}, {}};
  gemm.finding = {Outcome::measured, 1.0 / 3.0, 0.01, 7, 2, 1980, "", Seconds(0.1)};
  Entry full{std::nullopt, {"copy", {{"bytes", 1LL << 40}}, {}, "time_s", "", 1}, {}};
  full.finding.outcome = Outcome::out_of_memory;
  full.finding.why = "2.00 TiB\\ asked for";
  full.finding.took = Seconds(0.25);
  file.entries = {gemm, full};
  return file;
}

std::string text_of(const MeasurementFile& file) {
  std::string text = header_line(file.machine) + "\n";
  for (const Entry& entry : file.entries) text += entry_line(entry) + "\n";
  return text;
}

}  // namespace

TEST_CASE("a measurement file reads back as it was written") {
  const MeasurementFile written = example();
  const auto read = parse_measurement_file(text_of(written), "m.jsonl");
  REQUIRE(read);
  CHECK(read->machine.facts == written.machine.facts);
  CHECK(read->machine.gpus == written.machine.gpus);
  CHECK(read->machine.links == written.machine.links);
  REQUIRE(read->entries.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(read->entries[i].gpu == written.entries[i].gpu);
    CHECK(identity(read->entries[i].point) == identity(written.entries[i].point));
    CHECK(read->entries[i].finding == written.entries[i].finding);
  }
}

TEST_CASE("a copy that was cut off anywhere keeps its whole lines") {
  const std::string text = text_of(example());
  const std::size_t header = text.find('\n') + 1;
  const std::size_t first = text.find('\n', header) + 1;
  for (std::size_t size = header; size < text.size(); ++size) {
    const auto read = parse_measurement_file(text.substr(0, size), "m.jsonl");
    REQUIRE(read);
    CHECK(read->entries.size() == (size >= first ? 1U : 0U));
  }
  CHECK_FALSE(parse_measurement_file(text.substr(0, header - 1), "m.jsonl"));
}

TEST_CASE("a flawed line is a problem with its number") {
  const auto problem = [](const std::string& line) {
    const auto read = parse_measurement_file(text_of(example()) + line + "\n", "m.jsonl");
    return read ? std::string() : read.error()[0].where;
  };
  CHECK(problem("{") == "m.jsonl, line 4");
  CHECK(problem(R"({"bench":"gemm"})").find("m.jsonl, line 4") == 0);
  CHECK(problem(R"({"bench":"c","labels":{},"sizes":{},"quantity":"time_s","value":-1,)"
                R"("spread":0,"samples":1,"took_s":0})") == "m.jsonl, line 4:/value");
  CHECK_FALSE(parse_measurement_file("", "m.jsonl"));
  CHECK_FALSE(parse_measurement_file("{\"shardwise_measurements\":2}\n", "m.jsonl"));
}

TEST_CASE("fits get the measured points, with device and source") {
  const auto points = measurements(example(), "m.jsonl");
  REQUIRE(points.size() == 1);
  CHECK(points[0].bench == "gemm");
  CHECK(points[0].labels.at("device") == "RTX \"4090\"\n");
  CHECK(points[0].value == 1.0 / 3.0);
  CHECK(points[0].samples == 7);
  CHECK(points[0].discarded == 2);
  CHECK(points[0].source == "shardwise-calibrate 0.1.0, 2026-01-02, m.jsonl");
}
