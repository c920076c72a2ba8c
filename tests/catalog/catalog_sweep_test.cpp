// Every entry of the catalog: sources, dates, plausible units, links between entries.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "catalog/catalog_links.hpp"
#include "catalog/catalog_root.hpp"
#include "catalog/find.hpp"
#include "catalog/json_reader.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

double tera(FlopsPerSecond rate) { return rate.value / 1e12; }

// FLOP per clock and SM of each family, the tables of the NVIDIA and AMD architecture papers:
// dense, 2 per multiply-add. GeForce halves fp16 and bf16 where it accumulates in fp32, and 8 bits
// before Blackwell.
struct PerSm {
  const char* family;
  double fp16, bf16, fp8;  // 0: the family has no such unit
};
constexpr PerSm per_sm[] = {
    {"volta", 1024, 0, 0},
    {"turing-geforce", 512, 0, 0},
    {"turing-pro", 1024, 0, 0},
    {"ga100", 2048, 2048, 0},
    {"ga10x-geforce", 512, 512, 0},
    {"ga10x-pro", 1024, 1024, 0},
    {"ada-geforce", 512, 512, 1024},
    {"ada-pro", 1024, 1024, 2048},
    {"hopper", 4096, 4096, 8192},
    {"hopper-capped", 4096, 4096, 8192},  // where a clock is stated; the H20 states none
    {"blackwell-dc", 8192, 8192, 16384},
    {"blackwell-gb200", 8192, 8192, 16384},
    {"blackwell-ultra", 8192, 8192, 16384},
    {"blackwell-geforce", 512, 512, 2048},
    {"blackwell-pro", 1024, 1024, 2048},
    {"blackwell-unified", 1024, 1024, 2048},
    {"cdna1", 1024, 512, 0},
    {"cdna2", 1024, 1024, 0},
    {"cdna3", 2048, 2048, 4096},
    {"cdna4", 4096, 4096, 8192},
    {"rdna3", 512, 512, 0},
    {"rdna4", 1024, 1024, 0},
};

// Whether a stated rate is SMs x clock x FLOP per clock; true where one of them is unknown.
bool rate_agrees(const Gpu& gpu, DType dtype, double flop_per_clock) {
  const auto stated = gpu.rate(dtype);
  const double clock_mhz = gpu.tensor_clock_mhz.value_or(gpu.boost_clock_mhz);
  if (!stated || clock_mhz == 0 || gpu.sm_count == 0) return true;
  const double derived = gpu.sm_count * clock_mhz * 1e6 * flop_per_clock / 1e12;
  UNSCOPED_INFO(name(dtype) << " stated " << tera(*stated) << ", derived " << derived);
  return std::fabs(tera(*stated) / derived - 1) < 0.05;
}

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

void check_provenance(const std::string& id, const Provenance& p) {
  INFO(id);
  CHECK_FALSE(p.source.empty());
  CHECK_FALSE(p.date.empty());
  for (const FieldSource& f : p.fields) CHECK_FALSE(f.source.empty());
}

}  // namespace

TEST_CASE("the catalog is as large as promised") {
  const Catalog& c = loaded_catalog();
  CHECK(c.gpus.size() >= 110);
  CHECK(c.nodes.size() >= 103 + 20);
  CHECK(c.networks.size() >= 20);
  CHECK(c.prices.cloud.size() >= 225);
  CHECK(c.prices.history.size() >= 204);
  CHECK(c.prices.launch.size() >= 20);
  CHECK(check_links(c).empty());
}

TEST_CASE("every entry has a source and a date") {
  const Catalog& c = loaded_catalog();
  for (const Gpu& g : c.gpus) check_provenance(g.id, g.provenance);
  for (const Node& n : c.nodes) check_provenance(n.id, n.provenance);
  for (const Network& n : c.networks) check_provenance(n.id, n.provenance);
  for (const CloudPrice& p : c.prices.cloud) check_provenance(p.instance, p.provenance);
  for (const CloudPrice& p : c.prices.history) check_provenance(p.instance, p.provenance);
  for (const LaunchPrice& p : c.prices.launch) check_provenance(p.gpu, p.provenance);
}

