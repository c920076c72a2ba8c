#include "planner/figures.hpp"

#include "tests/catch.hpp"

namespace shardwise {
using namespace literals;

TEST_CASE("sizes are read with their unit, decimal and binary told apart") {
  CHECK(size_in("128GiB") == 128_GiB);
  CHECK(size_in("128gib") == 128_GiB);
  CHECK(size_in("24 GB") == 24_GB);
  CHECK(size_in("1.5TiB") == Bytes(3LL << 39));  // 1.5 x 2^40
  CHECK(size_in("512MiB") == 512_MiB);
  CHECK(size_in("64G") == 64_GiB);  // as Slurm and Docker have it
  for (const char* text : {"", "128", "GiB", "128 Q", "12x GiB", "nanGiB", "infGB", "1e300TiB"}) {
    INFO(text);
    CHECK_FALSE(size_in(text).has_value());
  }
}

TEST_CASE("figures keep three digits and say their unit") {
  CHECK(shown_gib(Bytes(0)) == "0.0 GiB");
  CHECK(shown_gib(14_GiB + 205_MiB) == "14.2 GiB");  // 205 / 1024 = 0.2002
  CHECK(shown_gib(1051_GiB) == "1,051 GiB");
  CHECK(shown_gib(Bytes(0) - 9_GiB) == "-9.0 GiB");
  CHECK(shown_time(Seconds(0)) == "0 s");
  CHECK(shown_time(Seconds(4.2e-5)) == "42.0 us");
  CHECK(shown_time(Seconds(0.0123)) == "12.3 ms");
  CHECK(shown_time(Seconds(4.2)) == "4.20 s");
  CHECK(shown_time(Seconds(210)) == "3.50 min");   // 210 / 60
  CHECK(shown_time(Seconds(7560)) == "2.10 h");    // 7560 / 3600
  CHECK(shown_time(Seconds(1e6)) == "11.6 days");  // 1e6 / 86400 = 11.57
  CHECK(shown_parameters(70'553'706'496) == "70.6 B");
  CHECK(shown_parameters(8'030'261'248) == "8.03 B");
  CHECK(shown_parameters(405'853'388'800) == "406 B");
  CHECK(shown_parameters(124'439'808) == "124 M");
  CHECK(shown_parameters(1'000'000'000'000) == "1.00 T");
  CHECK(shown_percent(0.22) == "+22 %");
  CHECK(shown_percent(-0.003) == "-0.3 %");
  CHECK(shown_percent(-0.0001) == "0 %");
}

TEST_CASE("one of a thing is no several") {
  CHECK(counted(1, "GPU") == "1 GPU");
  CHECK(counted(0, "GPU") == "0 GPUs");
  CHECK(counted(1024, "GPU") == "1,024 GPUs");
  CHECK(shown_samples(1, nullptr) == "1 sequence");
  CHECK(shown_samples(2, nullptr) == "2 sequences");
  CHECK(shown_samples(1, preference_named("dpo")) == "1 pair for dpo");
}

// 13 x 1,048,576 bytes are 0.0127 GiB.
TEST_CASE("a small difference is told in MiB, not as 0.0 GiB") {
  CHECK(shown_difference(Bytes(13LL << 20)) == "13 MiB");
  CHECK(shown_difference(Bytes(-(13LL << 20))) == "-13 MiB");
  CHECK(shown_difference(Bytes(1LL << 20)) == "1.0 MiB");
  CHECK(shown_difference(Bytes(1LL << 30)) == "1.0 GiB");
  CHECK(shown_difference(Bytes(0)) == "0.0 GiB");
}

TEST_CASE("thousands are grouped from the right") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(shown_rate(1234.4) == "1,234");
}

}  // namespace shardwise
