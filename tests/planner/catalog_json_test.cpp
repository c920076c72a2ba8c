#include "planner/report/catalog_json.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/commands/catalog.hpp"
#include "planner/report/catalog_tables.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Json catalog_answer(const CatalogQuestion& question) {
  std::ostringstream out, err;
  REQUIRE(catalog(question, source_dir() + "/catalog", {out, err, true}) == 0);
  return Json::parse(out.str());
}

bool is_key(const std::string& key) {
  return key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

}  // namespace

TEST_CASE("every listing has the rows of its table, under keys a program can name", "[catalog]") {
  const Catalog& c = known_facts().catalog;
  for (const CatalogListing& listing : catalog_listings()) {
    INFO(std::string(listing.name));
    const Table table = listing.table(c);
    const Json rows = entries_json(c, listing.name);
    REQUIRE(rows.size() == table.rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].front() == table.rows[i].front());
      for (const auto& [key, value] : rows[i].items()) {
        INFO(key);
        CHECK(is_key(key));
        // Figures are numbers: what text has is a name, a version or a date.
        if (value.is_string()) CHECK(key.find("_gib") == std::string::npos);
      }
    }
  }
  CHECK(entries_json(c, "teapots").is_null());
}

TEST_CASE("a shown entry has numbers with their units and its sources", "[catalog]") {
  // NVIDIA's Ada whitepaper: 24 GB at 1,008 GB/s, 450 W, 165.2 TFLOP/s of fp16 with fp32
  // accumulation, dense; no NVLink.
  const Json gpu = catalog_answer({"show", "rtx-4090"});
  CHECK(gpu["gpu"] == "rtx-4090");
  CHECK(gpu["memory_gib"] == 24.0);
  CHECK(gpu["memory_bandwidth_gb_per_s"] == 1008.0);
  CHECK(gpu["dense_16_bit_tflops"] == 165.2);
  CHECK(gpu["nvlink_gb_per_s"] == 0.0);
  CHECK(gpu["power_w"] == 450.0);
  CHECK(gpu["source"].is_string());
  CHECK_FALSE(gpu.contains("tensor_clock_mhz"));
  // Its tensor cores run at 1,830 MHz, not at the 1,980 of its boost clock.
  CHECK(catalog_answer({"show", "h100-sxm5-80gb"})["tensor_clock_mhz"] == 1830.0);
  // Llama 3.1 8B: 8,030,261,248 parameters, all of them active.
  const Json model = catalog_answer({"show", "llama-3.1-8b"});
  CHECK(model["parameters"] == 8'030'261'248);
  CHECK(model["active_parameters"] == 8'030'261'248);
}

TEST_CASE("check counts in numbers", "[catalog]") {
  const Json counts = catalog_answer({"check", ""})["counts"];
  CHECK(counts.size() >= 6);  // gpus, nodes, networks, models, frameworks, prices
  for (const Json& row : counts) {
    INFO(row.dump());
    CHECK(row["entries"].is_number_integer());
    if (row["kind"] == "gpus") CHECK(row["entries"] == known_facts().catalog.gpus.size());
  }
}

TEST_CASE("a price says where it holds", "[catalog]") {
  CloudPrice price;
  price.instance = "big";
  Catalog catalog;
  const auto shown = [&] {
    catalog.prices.cloud = {price};
    return price_table(catalog).rows.front().at(6);
  };
  CHECK(shown() == "-");
  price.region = "here";
  CHECK(shown() == "here");
  CHECK(entry_json(price)["region"] == "here");
  CHECK_FALSE(entry_json(price).contains("spot_region"));
  price.spot_region = "there";
  CHECK(shown() == "here, spot there");
  CHECK(entry_json(price)["spot_region"] == "there");
  price.region = "";
  CHECK(shown() == "spot there");
}

}  // namespace shardwise
