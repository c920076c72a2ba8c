#include "catalog/cluster_parser.hpp"

#include <string>

#include "catalog/require.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"

using namespace shardwise;

namespace {

Cluster one(const std::string& text, const ClusterOptions& options = {}) {
  const auto parsed = parse_gpus(loaded_catalog(), text, options);
  INFO(text << (parsed ? "" : parsed.error()[0].what));
  REQUIRE(parsed);
  REQUIRE(parsed->size() == 1);
  return parsed->front();
}

Problem refusal(const std::string& text, const ClusterOptions& options = {}) {
  const auto parsed = parse_gpus(loaded_catalog(), text, options);
  INFO(text);
  REQUIRE_FALSE(parsed);
  REQUIRE(parsed.error().size() == 1);
  CHECK(parsed.error()[0].kind == ProblemKind::request);
  return parsed.error()[0];
}

}  // namespace

TEST_CASE("a bare size stands for every catalogued card of that size, in a stable order") {
  const auto parsed = parse_gpus(loaded_catalog(), "6x24GB");
  REQUIRE(parsed);
  std::vector<std::string> ids;
  for (const Cluster& c : *parsed) {
    REQUIRE(c.groups.size() == 1);
    CHECK(c.gpus() == 6);
    CHECK(c.nodes() == 1);
    CHECK_FALSE(c.network);
    CHECK(gib(c.groups[0].gpu.memory) == 24);
    CHECK(c.spoken == "6x24GB");
    CHECK_FALSE(c.groups[0].node.host_ram);  // nobody said what the box holds
    ids.push_back(c.groups[0].gpu.id);
  }
  // Consumer, workstation, data centre; each by id. The P40 has no tensor cores and is not offered.
  CHECK(ids == std::vector<std::string>{"rtx-3090", "rtx-3090-ti", "rtx-4090", "rtx-4090-d",
                                        "rx-7900-xtx", "titan-rtx", "quadro-rtx-6000",
                                        "rtx-4500-ada", "rtx-a5000", "rtx-a5500",
                                        "rtx-pro-4000-blackwell", "rtx-pro-4000-blackwell-sff",
                                        "a10", "a10g", "a30", "l4"});
}

TEST_CASE("a card's name before its memory is no count") {
  // Not 3,080 cards of 20 GB: there is no RTX 3080 of 20 GB, one of 10 is the nearest.
  CHECK(holds(refusal("3080 20gb").what, "did you mean 3080-10gb"));
  const Cluster card = one("1x4090 24gb");
  CHECK(card.gpus() == 1);
  CHECK(card.groups[0].gpu.id == "rtx-4090");
  // A number that is no card's name stays a count.
  CHECK(parse_gpus(loaded_catalog(), "8 24GB")->front().gpus() == 8);
}

TEST_CASE("a box of unlike cards may be called mixed") {
  const Cluster box = one("mixed 2x3090+1x4090");
  CHECK(box.gpus() == 3);
  CHECK(box.mixed_in_one_node);
}

TEST_CASE("other jobs take their part of every port between nodes") {
  ClusterOptions half;
  half.network_share = 0.5;
  const Cluster alone = one("16xH100-SXM"), shared = one("16xH100-SXM", half);
  CHECK(alone.network->share == 1);
  CHECK(shared.network->share == 0.5);
  CHECK(shared.network->port_bandwidth == alone.network->port_bandwidth);  // wide as it was built
  CHECK(shared.network->latency == alone.network->latency);
  CHECK_FALSE(one("8xH100-SXM", half).network);  // a machine alone shares none
}

// Software sees a GPU per die.
TEST_CASE("a board of two GPUs is two of them") {
  CHECK(one("mi250x").gpus() == 2);
  CHECK(one("4xMI250X").gpus() == 8);
  CHECK(one("4xMI250X").groups[0].gpu.id == "mi250x-gcd");
  CHECK(one("4x AMD Instinct MI250X").gpus() == 8);
  CHECK(one("4xmi250x-gcd").gpus() == 4);
}

