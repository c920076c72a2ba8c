#include "simulator/costs/memory_bound_model.hpp"

#include "tests/catch.hpp"
#include "tests/simulator/bare_machine.hpp"
#include "tests/simulator/kernel_points.hpp"

using namespace shardwise;

TEST_CASE("bytes over bandwidth plus a start per kernel") {
  Profile profile = bare_profile();
  profile.families[0].memory.start = Seconds(2e-6);
  const MemoryBoundModel model(bare_gpu(), profile);
  // 1 MB at 1 TB/s is 1 us; reductions reach half of that, scattered rows a quarter.
  CHECK(model.time(Bytes(1'000'000)).value == Approx(3e-6));
  CHECK(model.time(Bytes(1'000'000), 5).value == Approx(11e-6));
  CHECK(model.time(Bytes(1'000'000), 1, MemoryAccess::reduction).value == Approx(4e-6));
  CHECK(model.time(Bytes(1'000'000), 1, MemoryAccess::gather).value == Approx(6e-6));
  CHECK(model.time(Bytes(0), 0) == Seconds(0));
}

TEST_CASE("a copy measured on the GPU itself is a floor, and never beats the datasheet") {
  Profile profile = bare_profile();
  profile.families[0].memory.fraction = {0.8, 0.5, 0.25};
  Gpu gpu = bare_gpu();
  const auto streaming = [&] {
    return MemoryBoundModel(gpu, profile).bandwidth(MemoryAccess::streaming).value;
  };
  CHECK(streaming() == Approx(0.8e12));
  gpu.efficiency.memory_fraction = 0.7;
  CHECK(streaming() == Approx(0.8e12));
  gpu.efficiency.memory_fraction = 0.9;
  CHECK(streaming() == Approx(0.9e12));
  gpu.efficiency.memory_fraction = 1.2;
  CHECK(streaming() == Approx(1e12));
}

TEST_CASE("every catalogued family walks rows no faster than it streams") {
  for (const FamilyCalibration& f : published_profile().families) {
    INFO(f.family);
    CHECK(f.memory.fraction[1] <= f.memory.fraction[0]);
    CHECK(f.memory.fraction[2] <= f.memory.fraction[0]);
  }
}
