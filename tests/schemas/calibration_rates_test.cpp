#include "planner/report/calibration_rates.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

namespace shardwise {
namespace {

Gpu card(const char* name, double dense_tflops, double memory_gbps, double nvlink_gbps) {
  Gpu g;
  g.name = name;
  g.dense_rate[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond(dense_tflops * 1e12);
  g.memory_bandwidth = BytesPerSecond(memory_gbps * 1e9);
  g.nvlink = BytesPerSecond(nvlink_gbps * 1e9);
  g.pcie_generation = 4;
  g.pcie_lanes = 16;
  return g;
}

HostLinks host() {
  HostLinks h;
  h.lane[3] = BytesPerSecond(1.969e9);
  return h;
}

FittedCurve curve(const char* name, std::optional<double> gbps) {
  FittedCurve c{name, {}, 1, 1, 4};
  c.regimes.push_back({Bytes(8), Bytes(1024), Seconds(1e-5), BytesPerSecond(1e9)});
  c.regimes.push_back({Bytes(2048), Bytes(1 << 30), Seconds(1e-5), std::nullopt});
  if (gbps) c.regimes.back().beta = BytesPerSecond(*gbps * 1e9);
  return c;
}

}  // namespace

TEST_CASE("rates of a profile stand beside what its card's datasheet says") {
  DeviceProfile p;
  p.constants["gemm.sustained_fraction.bf16"] = {0.7, 0.6, 0.8, 5};
  p.constants["memory.streaming_fraction"] = {0.9, 0.8, 1, 5};
  p.constants["memory.start_us"] = {3, 2, 4, 5};  // no rate
  p.fits = {curve("all_reduce, 8 GPUs (a label)", 200), curve("all_reduce, 8 GPUs on 2 nodes", 100),
            curve("copy host_to_device", 25), curve("broadcast, 2 GPUs", std::nullopt)};
  const auto rates = device_rates(p, card("A", 400, 2000, 300), host());
  REQUIRE(rates.size() == 5);  // a curve that does not grow has no rate
  CHECK(rates[0].rate == Approx(0.7 * 400));
  CHECK(rates[0].datasheet == Approx(400));
  CHECK(rates[1].rate == Approx(0.9 * 2000));
  CHECK(rates[1].port == "memory");
  // An all-reduce of 8 sends 2 x 7/8 of its bytes over every port: 200 GB/s are 350 on the bus.
  CHECK(rates[2].name == "all_reduce, 8 GPUs");
  CHECK(rates[2].rate == Approx(350));
  CHECK(rates[2].datasheet == Approx(300));
  CHECK_FALSE(rates[3].datasheet);  // nodes are joined by no GPU's port
  // A copy from the host is over 16 lanes of generation 4, with or without NVLink.
  CHECK(rates[4].port == "PCIe");
  CHECK(rates[4].datasheet == Approx(16 * 1.969));
  // Without NVLink cards reach each other over PCIe.
  const auto without = device_rates(p, card("B", 400, 2000, 0), host());
  CHECK(without[2].port == "PCIe");
  // And so they do where a bridge could join them and the profile is of host memory.
  p.constants["links.shm"] = {0.4, 0.4, 0.4, 5};
  const auto unbridged = device_rates(p, card("A", 400, 2000, 300), host());
  CHECK(unbridged[2].port == "PCIe");
}

TEST_CASE("rates of one name stand side by side, those of one profile alone") {
  DeviceProfile first, second;
  first.name = "first";
  second.name = "second";
  first.fits = {curve("all_reduce, 8 GPUs (x)", 200), curve("broadcast, 8 GPUs", 50)};
  second.fits = {curve("all_reduce, 8 GPUs (y)", 300)};
  const Gpu a = card("A", 400, 2000, 350), b = card("B", 800, 4000, 700);
  const Json j = device_rates_json({first, a}, {second, b}, host());
  REQUIRE(j.size() == 2);
  CHECK(j[0]["a"]["rate"] == Approx(350));
  CHECK(j[0]["b"]["rate"] == Approx(525));
  CHECK(j[1]["b"].is_null());
  const std::string text = device_rates_text({first, a}, {second, b}, host());
  CHECK(text.find("different GPUs, A and B") == 0);
  CHECK(text.find("350.0 (100 % of NVLink's 350.0)") != std::string::npos);
  CHECK(text.find("525.0 (75 % of NVLink's 700.0)  ") != std::string::npos);
  CHECK(text.find("1.50") != std::string::npos);
}

}  // namespace shardwise