TEST_CASE("one to eight cards share the smallest usual box") {
  CHECK(one("4090").groups[0].node.id == "desktop-1x");
  CHECK(one("4090").gpus() == 1);
  const Cluster two = one("2xRTX-3090");
  CHECK(two.groups[0].node.id == "desktop-2x");
  CHECK(two.groups[0].node.pcie_lanes_per_gpu == 8);
  CHECK(two.groups[0].gpus_per_node == 2);
  CHECK(one("3x5090").groups[0].node.id == "threadripper-4x");
  CHECK(one("7x4090").groups[0].node.id == "epyc-7x");
  CHECK(one("8x4090").groups[0].node.id == "epyc-8x");
  CHECK(one("4xL40S").groups[0].node.id == "server-4x");
  CHECK(one("8xA100-PCIE-80GB").groups[0].node.id == "server-8x");
}

TEST_CASE("cards are named as people type them") {
  const auto named = [](const char* text) { return one(text).groups[0].gpu.id; };
  CHECK(named("4x4060ti-16gb") == "rtx-4060-ti-16gb");
  CHECK(named("2x1080ti") == "gtx-1080-ti");
  CHECK(named("1xA10G") == "a10g");
  CHECK(named("rtx pro 6000") == "rtx-pro-6000-blackwell");
  CHECK(named("NVIDIA GeForce RTX 3060") == "rtx-3060-12gb");
  // The x of a name is no sign of multiplication.
  CHECK(named("7900xtx") == "rx-7900-xtx");
  CHECK(one("2x7900xtx").gpus() == 2);
}

TEST_CASE("a count may stand before a known name with nothing between, and commas join") {
  CHECK(one("8 H100").gpus() == 8);
  CHECK(one("8 H100").groups[0].gpu.id == one("8xH100").groups[0].gpu.id);
  CHECK(one("2 nodes of 8 H100").gpus() == 16);
  CHECK(one("3 3090").gpus() == 3);
  const Cluster mixed = one("2x3090,2x4090");
  REQUIRE(mixed.groups.size() == 2);
  CHECK(mixed.gpus() == 4);
  CHECK(mixed.groups[1].gpu.id == "rtx-4090");
  CHECK(one("3090 and 2x4090").gpus() == 3);
  CHECK(holds(refusal("6900xt").what, "called \"6900xt\""));
  CHECK(holds(refusal("M2 Ultra").what, "Apple's chips"));
  CHECK(holds(refusal("2xTPU v4").what, "Google's TPUs"));
  CHECK(parse_gpus(loaded_catalog(), "6 24GB")->front().gpus() == 6);
  CHECK(parse_gpus(loaded_catalog(), "24 GB")->front().gpus() == 1);  // a size, as before
  CHECK(holds(refusal("8 H1000").what, "no GPU or node is called \"8 H1000\""));
}

TEST_CASE("a number and a word that begins with an x are a name, not a count of what follows") {
  for (const char* text : {"7900 XTX", "2x7900 XTX", "2 7900 XTX", "2 x 7900 XTX"})
    CHECK(one(text).groups[0].gpu.id == "rx-7900-xtx");
  CHECK(one("2 7900 XTX").gpus() == 2);
  // Not catalogued: the error names the whole card, never "T".
  for (const char* card : {"6900 XT", "6800 xt"})
    for (const char* count : {"", "2x", "2 x "})
      CHECK(holds(refusal(std::string(count) + card).what,
                  "no GPU or node is called \"" + std::string(card) + "\""));
  CHECK(one("2x7900 XT").groups[0].gpu.id == "rx-7900-xt");
  CHECK(one("2 xH100-SXM").gpus() == 2);
  CHECK(one("2 x4090").gpus() == 2);
}

