// The fit of links against the predictor's own model with known constants.
#include "calibrate/link_fit.hpp"

#include "simulator/network/collective_model.hpp"
#include "tests/calibrate/noisy_samples.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/link_machines.hpp"

using namespace shardwise;
using namespace shardwise::noisy_samples;

namespace {

LinkTimer link_timer(const Cluster& cluster) {
  return [cluster, base = link_machines::calibration()](const ConstantValues& values,
                                                        const std::vector<LinkPoint>& points) {
    LinkCalibration links = base;
    const Gpu& gpu = cluster.groups.front().gpu;
    GpuGeneration* generation = nullptr;
    for (GpuGeneration& g : links.generations)
      if (g.name == links.generation(gpu.vendor, gpu.compute_capability).name) generation = &g;
    const DeviceConstants target{nullptr, &links, generation};
    for (const auto& [key, value] : values) set_constant(*device_constant(key), target, value);
    const CollectiveModel model(cluster, links);
    std::vector<Seconds> times;
    for (const LinkPoint& p : points) {
      GroupShape shape;
      shape.ranks = shape.ranks_per_node = p.ranks;
      times.push_back(model.time(Collective::all_reduce, p.bytes, shape).time);
    }
    return times;
  };
}

std::vector<LinkPoint> doubling_links(const LinkTimer& timer, const ConstantValues& truth,
                                      Noise& noise) {
  std::vector<LinkPoint> points;
  for (int e = 10; e <= 30; ++e)
    points.push_back({"all_reduce", Bytes(std::int64_t{1} << e), 8, Seconds(0)});
  const std::vector<Seconds> times = timer(truth, points);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].time = noise.measured(times[i]);
  return points;
}

}  // namespace

TEST_CASE("cards without peer access: what host memory passes is found, the rest is left alone") {
  const Cluster box = link_machines::cluster(link_machines::rtx_4090(),
                                             link_machines::node(8, IntraLink::pcie_host), 1, 8);
  const LinkTimer timer = link_timer(box);
  for (unsigned seed = 0; seed < 3; ++seed) {
    Noise noise(seed);
    const ConstantValues truth{{"links.shm", 0.45}, {"links.cpu_hop_us", 1.9}};
    const auto points = doubling_links(timer, truth, noise);
    const LinkFit fit = fit_links(
        points, {{"links.shm", 0.59}, {"links.cpu_hop_us", 1.3}, {"links.nvls_fraction", 0.85}},
        timer);
    CHECK(within(fit.constants.at("links.shm").value, 0.45));
    CHECK(within(fit.constants.at("links.cpu_hop_us").value, 1.9, 0.1));
    CHECK(fit.constants.count("links.nvls_fraction") == 0);  // no NVLink in this box
    CHECK(fit.after < fit.before);
  }
}

TEST_CASE("NVSwitch: the in-switch reduction's share is found") {
  const Cluster box = link_machines::hgx(link_machines::h100());
  const LinkTimer timer = link_timer(box);
  Noise noise(3);
  const auto points = doubling_links(timer, {{"links.nvls_fraction", 0.8}}, noise);
  const LinkFit fit = fit_links(points, {{"links.nvls_fraction", 0.95}}, timer);
  REQUIRE(fit.constants.count("links.nvls_fraction") == 1);
  CHECK(within(fit.constants.at("links.nvls_fraction").value, 0.8));
}

TEST_CASE("points of several nodes and of one GPU are not of a machine's links") {
  Sweep one{"collective", {{"ranks", 8}, {"nodes", 1}}, {{"collective", "all_reduce"}}, {}, 0};
  one.points.push_back({Bytes(1024), Seconds(1e-5), 1});
  Sweep two = one, lone = one, copy = one;
  two.sizes["nodes"] = 2;
  lone.sizes["ranks"] = 1;
  copy.bench = "copy";
  CHECK(link_points({one, two, lone, copy}).size() == 1);
}
