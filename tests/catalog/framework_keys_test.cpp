// What a row of catalog/frameworks/ may say though none of ours does: whoever writes a row for a
// framework of their own finds a key for every default that is the framework's, not the card's.
#include <string>

#include "catalog/framework_row.hpp"
#include "catalog/text_file.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

// The row of nanoGPT with `more` keys; its problems go to `problems`.
Framework row_with(const std::string& more, const std::string& sharded, Problems& problems) {
  const std::string path = source_dir() + "/catalog/frameworks/nanogpt.json";
  const auto read = read_text_file(path, path, 1 << 20);
  REQUIRE(read);
  std::string text = *read;
  text.insert(text.find('{') + 1, more);
  const std::string object = "\"sharded\": {";
  text.insert(text.find(object) + object.size(), sharded);
  const auto document = parse_json(text, "own.json");
  REQUIRE(document);
  JsonReader reader(*document, problems);
  Framework f = read_framework(reader);
  reader.finish();
  return f;
}

}  // namespace

TEST_CASE("a row of one's own says what ours leave open") {
  Problems problems;
  const Framework silent = row_with("", "", problems);
  CHECK_FALSE(silent.layers.overwrites_gate_and_up);
  CHECK_FALSE(silent.attention.by_operators);
  CHECK_FALSE(silent.loss.adds_head_slices_apart);
  CHECK_FALSE(silent.loss.scatters_labels);
  CHECK_FALSE(silent.loss.fused_slice_tokens.has_value());
  CHECK(silent.sharding.parameters.units_per_block == 1);
  const Framework told = row_with(
      "\"overwrites_gate_and_up\": true, \"attends_by_operators\": true, "
      "\"adds_head_slices_apart\": true, \"scatters_labels\": true, "
      "\"fused_loss_slice_tokens\": 512, ",
      "\"units_per_block\": 3, ", problems);
  CHECK(problems.empty());
  CHECK(told.layers.overwrites_gate_and_up);
  CHECK(told.attention.by_operators);
  CHECK(told.loss.adds_head_slices_apart);
  CHECK(told.loss.scatters_labels);
  CHECK(told.loss.fused_slice_tokens == 512);
  CHECK(told.sharding.parameters.units_per_block == 3);
}

TEST_CASE("a row of one's own is held to the bounds of its keys") {
  Problems problems;
  row_with("\"fused_loss_slice_tokens\": 0, ", "", problems);
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().where == "own.json:/fused_loss_slice_tokens");
}

}  // namespace shardwise