TEST_CASE("a field source names a field of its file") {
  for (const char* folder : {"devices", "nodes", "networks"}) {
    Problems problems;
    for (const auto& path : json_files(loaded_catalog().root / folder, problems)) {
      const auto document = parse_json_file(path, path.filename().string());
      REQUIRE(document);
      JsonReader r(*document, problems);
      const auto keys = r.keys();
      auto sources = r.maybe_object("field_sources");
      if (!sources) continue;
      for (const std::string& field : sources->keys()) {
        INFO(path << ' ' << field);
        CHECK(std::find(keys.begin(), keys.end(), field) != keys.end());
      }
    }
    CHECK(problems.empty());
  }
}

TEST_CASE("dense rates are SMs x clock x FLOP per clock, or say why not") {
  int checked = 0;
  for (const Gpu& gpu : loaded_catalog().gpus) {
    const auto row = std::find_if(std::begin(per_sm), std::end(per_sm),
                                  [&](const PerSm& r) { return gpu.family == r.family; });
    if (row == std::end(per_sm)) {
      INFO(gpu.id);
      CHECK((gpu.family == "pascal" || gpu.family == "gaudi"));
      continue;
    }
    INFO(gpu.id);
    const bool agree = rate_agrees(gpu, DType::fp16, row->fp16) &&
                       rate_agrees(gpu, DType::bf16, row->bf16) &&
                       rate_agrees(gpu, DType::fp8, row->fp8);
    // A card that differs says why, and one that says why does differ.
    CHECK(agree == gpu.rate_conflict.empty());
    ++checked;
  }
  CHECK(checked >= 100);
}

TEST_CASE("GeForce cards multiply fp16 at half rate where they accumulate in fp32") {
  for (const Gpu& gpu : loaded_catalog().gpus) {
    if (!gpu.rate(DType::fp16) || !gpu.fp16_accumulate_rate) continue;
    INFO(gpu.id);
    const double ratio = *gpu.rate(DType::fp16) / *gpu.fp16_accumulate_rate;
    const bool geforce = gpu.family.find("-geforce") != std::string::npos;
    if (gpu.rate_conflict.empty()) CHECK(ratio == Approx(geforce ? 0.5 : 1.0).epsilon(0.05));
    if (gpu.rate(DType::bf16))
      CHECK(tera(*gpu.rate(DType::bf16)) == Approx(tera(*gpu.rate(DType::fp16))).epsilon(0.5));
  }
}

// Ada's GeForce cards alone halve fp8 that accumulates in fp32 (RTX 4090: 330 of 661 TFLOP/s, Ada
// whitepaper 2.02, appendix A). Blackwell's do so for the plain instruction only, not for the
// block-scaled one that cuBLASLt uses: see dense_fp8_tflops in devices/rtx-5090.json.
TEST_CASE("Ada's GeForce cards multiply fp8 at half rate where they accumulate in fp32") {
  int halved = 0;
  for (const Gpu& gpu : loaded_catalog().gpus) {
    if (!gpu.rate(DType::fp8) || !gpu.fp8_fp16_accumulate_rate) continue;
    INFO(gpu.id);
    const bool ada = gpu.family == "ada-geforce";
    const double ratio = *gpu.rate(DType::fp8) / *gpu.fp8_fp16_accumulate_rate;
    CHECK(ratio == Approx(ada ? 0.5 : 1.0).epsilon(0.01));
    halved += ada;
  }
  CHECK(halved > 0);  // the RTX 4090 at least, or nothing was looked at
}

