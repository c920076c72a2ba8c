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

}  // namespace shardwise
