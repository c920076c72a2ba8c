// mamf-finder's output of versions 1 to 4, and tables that people make themselves.
#include "calibrate/import_gemm_table.hpp"

#include <string>

#include "calibrate/import_log.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

ImportedLog imported_table(const std::string& text) {
  ImportedLog log = import_log("gemm.txt", text, {});
  CHECK(log.format == "GEMM table");
  return log;
}

}  // namespace

TEST_CASE("mamf-finder 2: lines that overwrite each other, and the summary") {
  const ImportedLog log = imported_table(
      "** Dtype: torch.bfloat16\n"
      "_CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9, minor=0)\n"
      "torch=2.7.0+cu126\n"
      "     1 |  600.0(mean)  601.0(median)  602.0(max) @ 1024x2048x4096        | best:  "
      "600.0(mean) "
      "TFLOPS\r     2 |  700.0(mean)  701.0(median)  702.0(max) @ 2048x2048x4096        | best:  "
      "700.0(mean) TFLOPS\n"
      "Tried  2 shapes => the best outcomes were:\n"
      "mean:   700.0 TFLOPS @ 2048x2048x4096 (MxNxK)\n"
      "median: 701.0 TFLOPS @ 2048x2048x4096 (MxNxK)\n"
      "max:    702.0 TFLOPS @ 2048x2048x4096 (MxNxK)\n");
  CHECK(log.unread.empty());
  REQUIRE(log.measurements.size() == 9);
  const Measurement& m = log.measurements.at(4);
  CHECK(m.sizes.at("m") == 2048);
  CHECK(m.sizes.at("n") == 2048);
  CHECK(m.sizes.at("k") == 4096);
  CHECK(m.labels.at("statistic") == "median");
  CHECK(m.labels.at("dtype") == "bf16");
  CHECK(m.labels.at("device") == "NVIDIA H100 80GB HBM3");
  CHECK(m.quantity == "flops_per_s");
  CHECK(m.value == Approx(701e12));
}

TEST_CASE("mamf-finder 1: its last line, with and without a space before the unit") {
  for (const std::string space : {"", " "}) {
    const ImportedLog log = imported_table("The best outcome was 71.8" + space +
                                           "TFLOPS @ 4096x2048x1024 (MxNxK) (tried 100 shapes)\n");
    CHECK(log.unread.empty());
    REQUIRE(log.measurements.size() == 1);
    CHECK(log.measurements.at(0).value == Approx(71.8e12));
    CHECK(log.measurements.at(0).sizes.at("n") == 2048);
    CHECK(log.measurements.at(0).labels.at("statistic") == "max");
  }
}

TEST_CASE("mamf-finder 4: burst and sustained tables") {
  const ImportedLog log = imported_table(
      "python mamf-finder.py --dtype float16\n"
      "MSMF (sustainable) confirm: 10 shapes ...\n"
      "  MxNxK              TFLOPS     W   MHz\n"
      "  3072x2816x8192      722.5   681  1612 drop   0.7% spread  4.2%  locked in  <- MSMF\n"
      "MAMF (achievable) confirm: 10 shapes ...\n"
      "  MxNxK              TFLOPS     W   MHz  top peaks\n"
      "  3072x2816x20480     842.3   172  1980  842.8 842.3 842.3 841.9 841.2  <- MAMF\n"
      "MSMF (max sustainable, saturated):   722 TFLOPS @ 3072x2816x8192 (MxNxK)  681W 1612MHz\n");
  CHECK(log.unread.empty());
  REQUIRE(log.measurements.size() == 3);
  CHECK(log.measurements.at(0).labels.at("statistic") == "sustained");
  CHECK(log.measurements.at(0).labels.at("dtype") == "fp16");
  CHECK(log.measurements.at(0).value == Approx(722.5e12));
  CHECK(log.measurements.at(1).labels.at("statistic") == "burst");
  CHECK(log.measurements.at(1).value == Approx(842.3e12));
  CHECK(log.measurements.at(2).labels.at("statistic") == "sustained");
}

TEST_CASE("a search by trials, and a table with named columns") {
  const ImportedLog trials = imported_table(
      "[I 2024-11-01 02:59:09,018] Trial 7 finished with value: {'TFLOPS': 291.5} and parameters: "
      "{'M': 6912, 'N': 16384, 'K': 2048}. Best is trial 4 with value: 322.5.\n");
  REQUIRE(trials.measurements.size() == 1);
  CHECK(trials.measurements.at(0).sizes.at("n") == 16384);
  CHECK(trials.measurements.at(0).value == Approx(291.5e12));

  // 2 x 1024 x 1024 x 512 FLOP in 10 us are 107.4 TFLOP/s.
  const ImportedLog table = imported_table(
      "m,n,k,dtype,time_us\n"
      "1024,1024,512,torch.float16,10\n"
      "1024,1024,512,float8_e4m3fn,n/a\n");
  REQUIRE(table.measurements.size() == 1);
  CHECK(table.measurements.at(0).labels.at("dtype") == "fp16");
  CHECK(table.measurements.at(0).value == Approx(2.0 * 1024 * 1024 * 512 / 10e-6));
  REQUIRE(table.unread.size() == 1);
  CHECK(table.unread.at(0).line == 3);
  CHECK(table.unread.at(0).why == "a shape without a rate");
}

TEST_CASE("rows of a table that name no shape are told with their line") {
  const ImportedLog table = imported_table(
      "m,n,k,tflops\n"
      "4096,4096,4096,600\n"
      "-1,2,3,4\n"
      "1e30,1,1,1\n"
      "4096.5,4096,4096,600\n"
      "measured on,a,quiet,machine\n");
  CHECK(table.measurements.size() == 1);
  REQUIRE(table.unread.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(table.unread.at(i).line == static_cast<int>(i) + 3);
    CHECK(table.unread.at(i).why == "its m, n and k are not whole numbers from 1");
  }
}

TEST_CASE("a trial of a size that no GPU holds is none") {
  const ImportedLog trials = imported_table(
      "Trial 1: {'TFLOPS': 291.5} and parameters: {'M': 1e30, 'N': 16384, 'K': 2048}\n"
      "Trial 2: {'TFLOPS': 291.5} and parameters: {'M': 16384, 'N': 16384, 'K': 2048}\n");
  CHECK(trials.measurements.size() == 1);
}
