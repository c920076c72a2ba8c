#include "calibrate/import_nvbandwidth.hpp"

#include <string>

#include "calibrate/import_log.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

const std::string printed =
    "nvbandwidth Version: v0.10.0\n"
    "Built from Git version: v0.10\n"
    "CUDA Runtime Version: 13.3 (13030)\n"
    "CUDA Driver Version (API): 13.3 (13030)\n"
    "Driver Version: 610.57.04\n"
    "\n"
    "Device 0: NVIDIA H100 80GB HBM3 (00000000:19:00)\n"
    "Device 1: NVIDIA H100 80GB HBM3 (00000000:3b:00)\n"
    "\n"
    "Running host_to_device_memcpy_ce.\n"
    "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0     55.00     54.00\n"
    "\n"
    "SUM host_to_device_memcpy_ce 109.00\n"
    "COEFFICIENT_OF_VARIATION host_to_device_memcpy_ce 0.00\n"
    "\n"
    "Running device_to_device_bidirectional_memcpy_read_ce.\n"
    "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)\n"
    "           0         1\n"
    " 0       N/A    784.00\n"
    " 1    786.00       N/A\n"
    "\n"
    "SUM device_to_device_bidirectional_memcpy_read_ce 1570.00\n"
    "\n"
    "Running host_device_latency_sm.\n"
    "memory latency SM CPU(row) <-> GPU(column) (ns)\n"
    "           0         1\n"
    " 0    772.58    778.95\n"
    "\n"
    "Waived: multinode_device_to_device_memcpy_read_ce\n";

}  // namespace

TEST_CASE("nvbandwidth's text") {
  const ImportedLog log = import_log("bw.txt", printed, {});
  CHECK(log.format == "nvbandwidth");
  CHECK(log.facts.at("driver") == "610.57.04");
  CHECK(log.facts.at("device") == "NVIDIA H100 80GB HBM3");
  REQUIRE(log.measurements.size() == 6);
  const Measurement& up = log.measurements.at(1);
  CHECK(up.bench == "copy");
  CHECK(up.quantity == "bytes_per_s");
  CHECK(up.value == Approx(54e9));
  CHECK(up.labels.at("direction") == "host_to_device");
  CHECK(up.labels.at("engine") == "ce");
  CHECK(up.sizes.at("column") == 1);
  CHECK(up.source == "bw.txt:13");
  const Measurement& across = log.measurements.at(2);
  CHECK(across.labels.at("direction") == "device_to_device_bidirectional_read");
  CHECK(across.sizes.at("row") == 0);
  CHECK(across.sizes.at("column") == 1);
  const Measurement& latency = log.measurements.at(4);
  CHECK(latency.bench == "latency");
  CHECK(latency.quantity == "time_s");
  CHECK(latency.value == Approx(772.58e-9));
  REQUIRE(log.unread.size() == 1);
  CHECK(log.unread.at(0).why == "waived: this machine cannot run the test");
}

TEST_CASE("what else was pasted into a log is told, not passed over") {
  const std::string both =
      "# all_reduce_perf\n"
      "#       size  count  type  redop  root   time  algbw  busbw\n"
      "     1048576 262144 float sum -1 215.3 4.87 4.87 0 213.9 4.90 4.90 0\n" +
      printed;
  const ImportedLog log = import_log("both.log", both, {});
  CHECK(log.format == "nccl-tests");
  REQUIRE_FALSE(log.unread.empty());
  CHECK(log.unread.back().why == "it also holds nvbandwidth: give that as a file of its own");
  const ImportedLog alone = import_log("alone.log", printed, {});
  CHECK(alone.format == "nvbandwidth");
  for (const auto& line : alone.unread) CHECK(line.why.find("also holds") == std::string::npos);
}

TEST_CASE("a matrix that is cut off, and a sum that is not its own") {
  std::string text = printed;
  text.replace(text.find(" 1    786.00       N/A\n"), 24, " 1    786.00\n");
  text.replace(text.find("109.00"), 6, "129.00");
  const ImportedLog log = import_log("bw.txt", text, {});
  REQUIRE(log.unread.size() == 3);
  CHECK(log.unread.at(0).why == "the sum is not that of the matrix above");
  CHECK(log.unread.at(0).line == 15);
  CHECK(log.unread.at(1).why == "the row is cut off");
  CHECK(log.measurements.size() == 6);
}

TEST_CASE("nvbandwidth -j, members as its json_output.cpp writes them") {
  const std::string text = R"json({"nvbandwidth": {"CUDA Runtime Version": 12040,
    "Driver Version": "550.54.15", "git_version": "v0.6",
    "GPU Device list": ["0: NVIDIA A10 (00000000:01:00)"],
    "testcases": [
      {"name": "host_to_device_memcpy_ce", "status": "Passed",
       "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
       "bandwidth_matrix": [["25.17", "N/A"]], "sum": 25.17},
      {"name": "device_to_device_memcpy_read_ce", "status": "Waived"}]}})json";
  const ImportedLog log = import_log("bw.json", text, {});
  CHECK(log.format == "nvbandwidth JSON");
  CHECK(log.facts.at("driver") == "550.54.15");
  REQUIRE(log.measurements.size() == 1);
  CHECK(log.measurements.at(0).value == Approx(25.17e9));
  CHECK(log.measurements.at(0).labels.at("device") == "NVIDIA A10");
  REQUIRE(log.unread.size() == 1);
  CHECK(log.unread.at(0).why == "no matrix: Waived");
}