TEST_CASE("GPU figures are in plausible units") {
  for (const Gpu& gpu : loaded_catalog().gpus) {
    INFO(gpu.id);
    CHECK(gib(gpu.memory) >= 4);
    CHECK(gib(gpu.memory) <= 288);
    // What a process may hold is below the nominal size and within a tenth of it (ECC takes 1/16).
    CHECK(gpu.usable_memory() <= gpu.memory);
    CHECK(gpu.usable_memory() / gpu.memory > 0.9);
    if (gpu.memory_reported && gpu.memory_offered)
      CHECK(gib(*gpu.memory_offered) <= gib(*gpu.memory_reported) * 1.005);
    // 168 GB/s (GDDR6, 96 bit) to 8 TB/s (HBM3e).
    CHECK(gpu.memory_bandwidth.value >= 160e9);
    CHECK(gpu.memory_bandwidth.value <= 8.2e12);
    CHECK(gpu.l2.value > 0);
    CHECK((gpu.pcie_generation >= 3 || gpu.host_link));
    // One direction: no GPU has more than 18 NVLink 5 links of 50 GB/s.
    CHECK(gpu.nvlink.value <= 900e9);
    CHECK((gpu.rate(DType::fp32) || gpu.vendor == "intel"));  // Gaudi sheets give bf16 only
    if (starts_with(gpu.id, "rtx-40") || starts_with(gpu.id, "rtx-50"))
      if (gpu.market == Market::consumer) CHECK(gpu.peer_over_pcie == PeerAccess::no);
    const GpuEfficiency& e = gpu.efficiency;
    for (const auto& fraction : {e.gemm_peak_fraction, e.gemm_peak_fraction_fp8, e.memory_fraction})
      if (fraction) CHECK((*fraction > 0.4 && *fraction < 1.0));
    if (e.gemm_peak_fraction || e.memory_fraction) CHECK(e.trust == Trust::published);
  }
}

TEST_CASE("published matrix efficiencies: measured over dense") {
  // stas00/ml-engineering: 271.2 of 312, 794.5 of 989, 1745 of 2250, 1822 of 2500.
  struct Row {
    const char* gpu;
    double fraction;
  };
  for (const Row& row : {Row{"a100-sxm4-80gb", 0.869}, Row{"h100-sxm5-80gb", 0.803},
                         Row{"b200", 0.776}, Row{"gb200", 0.729}}) {
    const auto gpu = find_gpu(loaded_catalog(), row.gpu);
    REQUIRE(gpu);
    REQUIRE((*gpu)->efficiency.gemm_peak_fraction);
    CHECK(*(*gpu)->efficiency.gemm_peak_fraction == Approx(row.fraction).margin(0.001));
  }
}

TEST_CASE("every card that the product promises is there") {
  for (const char* promised : {"GTX 1080 Ti",
                               "1080ti",
                               "2080 Ti",
                               "RTX 2080",
                               "3060 Ti",
                               "3070 Ti",
                               "3080 Ti",
                               "4060",
                               "4060ti-8gb",
                               "4060ti-16gb",
                               "4070 Super",
                               "4070ti",
                               "5060",
                               "5060ti-8gb",
                               "5060ti-16gb",
                               "L20",
                               "RTX PRO 4500",
                               "rtx pro 6000",
                               "RTX PRO 6000 Blackwell Max-Q",
                               "3060 12GB",
                               "3090",
                               "3090 Ti",
                               "4060 Ti 16GB",
                               "4070 Ti Super",
                               "4080",
                               "4090",
                               "4090 48GB",
                               "5070 Ti",
                               "5080",
                               "5090",
                               "RTX A4000",
                               "RTX A5000",
                               "RTX A6000",
                               "RTX 4000 Ada",
                               "RTX 6000 Ada",
                               "RTX PRO 6000 Blackwell",
                               "T4",
                               "L4",
                               "L40",
                               "L40S",
                               "A10",
                               "A10G",
                               "A30",
                               "A40",
                               "P100",
                               "V100 16GB",
                               "V100 32GB",
                               "A100 40GB PCIe",
                               "A100 80GB PCIe",
                               "A100 40GB SXM",
                               "A100 80GB SXM",
                               "A800",
                               "H100 PCIe",
                               "H100 SXM",
                               "H100 NVL",
                               "H100 64GB",
                               "H100 96GB",
                               "H800",
                               "H20",
                               "H200",
                               "B100",
                               "B200",
                               "B300",
                               "GB200",
                               "GB300",
                               "MI210",
                               "MI250X",
                               "MI300X",
                               "MI325X",
                               "MI355X",
                               "Gaudi 2",
                               "Gaudi 3"}) {
    INFO(promised);
    CHECK(find_gpu(loaded_catalog(), promised));
  }
}

