// nccl-tests as it is pasted: each log below is cut down from the shapes that versions 2.0 to 2.18
// print (columns by nccl-tests src/common.cu and src/util.cu); the numbers are made up so that
// size / time = algbw and busbw = algbw x factor.
#include "calibrate/import_nccl_tests.hpp"

#include <string>

#include "calibrate/import_log.hpp"
#include "calibrate/nccl_tests_row.hpp"
#include "catalog/collective.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

ImportedLog imported(const std::string& text, const std::string& file = "a.log") {
  ImportedLog log = import_log(file, text, {});
  CHECK(log.format == "nccl-tests");
  return log;
}

const std::string with_header =
    "# nccl-tests version 2.18.0 nccl-headers=22907 nccl-library=22907\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 4 minBytes 8 maxBytes 16777216 step: 2(factor) warmup iters: 5\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   10 on     node-a device  0 [0000:0f:00] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  1 Group  0 Pid   10 on     node-a device  1 [0000:15:00] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  2 Group  0 Pid   11 on     node-b device  0 [0000:0f:00] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  3 Group  0 Pid   11 on     node-b device  1 [0000:15:00] NVIDIA A100-SXM4-40GB\n"
    "node-a:10:10 [0] NCCL INFO NCCL version 2.29.7+cuda13.1\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
    "time   algbw   busbw  #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
    "(us)  (GB/s)  (GB/s)\n"
    "        8192          2048     float     sum      -1    20.00    0.41    0.61       0    "
    "16.00    0.51    0.77       0\n"
    "    16777216       4194304     float     sum      -1   1677.7   10.00   15.00       0   "
    "1398.1   12.00   18.00     N/A\n"
    "# Avg bus bandwidth    : 8.6\n";

}  // namespace

TEST_CASE("a whole log of today's nccl-tests") {
  const ImportedLog log = imported(with_header);
  CHECK(log.unread.empty());
  CHECK(log.facts.at("nccl") == "2.29.7+cuda13.1");
  CHECK(log.facts.at("tool") == "nccl-tests 2.18.0");
  REQUIRE(log.measurements.size() == 4);  // two sizes, out of place and in place
  const Measurement& m = log.measurements.at(3);
  CHECK(m.bench == "collective");
  CHECK(m.quantity == "time_s");
  CHECK(m.value == Approx(1398.1e-6));
  CHECK(m.sizes.at("bytes") == 16777216);
  CHECK(m.sizes.at("ranks") == 4);
  CHECK(m.sizes.at("nodes") == 2);
  CHECK(m.labels.at("collective") == "all_reduce");
  CHECK(m.labels.at("placement") == "in_place");
  CHECK(m.labels.at("device") == "NVIDIA A100-SXM4-40GB");
  CHECK(m.source == "a.log:13");
}

TEST_CASE("prefixes of mpirun, srun, pods, Markdown and colours change nothing") {
  for (const std::string prefix : {"[1,0]<stdout>: ", "0: ", "[pod/w-0/main] ", "> ", "| ",
                                   "2026-01-02T03:04:05.678Z stdout F ", "\x1b[32m", "node-a: "}) {
    std::string text;
    for (std::size_t at = 0; at < with_header.size();) {
      const std::size_t end = with_header.find('\n', at);
      text += prefix + with_header.substr(at, end - at) + "\r\n";
      at = end + 1;
    }
    INFO(prefix);
    const ImportedLog log = imported(text);
    CHECK(log.unread.empty());
    REQUIRE(log.measurements.size() == 4);
    CHECK(log.measurements.at(0).sizes.at("ranks") == 4);
    CHECK(log.measurements.at(0).value == Approx(20e-6));
  }
}

TEST_CASE("columns of other versions") {
  struct Case {
    const char* what;
    const char* row;
    std::size_t timings;
  };
  // 1 MiB in 100 us is 10.49 GB/s; in 50 us 20.97.
  for (const Case& c : {
           Case{"2.0: no root, errors as numbers",
                "1048576 262144 float sum 100.0 10.49 18.35 2e-07 50.00 20.97 36.70 0e+00", 2},
           Case{"no redop and no root",
                "1048576 262144 float 100.0 10.49 18.35 N/A 50.0 20.97 36.7 N/A", 2},
           Case{"out of place only", "1048576 262144 float sum -1 100.0 10.49 18.35 0", 1},
           Case{"no column of errors",
                "1048576 262144 half sum -1 100.0 10.49 18.35 50.0 20.97 36.7", 2},
           Case{"a root other than -1",
                "1048576 262144 bfloat16 none 3 100.0 10.49 10.49 0 50.0 20.97 20.97 0", 2},
           Case{"times in powers of ten",
                "1073741824 268435456 float sum -1 1.0e+05 10.74 18.79 0 1.0e+05 10.74 18.79 0", 2},
       }) {
    INFO(c.what);
    const NcclTestsLine line = read_nccl_tests_line(c.row);
    CHECK(line.kind == RowKind::row);
    CHECK(line.row.timings.size() == c.timings);
    CHECK(line.row.cut_off.empty());
  }
}

