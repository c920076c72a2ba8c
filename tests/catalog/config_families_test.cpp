// Families whose published config.json leaves much to the class: what is read comes to the
// catalogued model, whose count is the published one (models_test.cpp).
#include <algorithm>
#include <string>

#include "catalog/find.hpp"
#include "catalog/huggingface.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

const Transformer& catalogued(const char* id) {
  const auto found = find_model(loaded_catalog(), id);
  REQUIRE(found);
  return **found;
}

}  // namespace

// The members that the published files give, where the class defaults say something else.
TEST_CASE("Granite, EXAONE, Hunyuan, ERNIE, MiniCPM3 and GLM-4.5 come to the catalogued models") {
  struct Row {
    const char* id;
    const char* members;
  };
  const Row rows[] = {
      {"granite-3.1-2b", R"("model_type": "granite", "hidden_size": 2048, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192,
        "vocab_size": 49155, "tie_word_embeddings": true)"},
      {"powerlm-3b", R"("model_type": "granite", "hidden_size": 2304, "num_hidden_layers": 40,
        "num_attention_heads": 36, "intermediate_size": 9216, "vocab_size": 49152,
        "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": true)"},
      {"exaone-3.5-2.4b", R"("model_type": "exaone", "hidden_size": 2560, "num_layers": 30,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 7168,
        "vocab_size": 102400)"},
      {"hunyuan-4b", R"("model_type": "hunyuan_v1_dense", "hidden_size": 3072, "head_dim": 128,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 8192, "vocab_size": 120818, "tie_word_embeddings": true)"},
      {"ernie-4.5-0.3b", R"("model_type": "ernie4_5", "hidden_size": 1024,
        "num_hidden_layers": 18, "num_attention_heads": 16, "intermediate_size": 3072,
        "vocab_size": 103424)"},
      {"ernie-4.5-21b-a3b", R"("model_type": "ernie4_5_moe", "hidden_size": 2560,
        "num_hidden_layers": 28, "num_attention_heads": 20, "intermediate_size": 12288,
        "vocab_size": 103424, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2)"},
      {"minicpm3-4b", R"("model_type": "minicpm3", "hidden_size": 2560, "num_hidden_layers": 62,
        "num_attention_heads": 40, "intermediate_size": 6400, "vocab_size": 73448)"},
      {"glm-4.5", R"("model_type": "glm4_moe", "hidden_size": 5120, "num_hidden_layers": 92,
        "num_attention_heads": 96, "head_dim": 128, "intermediate_size": 12288,
        "vocab_size": 151552, "moe_intermediate_size": 1536, "n_routed_experts": 160,
        "n_shared_experts": 1, "first_k_dense_replace": 3, "attention_bias": true,
        "use_qk_norm": true)"},
      {"glm-4.5-air", R"("model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers": 46,
        "num_attention_heads": 96, "head_dim": 128, "intermediate_size": 10944,
        "vocab_size": 151552, "moe_intermediate_size": 1408, "n_shared_experts": 1,
        "attention_bias": true)"},
  };
  for (const Row& row : rows) {
    INFO(row.id);
    const std::string text =
        "{" + std::string(row.members) + R"(, "max_position_embeddings": 32768})";
    const auto model = parse_huggingface_config(text, "config.json");
    REQUIRE(model);
    const Transformer& known = catalogued(row.id);
    CHECK(parameter_count(*model).total == parameter_count(known).total);
    CHECK(parameter_count(*model).active == parameter_count(known).active);
    CHECK(model->kv_heads == known.kv_heads);
    CHECK(model->head_dim == known.head_dim);
    CHECK(model->qk_norm == known.qk_norm);
  }
  const auto uneven = parse_huggingface_config(
      "{" + std::string(rows[5].members) +
          R"(, "max_position_embeddings": 32768, "moe_layer_interval": 2})",
      "config.json");
  REQUIRE_FALSE(uneven);
  CHECK(uneven.error().front().where == "config.json:/moe_layer_interval");
}

// What the layers of a hybrid are, by each of the ways in which configs say it.
TEST_CASE("hybrids name their layers by lists, by numbers or not at all") {
  const auto read = [](const std::string& members) {
    const auto model = parse_huggingface_config(
        R"({"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
            "num_hidden_layers": 4, "intermediate_size": 128, "vocab_size": 100, )" +
            members + "}",
        "config.json");
    if (!model) UNSCOPED_INFO(model.error().front().where << ": " << model.error().front().what);
    REQUIRE(model);
    return *model;
  };
  const std::string mamba = R"("mamba_n_heads": 8, "mamba_d_state": 16)";
  CHECK(read(R"("model_type": "bamba", "attn_layer_indices": [2], )" + mamba).mixers == "SSAS");
  const std::string granite = R"("model_type": "granitemoehybrid", "num_local_experts": 0, )";
  const Transformer listed = read(
      granite + R"("layer_types": ["mamba", "attention", "linear_attention", "full_attention"], )" +
      mamba);
  CHECK(listed.mixers == "SASA");
  CHECK(listed.position == PositionKind::none);
  CHECK(listed.ffn == 1024);            // shared_intermediate_size of the class
  CHECK(listed.mamba->head_dim == 16);  // 2 x 64 in 8 heads
  const Transformer plain = read(granite + R"("position_embedding_type": "rope",
                   "layer_types": ["attention", "attention", "attention", "attention"])");
  CHECK(plain.mixers.empty());
  CHECK_FALSE(plain.mamba);
  CHECK(plain.position == PositionKind::rope);
  const Transformer falcon = read(R"("model_type": "falcon_h1", "mamba_d_ssm": 96, )" + mamba);
  CHECK(falcon.mixers == "BBBB");
  CHECK(falcon.mamba->inner() == 96);
  CHECK_FALSE(falcon.mamba->normed);
  CHECK(read(R"("model_type": "lfm2")").mixers == "AAAA");
  const Transformer lfm = read(R"("model_type": "lfm2", "full_attn_idxs": [1, 3])");
  CHECK(lfm.mixers == "CACA");
  CHECK(lfm.ffn == 256);  // 128 x 2 / 3 = 85, up to a multiple of 256
  CHECK(lfm.tied_embeddings);
  CHECK(read(R"("model_type": "lfm2", "block_auto_adjust_ff_dim": false)").ffn == 128);
}

TEST_CASE("a hybrid's config that does not add up is refused by key") {
  const auto problem = [](const std::string& members) {
    const auto model = parse_huggingface_config(
        R"({"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
            "intermediate_size": 128, "vocab_size": 100, )" +
            members + "}",
        "config.json");
    REQUIRE_FALSE(model);
    return model.error().front().where;
  };
  CHECK(problem(R"("model_type": "bamba", "mamba_n_heads": 5)") == "config.json:/mamba_n_heads");
  CHECK(problem(R"("model_type": "bamba", "mamba_n_heads": 8, "mamba_d_head": 15)") ==
        "config.json:/mamba_d_head");
  CHECK(problem(R"("model_type": "bamba", "mamba_n_heads": 8, "attn_layer_indices": [2])") ==
        "config.json:/attn_layer_indices");
  CHECK(problem(R"("model_type": "granitemoehybrid", "shared_intermediate_size": 64,
                     "layer_types": ["mamba", "rwkv"])") == "config.json:/layer_types");
  CHECK(problem(R"("model_type": "lfm2", "conv_bias": true)") == "config.json:/conv_bias");
}

}  // namespace shardwise
