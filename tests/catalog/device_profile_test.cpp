// A profile laid over the published calibration: only its device changes, and only what it sets.
#include "catalog/device_profile.hpp"

#include <filesystem>
#include <fstream>

#include "catalog/find.hpp"
#include "simulator/costs/gemm_model.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;
namespace fs = std::filesystem;

namespace {

Profile published() {
  auto profile = load_profile(source_dir() + "/catalog/profiles/published.json");
  REQUIRE(profile);
  return *std::move(profile);
}

Gpu gpu(const std::string& id) {
  const auto found = find_gpu(loaded_catalog(), id);
  REQUIRE(found);
  return **found;
}

DeviceProfile sample(const std::string& device) {
  DeviceProfile p;
  p.name = "sample";
  p.gpu = device;
  p.provenance = {"a test", "2026-11-21", {}};
  p.samples = 5;
  p.constants["memory.streaming_fraction"] = {0.5, 0.4, 0.6, 5};
  p.constants["memory.start_us"] = {7, 7, 7, 5};
  return p;
}

fs::path written(const std::string& text) {
  const fs::path file = fs::temp_directory_path() / "shardwise_device_profile_test.json";
  std::ofstream(file) << text;
  return file;
}

const std::string whole = R"({"name": "x", "device": "rtx-4090", "peer_over_pcie": "yes",
  "trust": "published", "source": "a page", "date": "2026-01-02", "facts": {"driver": "550"},
  "samples": 25, "discarded": 2,
  "constants": {"links.p2p": {"value": 0.9, "low": 0.8, "high": 1.0, "points": 25}},
  "tiles": [{"m": 128, "n": 64, "sms": 1, "rate": 1}],
  "fits": [{"name": "all_reduce, 8 GPUs", "points": 25, "low": 0.9, "high": 1.1, "regimes": [
     {"from_bytes": 8, "to_bytes": 1024, "alpha_us": 12.5},
     {"from_bytes": 2048, "to_bytes": 1048576, "alpha_us": 20, "gb_per_s": 12}]}]})";

}  // namespace

TEST_CASE("a measured GPU is a family of its own, with what the profile sets and no more") {
  Profile p = published();
  Gpu card = gpu("rtx-4090");
  const FamilyCalibration before = p.row(card.family);
  lay_over(p, card, sample("rtx-4090"));
  CHECK(card.family == "rtx-4090");
  const FamilyCalibration& own = p.row(card.family);
  CHECK(own.memory.fraction[0] == 0.5);
  CHECK(own.memory.fraction[1] == before.memory.fraction[1]);
  CHECK(own.memory.start.value == Approx(7e-6));
  CHECK(own.memory.evidence.trust == Trust::measured);
  // From 0.4 to 0.6 around 0.5.
  CHECK(own.memory.evidence.spread == Approx(0.2));
  CHECK(own.gemm.evidence.trust == before.gemm.evidence.trust);
  CHECK(p.row(before.family).memory.fraction[0] == before.memory.fraction[0]);
}

TEST_CASE("measured constants of products hold as they are: nothing scales them") {
  Profile p = published();
  Gpu card = gpu("a10");  // has a measured matrix rate of its own
  REQUIRE(p.matmul(card.id));
  DeviceProfile device = sample(card.id);
  device.constants["gemm.sustained_fraction.bf16"] = {0.4, 0.39, 0.41, 20};
  lay_over(p, card, device);
  CHECK(p.matmul(card.id) == nullptr);
  CHECK(sustained_scale(card, p) == 1);
  const GemmModel model(card, p);
  CHECK(model.sustained_rate(DType::bf16).value == Approx(0.4 * card.rate(DType::bf16)->value));
}

TEST_CASE("links are laid over the calibration of questions about that GPU") {
  const Gpu card = gpu("h100-sxm5-80gb"), older = gpu("a100-sxm4-80gb");
  LinkCalibration links = published().links;
  const double before = links.generation(older.vendor, older.compute_capability).link_payload;
  DeviceProfile device = sample(card.id);
  lay_links_over(links, card, device);  // sets none
  CHECK(links.host.evidence.trust == Trust::published);
  device.constants["links.nvls_fraction"] = {0.7, 0.6, 0.8, 3};
  device.constants["links.cpu_hop_us"] = {2, 1, 3, 3};
  lay_links_over(links, card, device);
  CHECK(links.generation(card.vendor, card.compute_capability).nvls_fraction == 0.7);
  CHECK(links.host.cpu_hop.value == Approx(2e-6));
  CHECK(links.host.evidence.trust == Trust::measured);
  CHECK(links.generation(older.vendor, older.compute_capability).link_payload == before);
}

