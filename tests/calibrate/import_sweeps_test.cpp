// The published sweeps of catalog/runs go through the importer without loss.
#include "calibrate/import_sweeps.hpp"

#include <filesystem>

#include "calibrate/import_log.hpp"
#include "calibrate/median.hpp"
#include "calibrate/size_fit.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

ImportedLog published() {
  auto log =
      import_file(std::filesystem::path(source_dir()) / "catalog/runs/c_microbench.json", {});
  REQUIRE(log);
  return *std::move(log);
}

}  // namespace

TEST_CASE("every published micro-benchmark is understood") {
  const ImportedLog log = published();
  CHECK(log.format == "micro-benchmarks of catalog/runs");
  CHECK(log.unread.empty());
  CHECK(log.measurements.size() >= 378);  // one per record, and one more where in place is told
  for (const Measurement& m : log.measurements) {
    INFO(m.source);
    CHECK(m.value > 0);
    CHECK(!m.bench.empty());
  }
}

TEST_CASE("where only a bus bandwidth was published, the time follows from it") {
  const std::string text = R"([{"id": "a", "kind": "allreduce", "hardware": "B200", "gpus": 8,
    "gpus_per_node": 8, "size_bytes": 1000000, "busbw_GBs": 1.75, "source": {}}])";
  const ImportedLog log = import_log("runs.json", text, {});
  REQUIRE(log.measurements.size() == 1);
  // algbw = busbw / (2 x 7/8) = 1 GB/s: a megabyte in a millisecond.
  CHECK(log.measurements.at(0).value == Approx(1e-3));
  CHECK(log.measurements.at(0).sizes.at("nodes") == 1);
}

TEST_CASE("leave one size out over the published sweeps") {
  std::vector<double> errors;
  for (const Sweep& sweep : sweeps_of(published().measurements))
    for (const LeftOut& left : leave_one_size_out(sweep)) errors.push_back(left.error());
  CHECK(errors.size() >= 300);
  CHECK(median(errors) <= 0.10);
}
