// The collective model against published nccl-tests sweeps (catalog/runs/c_microbench.json).
//
// A sweep is predicted from the datasheet of its machine, stated below. Sweeps whose network or
// hardware nobody named are left out; so are plain copies, which no collective runs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "catalog/json_reader.hpp"
#include "simulator/network/collective_model.hpp"
#include "tests/simulator/link_machines.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;
using namespace shardwise::link_machines;

namespace {

struct Record {
  std::string sweep, kind, hardware, topology;
  int gpus = 1, per_node = 1;
  double bytes = 0, seconds = 0;
};

std::vector<Record> read_records() {
  auto document =
      parse_json_file(source_dir() + "/catalog/runs/c_microbench.json", "c_microbench.json");
  REQUIRE(document);
  Problems problems;
  std::vector<Record> records;
  for (JsonReader& r : root_objects(*document, problems)) {
    Record record;
    record.kind = r.text("kind");
    if (record.kind == "gemm" || record.kind == "hbm_copy" || !r.has("size_bytes")) continue;
    record.sweep = r.maybe_text("sweep").value_or(record.kind);
    record.hardware = r.text("hardware");
    record.topology = r.text("topology");
    record.gpus = r.maybe_integer("gpus", 1, 100'000).value_or(1);
    record.per_node = r.maybe_integer("gpus_per_node", 1, 100'000).value_or(record.gpus);
    record.bytes = r.number("size_bytes", 1, 1e12);
    const double factor = record.kind == "allreduce" ? 2.0 * (record.gpus - 1) / record.gpus
                          : record.kind == "p2p"     ? 1.0
                                                     : (record.gpus - 1.0) / record.gpus;
    if (auto us = r.maybe_number("time_us", 0, 1e12))
      record.seconds = *us * 1e-6;
    else if (auto alg = r.maybe_number("algbw_GBs", 0, 1e6))
      record.seconds = record.bytes / *alg / 1e9;
    else if (auto bus = r.maybe_number("busbw_GBs", 0, 1e6))
      record.seconds = record.bytes * factor / *bus / 1e9;
    if (record.seconds > 0) records.push_back(record);
  }
  REQUIRE(problems.empty());
  return records;
}

// How a sweep was set up beyond its machine.
enum class MachineSetup { plain, p2p_everywhere, without_nvls };

struct Sweep {
  const char* name;
  Cluster (*machine)(int nodes, int used);
  MachineSetup setup = MachineSetup::plain;
};

const std::vector<Sweep> sweeps{
    {"ar-4090x8-nop2p",
     [](int, int used) { return cluster(rtx_4090(), node(8, IntraLink::pcie_host), 1, used); }},
    {"ar-4090x8-p2p",
     [](int, int used) {
       return cluster(card("nvidia", 8.9, 4, 0), node(8, IntraLink::pcie_host), 1, used);
     },
     MachineSetup::p2p_everywhere},
    {"ar-4090x6-p2p-tinybox",
     [](int, int used) {
       return cluster(card("nvidia", 8.9, 4, 0), node(6, IntraLink::pcie_host, 1), 1, used);
     },
     MachineSetup::p2p_everywhere},
    // 200 Gb/s RoCE through the CPU; the guide's own ib_write_bw from GPU memory reads 181 Gb/s.
    {"ar-l40s-2nodes-x1-tcp",
     [](int nodes, int used) {
       return cluster(l40s(), node(2, IntraLink::pcie_host, 2, 1, 25), nodes, used, roce(25));
     }},
    {"ar-l40s-2nodes-x2-roce",
     [](int nodes, int used) {
       return cluster(l40s(), node(2, IntraLink::pcie_host, 2, 1, 25), nodes, used, roce(25));
     }},
    {"ar-a40x2-nvlink",
     [](int, int used) { return cluster(a40(), node(8, IntraLink::nvlink_pairs), 1, used); }},
    {"ar-a40x4-sys-nop2p",
     [](int, int used) {
       return cluster(card("nvidia", 8.6, 4, 0, PeerAccess::no), node(4, IntraLink::pcie_host), 1,
                      used);
     }},
    {"ar-a40x2-node-nop2p",
     [](int, int used) {
       return cluster(card("nvidia", 8.6, 4, 0, PeerAccess::no), node(2, IntraLink::pcie_host, 1),
                      1, used);
     }},
    {"ar-a100x4-nvswitch", [](int nodes, int used) { return hgx(a100(), nodes, used); }},
    {"ar-a100-40-p4d-efa-1node", [](int nodes, int used) { return hgx(a100(), nodes, used); }},
    {"ar-h100x8-nvswitch", [](int nodes, int used) { return hgx(h100(), nodes, used); }},
    {"ar-h100-4nodes-ib400", [](int nodes, int used) { return hgx(h100(), nodes, used); }},
    // GPUDirect-TCPXO: 123 us for 8 B are two passes of a tree over two nodes, 50 us each way.
    {"ar-h100-2nodes-gcp-a3mega",
     [](int nodes, int used) {
       return cluster(h100(), node(8, IntraLink::nvswitch, 2, 8, 25), nodes, used,
                      network(25, 0.9, 50));
     }},
    {"ar-a100-40-2nodes-oci-roce",
     [](int nodes, int used) {
       return cluster(a100(), node(8, IntraLink::nvswitch, 2, 16, 12.5), nodes, used, roce(12.5));
     }},
    {"ar-a100-40-2nodes-oci-b4.8",
     [](int nodes, int used) {
       return cluster(a100(), node(8, IntraLink::nvswitch, 2, 16, 12.5), nodes, used, roce(12.5));
     }},
    {"ar-mi300x-2nodes-oci",
     [](int nodes, int used) {
       return cluster(mi300x(), node(8, IntraLink::nvswitch, 2, 8, 50), nodes, used, roce(50));
     }},
    {"ar-gb200-nvl72-1rack",
     [](int nodes, int used) {
       Node tray = node(4, IntraLink::nvswitch, 2, 4, 50);
       tray.nvlink_domain_nodes = 18;
       return cluster(b200(), tray, nodes, used, infiniband_ndr());
     }},
    {"ar-gb200-2racks",
     [](int nodes, int used) {
       Node tray = node(4, IntraLink::nvswitch, 2, 4, 50);
       tray.nvlink_domain_nodes = 18;
       return cluster(b200(), tray, nodes, used, infiniband_ndr());
     }},
    {"ar-a100-40-p4d-efa-3node",
     [](int nodes, int used) {
       return cluster(a100(), node(8, IntraLink::nvswitch, 2, 4, 12.5), nodes, used,
                      network(12.5, 0.64, 15));
     }},
    {"ar-a100-40-p4d-efa-4node",
     [](int nodes, int used) {
       return cluster(a100(), node(8, IntraLink::nvswitch, 2, 4, 12.5), nodes, used,
                      network(12.5, 0.64, 15));
     }},
    {"ar-h100pcie-x2-nvlink",
     [](int, int used) {
       return cluster(card("nvidia", 9.0, 5, 300), node(2, IntraLink::nvlink_pairs), 1, used);
     }},
    {"sendrecv-a100x8", [](int nodes, int used) { return hgx(a100(), nodes, used); }},
    {"ar-h200x8-nvls-stas", [](int nodes, int used) { return hgx(h100(), nodes, used); }},
    {"ar-b200x8-stas", [](int nodes, int used) { return hgx(b200(), nodes, used); }},
    {"ar-h200-gpu-count-default", [](int nodes, int used) { return hgx(h100(), nodes, used); }},
    {"ar-h200-gpu-count-nvls-off", [](int nodes, int used) { return hgx(h100(), nodes, used); },
     MachineSetup::without_nvls},
    {"ar-b200-gpu-count-default", [](int nodes, int used) { return hgx(b200(), nodes, used); }},
    {"ar-b200-gpu-count-nvls-off", [](int nodes, int used) { return hgx(b200(), nodes, used); },
     MachineSetup::without_nvls},
    {"allgather", [](int nodes, int used) { return hgx(h100(), nodes, used); }},
    {"reducescatter", [](int nodes, int used) { return hgx(h100(), nodes, used); }},
};

Collective collective_of(const Record& r) {
  return r.kind == "allreduce"       ? Collective::all_reduce
         : r.kind == "allgather"     ? Collective::all_gather
         : r.kind == "reducescatter" ? Collective::reduce_scatter
                                     : Collective::send_recv;
}

LinkCalibration links_with(MachineSetup setup) {
  LinkCalibration links = calibration();
  if (setup == MachineSetup::p2p_everywhere) links.nccl.p2p_level = PathKind::sys;
  if (setup == MachineSetup::without_nvls)
    for (GpuGeneration& g : links.generations) g.nvls_channels = 0;
  return links;
}

double predict(const Sweep& sweep, const Record& r) {
  const LinkCalibration links = links_with(sweep.setup);
  const Cluster machine = sweep.machine(r.gpus / r.per_node, r.per_node);
  const CollectiveModel model(machine, links);
  const Collective kind = collective_of(r);
  const int ranks = kind == Collective::send_recv ? 2 : r.gpus;
  const GroupShape shape = group_shape(ranks, 1, gpus_per_node(machine), r.gpus);
  const CollectiveTime t = model.time(kind, Bytes(static_cast<std::int64_t>(r.bytes)), shape);
  if (std::getenv("SHARDWISE_MICROBENCH_ROWS"))
    std::printf("    %-28s %12.0f B  measured %11.1f us  predicted %11.1f us  %+5.0f %%  %s/%s\n",
                r.sweep.c_str(), r.bytes, r.seconds * 1e6, t.time.value * 1e6,
                100 * (t.time.value / r.seconds - 1), std::string(t.algorithm_name()).c_str(),
                std::string(t.protocol_name()).c_str());
  return t.time.value;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

}  // namespace

TEST_CASE("published sweeps: median error of collective time", "[microbench]") {
  const std::vector<Record> records = read_records();
  std::vector<double> all, medians;
  std::size_t used = 0;
  for (const Sweep& sweep : sweeps) {
    std::vector<double> errors, signs;
    for (const Record& r : records) {
      if (r.sweep != sweep.name) continue;
      const double ratio = predict(sweep, r) / r.seconds;
      errors.push_back(std::abs(ratio - 1.0));
      signs.push_back(ratio - 1.0);
    }
    INFO(sweep.name);
    REQUIRE(!errors.empty());
    used += errors.size();
    all.insert(all.end(), errors.begin(), errors.end());
    medians.push_back(median(errors));
    std::printf("  %-28s %3zu sizes  median error %5.1f %%  bias %+6.1f %%\n", sweep.name,
                errors.size(), 100 * median(errors), 100 * median(signs));
  }
  std::printf("  all: %zu of %zu sizes, median %.1f %%; median of the sweeps' medians %.1f %%\n",
              used, records.size(), 100 * median(all), 100 * median(medians));
  // Issue bar: 20 %. Reached: 9 % and 7 %.
  CHECK(median(all) <= 0.12);
  CHECK(median(medians) <= 0.12);
}

TEST_CASE("published sweeps: the direction of every known fact", "[microbench]") {
  const LinkCalibration links = calibration(), patched = links_with(MachineSetup::p2p_everywhere),
                        ring_only = links_with(MachineSetup::without_nvls);
  const GroupShape eight = group_shape(8, 1, 8, 8);
  const auto seconds = [](const Cluster& c, const LinkCalibration& l, double bytes,
                          const GroupShape& s) {
    return CollectiveModel(c, l)
        .time(Collective::all_reduce, Bytes(static_cast<std::int64_t>(bytes)), s)
        .time.value;
  };
  SECTION("8 x 4090: direct access is 1.43 times faster at 128 MiB, and no slower at any size") {
    const Node box = node(8, IntraLink::pcie_host);
    const Cluster stock = cluster(rtx_4090(), box, 1, 8);
    const Cluster direct = cluster(card("nvidia", 8.9, 4, 0), box, 1, 8);
    for (double bytes = 8; bytes < 1e9; bytes *= 2)
      CHECK(seconds(direct, patched, bytes, eight) <= seconds(stock, links, bytes, eight));
    const double gain =
        seconds(stock, links, 134217728, eight) / seconds(direct, patched, 134217728, eight);
    CHECK(gain == Approx(16253.0 / 11382.0).epsilon(0.1));
  }
  SECTION("8 x H200: the switch's reduction is 1.30 times faster at 8 GiB, not with four") {
    const double size = 8589934592;
    const double gain =
        seconds(hgx(h100()), ring_only, size, eight) / seconds(hgx(h100()), links, size, eight);
    CHECK(gain == Approx(473.1 / 365.6).epsilon(0.1));
    const GroupShape four = group_shape(4, 1, 4, 4);
    const double none = seconds(hgx(h100(), 1, 4), ring_only, size, four) /
                        seconds(hgx(h100(), 1, 4), links, size, four);
    CHECK(none == Approx(1.0).epsilon(0.08));
  }
  SECTION("H100 nodes: 8 x 400 Gb/s InfiniBand against 8 x 200 Gb/s Ethernet") {
    const Cluster ib = hgx(h100(), 2);
    const Cluster ethernet =
        cluster(h100(), node(8, IntraLink::nvswitch, 2, 8, 25), 2, 8, network(25, 0.9, 50));
    const GroupShape s = group_shape(16, 1, 8, 16);
    for (double bytes = 8; bytes < 1e10; bytes *= 4)
      CHECK(seconds(ib, links, bytes, s) < seconds(ethernet, links, bytes, s));
  }
  SECTION("two A40: a bridge is 12 times faster than a slow host, and some times than ours") {
    const Cluster bridged = cluster(a40(), node(2, IntraLink::nvlink_pairs), 1, 2);
    const Cluster hosted =
        cluster(card("nvidia", 8.6, 4, 0, PeerAccess::no), node(2, IntraLink::pcie_host, 1), 1, 2);
    const GroupShape two = group_shape(2, 1, 2, 2);
    CHECK(seconds(hosted, links, 1e9, two) > 3 * seconds(bridged, links, 1e9, two));
  }
}

// Milliseconds of one collective on `nodes` p5 machines (32 NICs of 100 Gb/s each), with `message`
// the time that a message of a ring keeps its sender busy.
double efa_ms(Collective kind, int nodes, double megabytes, double message) {
  const LinkCalibration links = calibration();
  Network efa = network(12.5, 0.9, 15);
  efa.message = Seconds(message);
  const Cluster c = cluster(h100(), node(8, IntraLink::nvswitch, 2, 32, 12.5), nodes, 8, efa);
  const Bytes size(static_cast<std::int64_t>(megabytes * 1e6));
  return 1e3 * CollectiveModel(c, links)
                   .time(kind, size, group_shape(8 * nodes, 1, 8, 8 * nodes))
                   .time.value;
}

TEST_CASE("published: EFA from two nodes to 64, software of 2024", "[microbench]") {
  // nanotron ultrascale playbook, pp_comm_bandwidth.html: bus GB/s of 256 MB on p5 nodes; on 64
  // nodes every collective is half as fast as on 32 for its steps, which nothing here explains.
  const std::vector<double> reduce{361.7, 160.1, 99.6, 84.7, 64.9, 32.9};
  const std::vector<double> gather{184.6, 119.0, 69.0, 55.0, 28.0, 11.0};
  std::vector<double> reduce_errors, gather_errors;
  for (std::size_t i = 0; i < reduce.size(); ++i) {
    const int nodes = 2 << i;
    const double n = 8.0 * nodes;
    const double a = efa_ms(Collective::all_reduce, nodes, 256, 40e-6);
    const double g = efa_ms(Collective::all_gather, nodes, 256, 40e-6);
    const double published_a = 256 * 2 * (n - 1) / n / reduce[i];
    const double published_g = 256 * (n - 1) / n / gather[i];
    std::printf(
        "  EFA %2d nodes: all-reduce %5.2f ms (published %5.2f), all-gather %5.2f (%5.2f)\n", nodes,
        a, published_a, g, published_g);
    reduce_errors.push_back(std::abs(a / published_a - 1));
    gather_errors.push_back(std::abs(g / published_g - 1));
  }
  CHECK(median(reduce_errors) <= 0.2);
  CHECK(median(gather_errors) <= 0.15);
}

TEST_CASE("published: EFA from 64 MiB to 8 GiB, software of 2025", "[microbench]") {
  // crazyguitar/aws-gpu-communication-benchmark @fd167f97ab data/nccl_all_reduce.csv and
  // nccl_all_gather.csv: algorithm GB/s on p5 nodes, NCCL 2.28. 9 us per message explain both.
  struct Row {
    int nodes;
    double mib, reduce, gather;  // 0: not measured
  };
  const std::vector<Row> rows{
      {4, 64, 78.66, 143.42},    {4, 512, 143.70, 227.68},   {4, 2048, 179.39, 341.59},
      {4, 8192, 184.25, 0},      {8, 64, 52.75, 88.17},      {8, 512, 138.48, 265.41},
      {8, 2048, 141.28, 298.37}, {8, 8192, 180.50, 0},       {16, 64, 46.56, 47.36},
      {16, 512, 112.78, 221.71}, {16, 2048, 136.52, 267.24}, {16, 8192, 179.54, 0},
      {32, 64, 41.97, 25.06},    {32, 512, 78.73, 146.96},   {32, 2048, 135.26, 263.80},
      {32, 8192, 161.18, 0}};
  std::vector<double> reduce_errors, gather_errors;
  for (const Row& r : rows) {
    const double megabytes = r.mib * 1.048576;
    const double a = efa_ms(Collective::all_reduce, r.nodes, megabytes, 9e-6);
    reduce_errors.push_back(std::abs(a / (megabytes / r.reduce) - 1));
    CHECK(reduce_errors.back() <= 0.25);
    if (r.gather == 0) continue;
    const double g = efa_ms(Collective::all_gather, r.nodes, megabytes, 9e-6);
    gather_errors.push_back(std::abs(g / (megabytes / r.gather) - 1));
    CHECK(gather_errors.back() <= 0.3);
  }
  CHECK(median(reduce_errors) <= 0.1);
  CHECK(median(gather_errors) <= 0.1);
}
