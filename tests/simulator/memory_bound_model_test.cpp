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

TEST_CASE("what the kernel before wrote comes from the cache while it fits") {
  Profile profile = bare_profile();
  profile.families[0].memory.cache = {BytesPerSecond(0.1e12), 0.5, 1.5};
  Gpu gpu = bare_gpu();
  gpu.sm_count = 40;
  gpu.l2 = Bytes(10'000'000);
  const MemoryBoundModel model(gpu, profile);
  // 40 multiprocessors move 4 TB/s through the cache, memory 1 TB/s. 4 MB fit: 1 us. 10 MB find
  // half of themselves: 1.25 + 5. 15 MB are too much: 15. Two kernels of 4 MB fit where one of 8
  // finds (1.5 - 0.8) of it.
  CHECK(model.time(Bytes(4'000'000)).value == Approx(1e-6));
  CHECK(model.time(Bytes(10'000'000)).value == Approx(6.25e-6));
  CHECK(model.time(Bytes(15'000'000)).value == Approx(15e-6));
  CHECK(model.time(Bytes(8'000'000), 2).value == Approx(2e-6));
  CHECK(model.time(Bytes(8'000'000), 1).value == Approx(0.7 * 2e-6 + 0.3 * 8e-6));
  // What was made long before comes from memory: 1 of 4 MB.
  CHECK(model.time(Bytes(4'000'000), 1, MemoryAccess::streaming, Bytes(1'000'000)).value ==
        Approx(0.75e-6 + 1e-6));
  CHECK(model.time(Bytes(4'000'000), 1, MemoryAccess::streaming, Bytes(9'000'000)).value ==
        Approx(4e-6));
  // Reductions reach half of either.
  CHECK(model.time(Bytes(4'000'000), 1, MemoryAccess::reduction).value == Approx(2e-6));
  // Of a GPU whose cache is not known all bytes come from memory.
  gpu.l2 = Bytes(0);
  CHECK(MemoryBoundModel(gpu, profile).time(Bytes(4'000'000)).value == Approx(4e-6));
}

TEST_CASE("elements taken one by one take their multiprocessors' cycles, where bytes take less") {
  Profile profile = bare_profile();
  profile.families[0].memory.start = Seconds(2e-6);
  profile.families[0].memory.cycles_per_element = 0.8;
  Gpu gpu = bare_gpu();
  gpu.sm_count = 100;
  gpu.boost_clock_mhz = 1000;
  const MemoryBoundModel model(gpu, profile);
  const auto time = [&](Bytes moved, std::int64_t singly) {
    return model.time(moved, 1, MemoryAccess::streaming, Bytes(0), singly).value;
  };
  // 100 multiprocessors at 1 GHz take 8 ps for an element of 0.8 cycles: a million 8 us, beside
  // which 4 MB at 1 TB/s take 4 and 16 MB 16; a start of 2 comes to either.
  CHECK(time(Bytes(4'000'000), 1'000'000) == Approx(10e-6));
  CHECK(time(Bytes(16'000'000), 1'000'000) == Approx(18e-6));
  CHECK(time(Bytes(4'000'000), 0) == Approx(6e-6));
  // Where the clock is not known, bytes alone count.
  gpu.boost_clock_mhz = 0;
  CHECK(MemoryBoundModel(gpu, profile)
            .time(Bytes(4'000'000), 1, MemoryAccess::streaming, Bytes(0), 1'000'000)
            .value == Approx(6e-6));
}

TEST_CASE("what computes for longer than it moves takes the cycles of its lanes") {
  Profile profile = bare_profile();
  profile.families[0].memory.start = Seconds(2e-6);
  // 2,000 programs of 25,000 cycles and 50 million steps of 4.
  profile.lane_loops.loops[static_cast<std::size_t>(LaneLoop::row_sort)] = {4, 25'000};
  Gpu gpu = bare_gpu();
  const auto time = [&](Bytes moved) {
    return MemoryBoundModel(gpu, profile)
        .time(moved, 1, MemoryAccess::streaming, Bytes(0), 0,
              {LaneLoop::row_sort, 50'000'000, 2'000})
        .value;
  };
  // 50 TFLOP/s of fp32 are 25e12 cycles of a lane a second: 250 million take 10 us, beside which
  // 4 MB at 1 TB/s take 4 and 16 MB 16; a start of 2 comes to either.
  CHECK(time(Bytes(4'000'000)) == Approx(12e-6));
  CHECK(time(Bytes(16'000'000)) == Approx(18e-6));
}

TEST_CASE("more bytes never take less time") {
  for (const char* id : {"a100-sxm4-80gb", "h100-sxm5-80gb", "rtx-4090", "rtx-5090", "l40s", "a40",
                         "mi210", "b200", "v100-sxm2-32gb"}) {
    const MemoryBoundModel model(catalogued_gpu(id), published_profile());
    for (const MemoryAccess access :
         {MemoryAccess::streaming, MemoryAccess::reduction, MemoryAccess::gather})
      for (const int kernels : {1, 8}) {
        Seconds before(0);
        for (std::int64_t bytes = 1 << 20; bytes < std::int64_t{1} << 31; bytes += bytes / 16) {
          INFO(id << " " << bytes << " " << kernels);
          const Seconds now = model.time(Bytes(bytes), kernels, access);
          CHECK(now >= before);
          CHECK(model.time(Bytes(bytes), kernels, access, Bytes(bytes / 3)) >= now);
          before = now;
        }
      }
  }
}

TEST_CASE("every catalogued family walks rows no faster than it streams") {
  for (const FamilyCalibration& f : published_profile().families) {
    INFO(f.family);
    CHECK(f.memory.fraction[1] <= f.memory.fraction[0]);
    CHECK(f.memory.fraction[2] <= f.memory.fraction[0]);
  }
}
