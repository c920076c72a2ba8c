#include "catalog/link_calibration.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

std::string shipped_text() {
  std::ifstream in(source_dir() + "/catalog/profiles/nccl-2.30.json");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Loads the shipped file with the first occurrence of `from` replaced.
Result<LinkCalibration> load_changed(const std::string& from, const std::string& to) {
  std::string text = shipped_text();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const auto path = std::filesystem::temp_directory_path() /
                    ("shardwise-links-" + std::to_string(std::random_device{}()) + ".json");
  std::ofstream(path) << text;
  auto result = load_link_calibration(path.string());
  std::filesystem::remove(path);
  return result;
}

}  // namespace

TEST_CASE("the shipped link calibration loads", "[link_calibration]") {
  const auto loaded = load_link_calibration(source_dir() + "/catalog/profiles/nccl-2.30.json");
  REQUIRE(loaded);
  CHECK(at(loaded->nccl.ring_base, Protocol::simple).value == Approx(8.4e-6));
  CHECK(at(loaded->nccl.net.tree, Protocol::ll).value == Approx(5.0e-6));
  CHECK(loaded->nccl.p2p_level == PathKind::pxb);
  for (const auto& table : loaded->nccl.tree_size_factor) CHECK(table.size() == 24);
  // A channel of DDR4-3200 moves 8 B x 3.2 GT/s.
  CHECK(loaded->host.memory_channel.value == Approx(8 * 3.2e9));
  CHECK(loaded->host.memory_channels_per_socket > loaded->host.memory_channels_of_one_socket);
  CHECK(loaded->host.drive.value == Approx(6e9));
}

TEST_CASE("a GPU gets the row of its generation", "[link_calibration]") {
  const auto loaded = load_link_calibration(source_dir() + "/catalog/profiles/nccl-2.30.json");
  REQUIRE(loaded);
  CHECK(loaded->generation("nvidia", 7.5).name == "volta");
  CHECK(loaded->generation("nvidia", 8.0).name == "ampere");
  CHECK(loaded->generation("nvidia", 8.9).name == "ampere-bridge");
  CHECK(loaded->generation("nvidia", 9.0).name == "hopper");
  CHECK(loaded->generation("nvidia", 12.0).name == "blackwell");
  CHECK(loaded->generation("amd", 0).name == "infinity-fabric");
  CHECK(loaded->generation("unheard-of", 1).name == loaded->generations.front().name);
}

TEST_CASE("mistakes in a link calibration are named", "[link_calibration]") {
  const auto check = [](const std::string& from, const std::string& to, const std::string& where) {
    const auto result = load_changed(from, to);
    INFO(from << " -> " << to);
    REQUIRE_FALSE(result);
    CHECK(result.error().front().where.find(where) != std::string::npos);
  };
  check("\"shm\": 0.59", "\"shm\": 1.5", "/host/shm");
  check("\"cpu_hop_us\": 1.3", "\"cpu_hop_us\": -1", "/host/cpu_hop_us");
  check("\"memory_channel_gb_per_s\": 25.6", "\"memory_channel_gb_per_s\": -1",
        "/host/memory_channel_gb_per_s");
  check("\"memory_channels_per_socket\": 8", "\"memory_channels_per_socket\": 0.5",
        "/host/memory_channels_per_socket");
  check("\"drive_gb_per_s\": 6", "\"drive_gb_per_s\": \"fast\"", "/host/drive_gb_per_s");
  check("[6.8, 14.0, 8.4]", "[6.8, 14.0]", "/nccl/tree_base_us");
  check("\"p2p_level\": \"PXB\"", "\"p2p_level\": \"FAR\"", "/nccl/p2p_level");
  check("\"nodes_per_leaf\": 16", "\"nodes_per_leaf\": 0", "/network/nodes_per_leaf");
  check("\"plateau\": 1.4", "\"plateaux\": 1.4", "/nccl/plateau");
  // Ampere's channels fill in 4 to 25 us: 3 at most are fewer than 4 at least.
  check("\"filling_most_us\": 25", "\"filling_most_us\": 3", "/generations/2/filling_most_us");
}

TEST_CASE("a missing link calibration is a problem, not a crash", "[link_calibration]") {
  CHECK_FALSE(load_link_calibration("/nowhere/nccl.json"));
}