TEST_CASE("what cannot be believed is listed with its line") {
  const std::string text =
      "all_reduce_perf -b 8 -e 64M -f 2 -g 8\n"                               // 1
      "1048576 262144 float sum -1 100.0 10.49 18.35 0 50.0 20.97 36.70 0\n"  // 2
      "2097152 524288 float sum -1 100.0 10.49 18.35 0 50.0 20.97 36.70 0\n"  // 3
      "4194304 1048576 float sum -1 400.0 10.4\n"                             // 4
      "0 0 float sum -1 0.02 0.00 0.00 0\n"                                   // 5
      "8388608 2097152 float sum -1 800.0 10.49 18.35 0 400.0 20\n";          // 6
  const ImportedLog log = imported(text);
  // Line 3 claims 2 MiB in 100 us at half their rate; line 6 lost its in-place bandwidth.
  REQUIRE(log.unread.size() == 4);
  CHECK(log.unread.at(0).line == 3);
  CHECK(log.unread.at(0).why == "its time and its bandwidth do not agree");
  CHECK(log.unread.at(1).line == 4);
  CHECK(log.unread.at(1).why == "the row is cut off before its bandwidth");
  CHECK(log.unread.at(2).line == 5);
  CHECK(log.unread.at(3).line == 6);
  CHECK(log.unread.at(3).why == "the in-place columns are cut off");
  CHECK(log.measurements.size() == 3);
}

// A column of errors with a point or a power of ten is that of old versions, and no count.
TEST_CASE("links that deliver other values than were sent have no rate") {
  const ImportedLog log = imported(
      "all_reduce_perf -b 8 -e 64M -f 2 -g 8\n"
      "1048576 262144 float sum -1 100.0 10.49 18.35 0 50.0 20.97 36.70 0\n"
      "1048576 262144 float sum -1 100.0 10.49 18.35 7 50.0 20.97 36.70 0\n"
      "1048576 262144 float sum -1 100.0 10.49 18.35 0 50.0 20.97 36.70 1\n"
      "1048576 262144 float sum 100.0 10.49 18.35 2e-07 50.00 20.97 36.70 0e+00\n");
  CHECK(log.measurements.size() == 4);
  REQUIRE(log.unread.size() == 2);
  CHECK(log.unread.at(0).line == 3);
  CHECK(log.unread.at(1).line == 4);
  CHECK(log.unread.at(1).why == arrived_wrong);
}

// Bars separate words, so that a version of nothing else holds none.
TEST_CASE("a header that is cut off before the version leaves it unsaid") {
  for (const char* cut : {"# nccl-tests version |", "# nccl-tests version", "NCCL version |"}) {
    INFO(cut);
    const ImportedLog log = imported(std::string(cut) + '\n' +
                                     with_header.substr(with_header.find("# Collective test")));
    CHECK_FALSE(log.facts.contains("tool"));
    CHECK(log.measurements.size() == 4);  // two rows, out of place and in place
  }
}

TEST_CASE("without a list of devices the bus factor tells the ranks") {
  // 2(n-1)/n = 1.75: 8 ranks. Rows of 20 GB/s and more print it well enough.
  const ImportedLog log = imported(
      "./build/all_reduce_perf -b 1G\n"
      "1073741824 268435456 float sum -1 53687 20.00 35.00 0 53687 20.00 35.00 0\n");
  REQUIRE(log.measurements.size() == 2);
  CHECK(log.measurements.at(0).sizes.at("ranks") == 8);
  CHECK(log.measurements.at(0).sizes.count("nodes") == 0);

  // (n-1)/n = 0.9375: 16 ranks of a collective that sums: reduce-scatter.
  const ImportedLog scattered =
      imported("1073741824 16777216 float sum -1 10737 100.00 93.75 0 10737 100.00 93.75 0\n");
  REQUIRE(scattered.measurements.size() == 2);
  CHECK(scattered.measurements.at(0).labels.at("collective") == "reduce_scatter");
  CHECK(scattered.measurements.at(0).sizes.at("ranks") == 16);

  // 0.875 that sums nothing may be all-gather or all-to-all: not guessed.
  const ImportedLog unnamed =
      imported("1073741824 16777216 float none -1 10737 100.00 87.50 0 10737 100.00 87.50 0\n");
  CHECK(unnamed.measurements.empty());
  REQUIRE(unnamed.unread.size() == 1);
  CHECK(unnamed.unread.at(0).why == "no line says which collective ran");
}

