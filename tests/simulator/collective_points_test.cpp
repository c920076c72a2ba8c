// Collectives on one node of NVLink, from 128 KiB to 1 GiB on 2, 4 and 8 GPUs, against what NCCL
// took there (collective_points.json): the tables that the constants of link generations which the
// tuner does not have (ring_fraction, own_share, filling) were fitted to, and what the tuner's own
// estimate, with none of them, makes of the same.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "catalog/json_reader.hpp"
#include "simulator/network/collective_model.hpp"
#include "tests/simulator/link_machines.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;
using namespace shardwise::link_machines;

namespace {

struct PointSweep {
  std::string system;
  Collective collective = Collective::all_reduce;
  int gpus = 2;
  std::vector<double> bytes_and_us;
};

std::vector<PointSweep> read_point_sweeps() {
  auto document = parse_json_file(source_dir() + "/tests/simulator/collective_points.json",
                                  "collective_points.json");
  REQUIRE(document);
  Problems problems;
  JsonReader root(*document, problems);
  std::vector<PointSweep> sweeps;
  for (JsonReader& r : root.objects("sweeps")) {
    PointSweep s;
    s.system = r.text("system");
    const std::string named = r.text("collective");
    const auto kind = collective_called(named);
    REQUIRE(kind);
    s.collective = *kind;
    s.gpus = r.integer("gpus", 2, 8);
    s.bytes_and_us = r.numbers("bytes_and_us");
    sweeps.push_back(std::move(s));
  }
  REQUIRE(problems.empty());
  return sweeps;
}

Gpu chip_of(const std::string& system) {
  if (system == "a100_sxm") return a100();
  return system.front() == 'h' ? h100() : b200();
}

// |ln(forecast / measured)| of every point of a system.
std::vector<double> point_errors(const std::vector<PointSweep>& sweeps, const std::string& system,
                                 const LinkCalibration& links) {
  std::vector<double> found;
  for (const PointSweep& s : sweeps) {
    if (s.system != system) continue;
    const Cluster box = hgx(chip_of(system), 1, s.gpus);
    const CollectiveModel model(box, links);
    for (std::size_t i = 0; i + 1 < s.bytes_and_us.size(); i += 2) {
      const Bytes size(static_cast<std::int64_t>(s.bytes_and_us[i]));
      const double us =
          1e6 * model.time(s.collective, size, group_shape(s.gpus, 1, s.gpus, s.gpus)).time.value;
      found.push_back(std::abs(std::log(us / s.bytes_and_us[i + 1])));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("published: collectives of two, four and eight GPUs of a node", "[microbench]") {
  const std::vector<PointSweep> sweeps = read_point_sweeps();
  const LinkCalibration links = calibration(), alone = tuner_alone();
  for (const std::string system : {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm"}) {
    const std::vector<double> now = point_errors(sweeps, system, links);
    const std::vector<double> tuner = point_errors(sweeps, system, alone);
    REQUIRE(now.size() >= 50);
    std::printf(
        "  %-10s %3zu points  median error %4.1f %%, p90 %4.1f (the tuner's own %4.1f, %4.1f)\n",
        system.c_str(), now.size(), 100 * now[now.size() / 2], 100 * now[now.size() * 9 / 10],
        100 * tuner[tuner.size() / 2], 100 * tuner[tuner.size() * 9 / 10]);
    INFO(system);
    CHECK(now[now.size() / 2] <= 0.12);
    CHECK(now[now.size() / 2] < tuner[tuner.size() / 2]);
  }
}