TEST_CASE("hardware that is out of scope is refused with the reason") {
  for (const auto& [name, words] :
       {std::pair{"Jetson AGX Orin", "NVIDIA's Jetson boards are not in the catalog: the CPU"},
        std::pair{"Ryzen AI Max+ 395", "AMD's Ryzen AI chips are not in the catalog: the CPU"},
        std::pair{"MI300A", "AMD's MI300A are not in the catalog: the CPU"},
        std::pair{"Arc B580", "Intel's Arc cards are not in the catalog: PyTorch trains"},
        std::pair{"cpu", "CPUs are not in the catalog"},
        std::pair{"H100 MIG 3g.40gb", "MIG slices are not in the catalog: a card of a slice's"},
        std::pair{"1g.10gb", "MIG slices are not in the catalog"},
        std::pair{"two 3090s with nvlink", "did you mean rtx-3090-nvlink-2x or rtx-3090-nvlink-4x"},
        std::pair{"M3 Ultra", "Apple's chips are not in the catalog: PyTorch trains"},
        std::pair{"TPU v5e", "Google's TPUs are not in the catalog: XLA"},
        std::pair{"Ascend 910B", "Huawei's Ascend chips are not in the catalog: PyTorch"},
        std::pair{"8xTrainium2", "AWS's Trainium chips are not in the catalog: the Neuron"}}) {
    INFO(name);
    CHECK(holds(refusal(name).what, words));
  }
  for (const auto& [name, id] :
       {std::pair{"RTX 5090D", "rtx-5090-d"}, std::pair{"RTX 5090 D V2", "rtx-5090-d-v2"},
        std::pair{"2080 Ti 22GB", "rtx-2080-ti-22gb"}, std::pair{"V100S", "v100s-pcie-32gb"},
        std::pair{"7900 GRE", "rx-7900-gre"}, std::pair{"H20 141GB", "h20-141gb"},
        std::pair{"H20-3e", "h20-141gb"}, std::pair{"GH200 120GB", "gh200-96gb"}}) {
    INFO(name);
    CHECK(one(name).groups[0].gpu.id == id);
  }
}

TEST_CASE("a count may stand behind the name") {
  for (const char* text : {"RTX 4090 x2", "4090x2", "rtx-4090 x 2", "4090:2", "RTX 4090 (2)"}) {
    INFO(text);
    CHECK(one(text).gpus() == 2);
    CHECK(one(text).groups[0].gpu.id == "rtx-4090");
  }
  // Of two numbers the one that is a card's name is the card, however many of it there are.
  for (const char* text : {"8192x4090", "4090x8192"}) {
    CHECK(one(text).gpus() == 8192);
    CHECK(one(text).groups[0].gpu.id == "rtx-4090");
  }
  CHECK(one("RTX 4090").gpus() == 1);
  CHECK(one("H100x8 + A100-80GB x8").gpus() == 16);
  CHECK(one("2 nodes of H100 (8)").gpus() == 16);  // 2 x 8
  CHECK(one("8xH100 (8)").gpus() == 8);            // said twice
  CHECK(holds(refusal("2xH100 (8)").what, "two counts of one GPU, 2 and 8"));
}

TEST_CASE("counts in words and names in the plural are read as people type them") {
  for (const char* text : {"2x 3090s", "2 3090s", "two 3090s", "dual 3090", "RTX3090*2",
                           "dual RTX 3090s", "two RTX-3090"}) {
    INFO(text);
    CHECK(one(text).gpus() == 2);
    CHECK(one(text).groups[0].gpu.id == "rtx-3090");
  }
  CHECK(one("a 4090").gpus() == 1);
  CHECK(one("one 4090 and two 3090s").gpus() == 3);    // 1 + 2
  CHECK(one("two nodes of 8xH100-SXM").gpus() == 16);  // 2 x 8
  CHECK(one("two nodes of 8xH100-SXM").nodes() == 2);
  CHECK(parse_gpus(loaded_catalog(), "dual 24GB")->front().gpus() == 2);
  CHECK(one("2xL40S").groups[0].gpu.id == "l40s");          // its s is no plural
  CHECK(holds(refusal("two 2x3090").what, "cannot read"));  // two counts of one thing
  CHECK(holds(refusal("two").what, "no GPU or node is called \"two\""));
}

TEST_CASE("unequal cards in one box are groups of one node") {
  const Cluster c = one("2x3090+2x4090");
  CHECK(c.mixed_in_one_node);
  CHECK(c.nodes() == 1);
  CHECK(c.gpus() == 4);
  CHECK_FALSE(c.network);
  REQUIRE(c.groups.size() == 2);
  CHECK(c.groups[0].gpu.id == "rtx-3090");
  CHECK(c.groups[1].gpu.id == "rtx-4090");
  CHECK(c.groups[0].node.id == "threadripper-4x");
  CHECK(c.groups[1].node.id == "threadripper-4x");
  // Ranks are numbered group by group.
  CHECK(c.group_of(1).gpu.id == "rtx-3090");
  CHECK(c.group_of(2).gpu.id == "rtx-4090");
  CHECK_THROWS_AS(c.group_of(4), BrokenInvariant);
  CHECK_THROWS_AS(c.group_of(-1), BrokenInvariant);
}