TEST_CASE("a profile may serve only one kind of peer access, and the first that serves counts") {
  Calibration c{published(), {}};
  DeviceProfile direct = sample("rtx-4090"), any = sample("rtx-4090");
  direct.peer_over_pcie = PeerAccess::yes;
  direct.constants["memory.start_us"].value = 1;
  c.devices = {direct, any};
  std::vector<Gpu> gpus{gpu("rtx-4090")};
  gpus.front().peer_over_pcie = PeerAccess::no;
  Calibration other = c;
  lay_over_all(c, gpus);
  CHECK(c.profile.row("rtx-4090").memory.start.value == Approx(7e-6));
  gpus = {gpu("rtx-4090")};
  gpus.front().peer_over_pcie = PeerAccess::yes;
  lay_over_all(other, gpus);
  CHECK(other.profile.row("rtx-4090").memory.start.value == Approx(1e-6));
}

TEST_CASE("every constant can be set and read back, within its bounds") {
  Profile p = published();
  FamilyCalibration family = p.families.front();
  LinkCalibration links = p.links;
  const DeviceConstants target{&family, &links, &links.generations.front()};
  for (const DeviceConstant& c : device_constants()) {
    INFO(c.key);
    CHECK(device_constant(c.key) == &c);
    const double middle = (c.low + c.high) / 2;
    set_constant(c, target, middle);
    CHECK(constant_value(c, target) == Approx(middle).epsilon(1e-6));
  }
  CHECK(device_constant("gemm.no_such") == nullptr);
}

TEST_CASE("a profile's file is read whole, and its flaws are named together") {
  const auto good = load_device_profile(written(whole));
  REQUIRE(good);
  CHECK(good->gpu == "rtx-4090");
  CHECK(good->peer_over_pcie == PeerAccess::yes);
  CHECK(good->trust == Trust::published);
  CHECK(good->facts.at("driver") == "550");
  CHECK(good->discarded == 2);
  CHECK(good->constants.at("links.p2p").low == 0.8);
  CHECK(good->sets("links"));
  CHECK_FALSE(good->sets("link"));
  CHECK(good->tiles.at(0).n == 64);
  REQUIRE(good->fits.at(0).regimes.size() == 2);
  CHECK_FALSE(good->fits.at(0).regimes.at(0).beta);
  CHECK(good->fits.at(0).regimes.at(1).beta->value == Approx(12e9));

  std::string bad = whole;
  bad.replace(bad.find("links.p2p"), 9, "links.p2q");
  bad.replace(bad.find("\"samples\": 25"), 13, "\"samples\": 0");
  bad.replace(bad.find("\"published\""), 11, "\"guessed\"");
  const auto flawed = load_device_profile(written(bad));
  REQUIRE_FALSE(flawed);
  CHECK(flawed.error().size() == 3);

  std::string outside = whole;
  outside.replace(outside.find("\"low\": 0.8"), 10, "\"low\": 0.95");
  CHECK_FALSE(load_device_profile(written(outside)));
  fs::remove(written(whole));
}

TEST_CASE("which profile a question gets") {
  const Catalog& catalog = loaded_catalog();
  const auto usual = load_calibration(catalog, std::nullopt);
  REQUIRE(usual);
  CHECK(usual->profile.name == "published");
  const auto bare = load_calibration(catalog, "published");
  REQUIRE(bare);
  CHECK(bare->devices.empty());
  const fs::path file = written(whole);
  const auto asked = load_calibration(catalog, file.string());
  REQUIRE(asked);
  // Asked for by name, it comes before all others; calibrated_facts reads what machine it is of.
  CHECK(asked->devices.front().name == "x");
  CHECK(asked->devices.front().peer_over_pcie == PeerAccess::yes);
  fs::remove(file);
  const auto none = load_calibration(catalog, "publishd");
  REQUIRE_FALSE(none);
  CHECK(none.error().front().what.find("did you mean published") != std::string::npos);
}

TEST_CASE("a device's profile is found by name or file; the constants of all GPUs are none") {
  const fs::path& root = loaded_catalog().root;
  const auto named = find_device_profile(root, "a40-published", "PROFILE");
  REQUIRE(named);
  CHECK(named->name == "a40-published");
  for (const char* text : {"published", "no-such-profile", "./no-such.json"}) {
    const auto none = find_device_profile(root, text, "PROFILE");
    REQUIRE_FALSE(none);
    REQUIRE(none.error().size() == 1);
    CHECK(none.error().front().where == "PROFILE");
    CHECK(none.error().front().what.find("a40-published") != std::string::npos);
  }
}

TEST_CASE("every profile in the catalog loads, and is of a GPU that there is") {
  auto calibration = load_calibration(loaded_catalog(), std::nullopt);
  REQUIRE(calibration);
  for (const DeviceProfile& d : calibration->devices) {
    INFO(d.name);
    CHECK(find_gpu(loaded_catalog(), d.gpu));
    CHECK(!d.provenance.source.empty());
    for (const auto& [key, c] : d.constants) CHECK(c.points > 0);
  }
}
