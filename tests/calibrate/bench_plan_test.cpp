#include "calibrate/measuring/bench_plan.hpp"

#include <set>

#include "calibrate/measuring/kernel_traffic.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

GpuTraits traits(int capability) { return {capability, Bytes(std::int64_t{24} << 30)}; }

}  // namespace

TEST_CASE("no plan has a point twice, and every point can be halved where it says so") {
  for (const auto mode : {CalibrationMode::quick, CalibrationMode::full})
    for (const int capability : {75, 80, 86, 89, 90, 100, 120}) {
      BenchPlan plan = gpu_plan(mode, traits(capability));
      const BenchPlan machine = machine_plan(mode, {8, 8, 1});
      plan.insert(plan.end(), machine.begin(), machine.end());
      std::set<std::string> seen;
      for (const BenchPoint& point : plan) {
        INFO(identity(point));
        CHECK(seen.insert(identity(point)).second);
        CHECK(point.weight > 0);
        if (!point.shrinks.empty()) REQUIRE(smaller(point));
      }
    }
}

TEST_CASE("quick is part of full, and small enough for its minute") {
  std::set<std::string> full;
  for (const BenchPoint& point : gpu_plan(CalibrationMode::full, traits(90)))
    full.insert(identity(point));
  const BenchPlan quick = gpu_plan(CalibrationMode::quick, traits(90));
  std::set<std::string> benches;
  for (const BenchPoint& point : quick)
    if (point.bench == "gemm" || point.bench == "memory_kernel") {
      INFO(identity(point));
      CHECK(full.count(identity(point)) == 1);
    }
  // At 52 s a point has a quarter of a second or more.
  CHECK(quick.size() < 200);
  CHECK(full.size() > 500);
  CHECK(gpu_budget(CalibrationMode::quick) <= Seconds(60));
}

TEST_CASE("a GPU is asked for the dtypes it has") {
  const auto dtypes = [](int capability) {
    std::set<std::string> found;
    for (const BenchPoint& point : gemm_plan(CalibrationMode::full, traits(capability)))
      found.insert(point.labels.at("dtype"));
    return found;
  };
  CHECK(dtypes(75) == std::set<std::string>{"fp16", "fp32"});
  CHECK(dtypes(86) == std::set<std::string>{"bf16", "fp16", "fp32", "tf32"});
  CHECK(dtypes(90) == std::set<std::string>{"bf16", "fp16", "fp32", "fp8", "tf32"});
}

TEST_CASE("one GPU has no collectives, a node has its smaller groups too, nodes have one") {
  CHECK(machine_plan(CalibrationMode::full, {1, 1, 1}).empty());
  const auto ranks = [](const GroupTraits& group) {
    std::set<std::int64_t> found;
    for (const BenchPoint& point : machine_plan(CalibrationMode::quick, group))
      if (point.bench == "collective") found.insert(point.sizes.at("ranks"));
    return found;
  };
  CHECK(ranks({8, 8, 1}) == std::set<std::int64_t>{2, 4, 8});
  CHECK(ranks({8, 16, 2}) == std::set<std::int64_t>{16});
}

TEST_CASE("a point dominates another only with the same words") {
  BenchPoint small{"gemm", {{"m", 2}, {"n", 8}}, {{"dtype", "bf16"}}, "time_s", "m", 1};
  BenchPoint large = small;
  large.sizes["m"] = 4;
  CHECK(at_least_as_large(large, small));
  CHECK(at_least_as_large(small, small));
  CHECK_FALSE(at_least_as_large(small, large));
  large.sizes["n"] = 7;
  CHECK_FALSE(at_least_as_large(large, small));
  BenchPoint other = small;
  other.labels["dtype"] = "fp8";
  CHECK_FALSE(at_least_as_large(other, small));
  CHECK(smaller(small)->sizes.at("m") == 1);
  CHECK_FALSE(smaller(*smaller(small)));
}

TEST_CASE("every memory kernel of a plan says what it moves") {
  for (const BenchPoint& point : kernel_plan(CalibrationMode::full, traits(90))) {
    if (point.bench != "memory_kernel") continue;
    INFO(identity(point));
    CHECK(kernel_traffic(point.sizes, point.labels));
  }
  const auto of = [](const char* kernel, std::map<std::string, std::int64_t> sizes) {
    return kernel_traffic(sizes, {{"kernel", kernel}}).value().moved;
  };
  // 8 x 64 elements, two tensors of 2 B read and one written.
  CHECK(of("add", {{"rows", 8}, {"columns", 64}}) == Bytes(8 * 64 * 6));
  // p, g, m, v read, p, m, v written: 7 x 4 B.
  CHECK(of("adam", {{"parameters", 100}, {"tensors", 1}}) == Bytes(2800));
  // 640 / 2 B of codes, 10 scales of 4 B, 640 x 2 B written.
  CHECK(of("nf4_dequantise", {{"parameters", 640}, {"block", 64}}) == Bytes(320 + 40 + 1280));
  // A row of 16 KiB is read from memory once, one of a vocabulary (250 KiB) twice.
  CHECK(of("rms_norm", {{"rows", 4}, {"columns", 8192}}) == Bytes(4 * 8192 * 4));
  CHECK(of("cross_entropy", {{"rows", 4}, {"columns", 128256}}) == Bytes(4 * 128256 * 6));
  CHECK_FALSE(kernel_traffic({{"rows", 8}, {"columns", 64}}, {{"kernel", "unknown"}}));
}