TEST_CASE("what does not fit one box, or is sold in nodes, is joined by the slower network") {
  const Cluster c = one("8xA100-80GB+8xH100");
  CHECK_FALSE(c.mixed_in_one_node);
  CHECK(c.nodes() == 2);
  REQUIRE(c.network);
  CHECK(c.network->id == "infiniband-hdr");  // 8 x 200 Gbit/s of the A100 node, 8 x 400 of the H100
  CHECK(one("6x3090+6x4090").nodes() == 2);
}

TEST_CASE("cards that are sold in nodes fill nodes") {
  const Cluster c = one("16xH100-SXM");
  REQUIRE(c.groups.size() == 1);
  CHECK(c.groups[0].node.id == "dgx-h100");
  CHECK(c.groups[0].nodes == 2);
  CHECK(c.groups[0].gpus_per_node == 8);
  REQUIRE(c.network);
  CHECK(c.network->id == "infiniband-ndr");
  // 12 over two boxes divide; 9 do not: 8 and 1.
  CHECK(one("12xH100").groups[0].gpus_per_node == 6);
  const Cluster nine = one("9xH100");
  REQUIRE(nine.groups.size() == 2);
  CHECK(nine.groups[0].gpus() == 8);
  CHECK(nine.groups[1].gpus() == 1);
  CHECK(nine.gpus() == 9);
}

TEST_CASE("racks are trays in one NVLink domain") {
  for (const char* text : {"gb200-nvl72", "72xGB200"}) {
    const Cluster c = one(text);
    CHECK(c.gpus() == 72);
    CHECK(c.nodes() == 18);
    CHECK(c.groups[0].gpus_per_node == 4);
    CHECK(c.groups[0].node.nvlink_domain_nodes == 18);
  }
  CHECK(one("2xnvl72").gpus() == 144);
}

TEST_CASE("nodes said in full and by name") {
  for (const char* text : {"4 nodes of 8xA100-80GB", "4x8xA100-80GB", "4 x 8 x a100-80gb",
                           "4 NODES x 8xA100", "4*8*A100-SXM4-80GB"}) {
    const Cluster c = one(text);
    CHECK(c.nodes() == 4);
    CHECK(c.gpus() == 32);
  }
  CHECK(one("dgx-h100").gpus() == 8);
  CHECK(one("2xaws-p4d.24xlarge").gpus() == 16);
  CHECK(one("2xaws-p4d.24xlarge").network->id == "aws-efa-p4d");
  CHECK(one("p5.48xlarge").groups[0].node.id == "aws-p5.48xlarge");
  CHECK(one("3 nodes of dgx-a100").gpus() == 24);
  CHECK(one("2 nodes of H100").gpus() == 16);
  CHECK(one("1x16xA100-40GB").groups[0].node.id == "gcp-a2-megagpu-16g");
  CHECK(one("2x3090-nvlink").groups[0].node.intra_link == IntraLink::nvlink_pairs);
}

TEST_CASE("options override network, host memory and cards per node") {
  ClusterOptions options;
  options.network = "hdr";
  options.host_ram = Bytes(std::int64_t{128} << 30);
  options.gpus_per_node = 4;
  const Cluster c = one("16xH100", options);
  CHECK(c.nodes() == 4);
  CHECK(c.network->id == "infiniband-hdr");
  CHECK(c.groups[0].node.nic_bandwidth.value == Approx(25e9));
  CHECK(gib(*c.groups[0].node.host_ram) == 128);
  options.network = "carrier-pigeon";
  CHECK(refusal("16xH100", options).where == "--network");
  options.network.reset();
  options.gpus_per_node = 5;
  CHECK(refusal("16xH100", options).where == "--gpus-per-node");
  options.gpus_per_node = 0;
  CHECK(refusal("16xH100", options).where == "--gpus-per-node");
  options.gpus_per_node = 9;
  CHECK(refusal("dgx-h100", options).where == "--gpus-per-node");
}

TEST_CASE("a node that holds its modules to less power says so, until somebody else does") {
  const auto limit = [](const char* spoken, const ClusterOptions& options = {}) {
    return one(spoken, options).groups[0].gpu.power_limit_w;
  };
  // Alps holds CPU and GPU of a module to 660 W together (eth-cscs/cscs-docs, slurm.md).
  CHECK(limit("alps-gh200-4x") == 660);
  CHECK_FALSE(limit("gh200-1x"));
  ClusterOptions asked;
  asked.power_limit_w = 500;
  CHECK(limit("alps-gh200-4x", asked) == 500);
}