TEST_CASE("nodes fit their cards and networks") {
  const Catalog& c = loaded_catalog();
  for (const Node& node : c.nodes) {
    INFO(node.id);
    CHECK(node.gpus >= 1);
    CHECK(node.gpus <= 72);
    if (!node.gpu.empty()) {
      const auto gpu = find_gpu(c, node.gpu);
      REQUIRE(gpu);
      if (node.intra_link == IntraLink::nvswitch || node.intra_link == IntraLink::nvlink_mesh ||
          node.intra_link == IntraLink::nvlink_pairs)
        CHECK((*gpu)->nvlink.value > 0);
    }
    if (node.host_ram) CHECK((gib(*node.host_ram) >= 16 && gib(*node.host_ram) <= 8192));
    if (node.host_memory_bandwidth)
      CHECK((node.host_memory_bandwidth->value >= 50e9 &&
             node.host_memory_bandwidth->value < 2.5e12));
    if (node.network.empty()) continue;
    const auto network = find_network(c, node.network);
    REQUIRE(network);
    // 1 Gbit/s is 0.125 GB/s: a port is no faster than its network.
    CHECK(node.nic_bandwidth <= (*network)->port_bandwidth);
    CHECK(node.nic_bandwidth.value >= 0.125e9);
  }
}

TEST_CASE("known machines: 400 Gbit/s are 50 GB/s, 2048 GiB are 2^41 bytes") {
  const auto dgx = find_node(loaded_catalog(), "DGX H100");
  REQUIRE(dgx);
  CHECK((*dgx)->gpus == 8);
  CHECK((*dgx)->nic_bandwidth.value == Approx(50e9));
  CHECK((*dgx)->host_ram == Bytes(std::int64_t{1} << 41));
  const auto hdr = find_network(loaded_catalog(), "hdr");
  REQUIRE(hdr);
  CHECK((*hdr)->port_bandwidth.value == Approx(25e9));
  const auto efa = find_network(loaded_catalog(), "efa");
  REQUIRE(efa);
  CHECK((*efa)->message.value == Approx(40e-6));
  CHECK((*efa)->scaling.empty());  // large messages are as fast on 16 nodes as on two
}

TEST_CASE("networks are in plausible units") {
  for (const Network& n : loaded_catalog().networks) {
    INFO(n.id);
    CHECK(n.port_bandwidth.value >= 0.125e9);
    CHECK(n.port_bandwidth.value <= 900e9);
    // Omni-Path, which NCCL drives through another transport, is the least: 0.4 of its port.
    CHECK(n.efficiency >= 0.4);
    // What NCCL's issue 450 measured over one socket a connection: 4 to 6 GB/s.
    if (n.stream_bandwidth.value > 0)
      CHECK((n.stream_bandwidth.value >= 4e9 && n.stream_bandwidth.value <= 6e9));
    CHECK((n.latency.value >= 0.5e-6 && n.latency.value <= 100e-6));
    for (std::size_t i = 1; i < n.scaling.size(); ++i)
      CHECK(n.scaling[i].second <= n.scaling[i - 1].second);
  }
}

TEST_CASE("prices are dollars an hour for the whole machine") {
  for (const CloudPrice& p : loaded_catalog().prices.cloud) {
    INFO(p.provider << ' ' << p.instance);
    if (!p.per_hour) continue;
    const double per_gpu = p.per_hour->value / p.gpus;
    CHECK((per_gpu > 0.03 && per_gpu < 20));
    if (p.spot_per_hour) CHECK(p.spot_per_hour->value <= p.per_hour->value);
  }
}

TEST_CASE("links between entries are checked") {
  Catalog c = loaded_catalog();
  c.nodes.front().gpu = "h100-sxm5-80g";
  c.gpus.front().aliases.push_back("RTX_4090");  // one name for two cards
  const Problems problems = check_links(c);
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].what.find("already means") != std::string::npos);
  CHECK(problems[1].where == "nodes/" + c.nodes.front().id + ".json:/gpu");
  CHECK(problems[1].what.find("did you mean h100-sxm5-80gb") != std::string::npos);
}

TEST_CASE("the catalog's folder is found") {
  const auto root = find_catalog_root();
  REQUIRE(root);
  CHECK(std::filesystem::is_directory(*root / "devices"));
}
