// Rows of frameworks that say what cannot be are refused, and where they say it.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "catalog/framework.hpp"
#include "catalog/load.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const Framework& known_row(const std::string& id) {
  for (const Framework& f : loaded_catalog().frameworks)
    if (f.id == id) return f;
  throw std::runtime_error("no framework " + id);
}

// Where the loader finds fault with a row in which a piece of text is another. REQUIRES that it
// does.
std::string refused_at(const std::string& id, const std::string& from, const std::string& to) {
  const std::string file = "frameworks/" + id + ".json";
  std::ifstream in(source_dir() + "/catalog/" + file);
  std::ostringstream text;
  text << in.rdbuf();
  std::string changed = text.str();
  const std::size_t at = changed.find(from);
  REQUIRE(at != std::string::npos);
  changed.replace(at, from.size(), to);
  const auto root = std::filesystem::temp_directory_path() /
                    ("shardwise-frameworks-" + std::to_string(::getpid()));
  std::filesystem::create_directories(root / "frameworks");
  std::ofstream(root / file) << changed;
  const auto loaded = load_frameworks(root);
  std::filesystem::remove_all(root);
  REQUIRE_FALSE(loaded);
  return loaded.error().front().where;
}

}  // namespace

// Each gradient of a cut head is at least the product that makes the logits, less the blocks that
// are left out; a row of such a loss says how much of it. One without has no such key, and where a
// run says that its loss is cut all the same, the kernel's own filter is on.
TEST_CASE("A cut head's gradients are a share that its row states") {
  CHECK(known_row("unsloth-2025").loss.cut_gradient_share < 1);
  CHECK(known_row("nemo-automodel").loss.cut_gradient_share > 1);
  CHECK(known_row("axolotl").loss.cut_gradient_share ==
        known_row("unsloth-2025").loss.cut_gradient_share);
  const auto refused = [](const std::string& from, const std::string& to) {
    return refused_at("unsloth-2025", from, to);
  };
  const std::string key = "frameworks/unsloth-2025.json:/cut_gradient_share";
  CHECK(refused("\"cut_gradient_share\": 0.6", "\"cut_gradient_share\": -0.6") == key);
  CHECK(refused("\"cut_gradient_share\": 0.6,", "") == key);
  CHECK(refused("\"loss\": \"cut\"", "\"loss\": \"dense_fp32_output\"") == key);
}

TEST_CASE("What is logged of logits is of a loss that has them all") {
  CHECK(known_row("trl-2025-12").loss.logged.bytes == 44);
  for (const char* sliced : {"chunked", "fused_linear"})
    CHECK(refused_at("trl-2025-12", "\"loss\": \"dense_fp32_output\"",
                     "\"loss\": \"" + std::string(sliced) + '"') ==
          "frameworks/trl-2025-12.json:/logged_logits");
}

}  // namespace shardwise