// An RTX 4090 offers 23.6 GiB (PyTorch's message, catalog/devices/rtx-4090.json).
TEST_CASE("what other programs hold of a card is taken from it, and leaves something") {
  const Gpu whole = one("2x4090").groups[0].gpu;
  ClusterOptions desktop;
  desktop.used_memory = Bytes(std::int64_t{3} << 29);  // 1.5 GiB
  const Gpu card = one("2x4090", desktop).groups[0].gpu;
  CHECK(card.usable_memory() == whole.usable_memory() - Bytes(std::int64_t{3} << 29));
  CHECK(card.memory == whole.memory);  // sold as before
  desktop.used_memory = whole.usable_memory();
  const Problem p = refusal("2x4090", desktop);
  CHECK(p.where == "--used-memory");
  CHECK(holds(p.what, "leave nothing of the 23.6 GiB"));
}

TEST_CASE("a slot may be narrower than the box has it") {
  ClusterOptions riser;
  riser.pcie_lanes = 4;
  for (const NodeGroup& g : one("3090+4090", riser).groups) CHECK(g.node.pcie_lanes_per_gpu == 4);
  for (const char* text : {"4x3090 pcie x4", "4090 egpu", "2x3090 riser"})
    CHECK(holds(refusal(text).what, "--pcie-lanes"));
}

TEST_CASE("cards of two vendors are no cluster") {
  CHECK(holds(refusal("3090+7900xtx").what, "no collective library in common"));
  CHECK(holds(refusal("2xH100-SXM+2xMI300X").what, "no collective library in common"));
  CHECK(one("2x3090+2x4090").gpus() == 4);
}

TEST_CASE("bad words get one clear problem with examples") {
  for (const char* text : {"", "   ", "x", "2x", "0x4090", "-3x4090", "99999999xH100", "+", "4090+",
                           "2x3x4x5090", "1000000x2xH100", "4xnothing", "8xH10O", "6x23GB",
                           "2x24GB+2x3090", "1e3x4090", "2.5x4090", "\xFF\xFE", "2x\x1B[31m"}) {
    const Problem p = refusal(text);
    INFO(p.what);
    CHECK(p.where == "--gpus");
    CHECK(holds(p.what, "expected for example 6x24GB"));
    CHECK(p.what.size() < 600);
    CHECK(p.what.find('\x1B') == std::string::npos);
  }
  CHECK(holds(refusal("8xH10O").what, "did you mean h100?"));
  CHECK(holds(refusal("6x24").what, "did you mean 24GB?"));
  CHECK_FALSE(holds(refusal("6x23").what, "23GB"));  // no card has 23 GB
  CHECK(holds(refusal("0x4090").what, "counts go from 1 to 1000000, found 0"));
  CHECK(holds(refusal("6x23GB").what, "no catalogued card has 23GB; there are cards of 4, 6, 8"));
  CHECK(holds(refusal("4xdesktop-2x").what, "box for any card"));
  CHECK(holds(refusal("3x16xA100-80GB").what, "the largest holds 8"));
  CHECK(holds(refusal("2x8xdgx-h100").what, "one count is enough"));
  CHECK(holds(refusal(std::string(100'000, 'x')).what, "longer than 1000 characters"));
}

TEST_CASE("every card and node of the catalog can be asked for") {
  const Catalog& c = loaded_catalog();
  for (const Gpu& gpu : c.gpus) {
    for (const int count : {1, 2, 8, 64, 72}) {
      const Cluster cluster = one(std::to_string(count) + 'x' + gpu.id);
      CHECK(cluster.gpus() == count);
      CHECK((cluster.nodes() == 1 || cluster.network));
      for (const NodeGroup& g : cluster.groups) CHECK(g.gpus_per_node <= g.node.gpus);
    }
  }
  for (const Node& node : c.nodes) {
    if (node.gpu.empty()) continue;
    CHECK(one(node.id).gpus() == node.gpus);
    CHECK(one("2x" + node.id).gpus() == 2 * node.gpus);
  }
}

TEST_CASE("a million GPUs are the most, and are placed at once") {
  CHECK(one("1000000xH100").gpus() == 1'000'000);
  CHECK(holds(refusal("1000000xH100+1xH100").what, "more than 1000000 GPUs"));
}
