// Vision towers: their parameters, as transformers 5.23.0 builds them on the meta device, and the
// vision_config that says them.
#include "catalog/vision_tower.hpp"

#include "catalog/find.hpp"
#include "catalog/huggingface.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

const Transformer& model(const char* name) { return **find_model(loaded_catalog(), name); }

// Flat, as the first releases wrote it, with only what differs from the class.
const char* const qwen25_vl = R"({
  "model_type": "qwen2_5_vl", "num_hidden_layers": 28, "hidden_size": 3584,
  "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
  "vocab_size": 152064, "tie_word_embeddings": false,
  "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "in_chans": 3,
                    "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}})";

}  // namespace

// Class by class: sum(p.numel() for p in tower.parameters()).
TEST_CASE("a tower has as many parameters as its class", "[vision]") {
  CHECK(model("qwen2-vl-7b").vision->parameters() == 675'759'104);
  CHECK(model("qwen2.5-vl-7b").vision->parameters() == 676'550'144);
  CHECK(model("qwen3-vl-2b").vision->parameters() == 406'957'056);
  CHECK(model("qwen3-vl-8b").vision->parameters() == 576'388'336);
  CHECK(model("qwen3-vl-30b-a3b").vision->parameters() == 538'631'408);
}

// Gemma 3: SigLIP with a last norm, then means of 4 x 4 patches and one matrix; 419,816,304 in
// Gemma3ForConditionalGeneration of the 4B's sizes.
TEST_CASE("a tower that pools its patches", "[vision]") {
  CHECK(model("gemma-3-4b").vision->parameters() == 419'816'304);
  const auto read = parse_huggingface_config(R"({
    "model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
    "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4,
    "intermediate_size": 10240}, "vision_config": {"image_size": 896, "patch_size": 14}})",
                                             "config.json");
  REQUIRE(read);
  REQUIRE(read->vision);
  CHECK(read->vision->parameters() == 419'816'304);
  CHECK(read->vision->patches_per_token == 16);  // 64 x 64 patches, 256 tokens
}

TEST_CASE("the tower counts among the model's parameters", "[vision]") {
  const Transformer& with = model("qwen2.5-vl-7b");
  const ParameterCount c = parameter_count(with);
  CHECK(c.vision == with.vision->parameters());
  CHECK(c.total == parameter_count(model("qwen2.5-7b")).total + c.vision);
}

TEST_CASE("a config.json with a vision_config has the catalog's tower", "[vision]") {
  const auto read = parse_huggingface_config(qwen25_vl, "config.json");
  REQUIRE(read);
  REQUIRE(read->vision);
  CHECK(parameter_count(*read).total == 8'292'166'656);
  CHECK(read->vision->window_patches == 64);  // 112 / 14 = 8 patches a side
  CHECK(read->vision->global_layers == 4);
}

TEST_CASE("a tower whose heads do not divide its width is refused", "[vision]") {
  std::string text = qwen25_vl;
  text.replace(text.find("\"in_chans\""), 10, "\"num_heads\": 7, \"in_chans\"");
  const auto read = parse_huggingface_config(text, "config.json");
  REQUIRE_FALSE(read);
  CHECK(read.error().front().what.find("7 heads") != std::string::npos);
}

// 1,024 tokens where nothing is known of an image, but half of a short sequence; as many as every
// image has where the tower says so.
TEST_CASE("a sequence has one image where nobody says", "[vision]") {
  VisionTower v;
  CHECK(usual_images(v, 8192).images == 1);
  CHECK(usual_images(v, 8192).tokens == 1024);
  CHECK(usual_images(v, 512).tokens == 256);
  v.image_tokens = 256;
  CHECK(usual_images(v, 8192).tokens == 256);
  v.text_first = true;
  CHECK(usual_images(v, 8192).images == 0);
}