TEST_CASE("several runs in one log are told apart") {
  const std::string gather =
      "# Collective test starting: all_gather_perf_mpi\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n"
      "#  Rank  0 Group  0 Pid 1 on h device 0 [0x07] NVIDIA H100\n"
      "#  Rank  1 Group  0 Pid 1 on h device 1 [0x08] NVIDIA H100\n"
      "1048576 131072 float none -1 100.0 10.49 5.24 0 100.0 10.49 5.24 0\n";
  const ImportedLog log = imported(with_header + gather);
  REQUIRE(log.measurements.size() == 6);
  CHECK(log.measurements.at(0).labels.at("collective") == "all_reduce");
  CHECK(log.measurements.at(0).sizes.at("ranks") == 4);
  CHECK(log.measurements.at(4).labels.at("collective") == "all_gather");
  CHECK(log.measurements.at(4).sizes.at("ranks") == 2);
  CHECK(log.measurements.at(4).labels.at("device") == "NVIDIA H100");
}

// Two processes, each of which counts its two GPUs from 0: nothing passed between the machines.
TEST_CASE("runs that were meant for two machines and ran on each alone are told") {
  std::string text = with_header;
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"Rank  2", "Rank  0"}, {"Rank  3", "Rank  1"}})
    text.replace(text.find(from), from.size(), to);
  const ImportedLog log = imported(text);
  REQUIRE_FALSE(log.measurements.empty());
  CHECK(log.measurements.front().sizes.at("ranks") == 2);
  CHECK(log.measurements.front().sizes.at("nodes") == 1);
  REQUIRE_FALSE(log.unread.empty());
  CHECK(log.unread.front().why.find("MPI=1") != std::string::npos);
}

TEST_CASE("old lists of devices, and lists with ranks left out") {
  const ImportedLog log = imported(
      "# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor)\n"
      "#   Rank  0 Pid  12978 on    Orlando device  0 [0x45] GeForce GTX 1080\n"
      "#   Rank 15 Pid  12978 on    Tampa device  7 [0xc4] GeForce GTX 1080\n"
      "1048576 262144 float sum 100.0 10.49 19.66 0e+00 100.0 10.49 19.66 0e+00\n",
      "allreduce-16.txt");
  REQUIRE(log.measurements.size() == 2);
  CHECK(log.measurements.at(0).sizes.at("ranks") == 16);
  CHECK(log.measurements.at(0).sizes.at("nodes") == 2);
  CHECK(log.measurements.at(0).labels.at("device") == "GeForce GTX 1080");
  CHECK(log.measurements.at(0).labels.at("collective") == "all_reduce");  // by the file's name
}

TEST_CASE("the JSON of nccl-tests") {
  const std::string text = R"({"version": 1, "cmd": "./build/reduce_scatter_perf -J out.json",
    "config": {"nthreads": 1, "devices": [
      {"rank": 0, "hostname": "a", "device_name": "NVIDIA H200"},
      {"rank": 1, "hostname": "b", "device_name": "NVIDIA H200"}]},
    "results": [
      {"size": 0, "type": "float", "redop": "sum", "out_of_place": {"time": 0.1}},
      {"size": 1e30, "type": "float", "redop": "sum", "out_of_place": {"time": 0.1}},
      {"size": 64, "type": "float", "redop": "sum", "out_of_place": {"time": 9, "nwrong": 3}},
      {"size": 1048576, "type": "float", "redop": "sum",
       "out_of_place": {"time": 42.5, "alg_bw": 24.7, "bus_bw": 12.3, "nwrong": 0},
       "in_place": {"time": 40.0, "alg_bw": 26.2, "bus_bw": 13.1, "nwrong": null}}]})";
  const ImportedLog log = import_log("out.json", text, {});
  CHECK(log.format == "nccl-tests JSON");
  REQUIRE(log.measurements.size() == 2);
  CHECK(log.measurements.at(0).value == Approx(42.5e-6));
  CHECK(log.measurements.at(0).labels.at("collective") == "reduce_scatter");
  CHECK(log.measurements.at(0).labels.at("device") == "NVIDIA H200");
  CHECK(log.measurements.at(0).sizes.at("ranks") == 2);
  CHECK(log.measurements.at(0).sizes.at("nodes") == 2);
  REQUIRE(log.unread.size() == 3);
  CHECK(log.unread.at(2).why == arrived_wrong);
}

// nccl-tests, the GetBw of src/<name>.cu: with n ranks 2(n-1)/n, (n-1)/n or 1.
TEST_CASE("bus factors are those that nccl-tests prints") {
  CHECK(bus_factor("all_reduce", 4) == 1.5);
  for (const char* name : {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
    CHECK(bus_factor(name, 4) == 0.75);
  for (const char* name : {"reduce", "broadcast", "send_recv"}) CHECK(bus_factor(name, 4) == 1.0);
  for (const std::string_view name : collective_names) CHECK(bus_factor(name, 1) == 0.0);
}
