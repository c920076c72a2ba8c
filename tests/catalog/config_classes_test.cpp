// What a config.json leaves to its configuration class: keys that are absent, heads of a width of
// their own, windows in some layers.
#include <string>

#include "catalog/huggingface.hpp"
#include "tests/catalog/config_differences.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"

namespace shardwise {

TEST_CASE("Gemma 4 has other heads on its full layers, experts beside its MLP, or pieces") {
  const std::string sizes = R"({"model_type": "gemma4", "text_config": {"hidden_size": 2816,
      "intermediate_size": 2112, "num_attention_heads": 16, "num_key_value_heads": 8,
      "sliding_window": 1024, "attention_k_eq_v": true, "num_global_key_value_heads": 2,
      "max_position_embeddings": 262144, "num_experts": 128, "top_k_experts": 8,
      "moe_intermediate_size": 704, "final_logit_softcapping": 30.0, )";
  const Transformer m =
      parsed(sizes + R"("hidden_size_per_layer_input": 0, "enable_moe_block": true}})");
  CHECK(differences(m, model_of_id("gemma-4-26b-a4b")) == "");
  CHECK(parameter_count(m).total == parameter_count(model_of_id("gemma-4-26b-a4b")).total);
  CHECK_FALSE(parsed(sizes + R"("hidden_size_per_layer_input": 0}})").moe);
  // its class has embeddings of each layer unless told otherwise, 262,144 rows of 256 values
  CHECK_FALSE(m.layer_embeddings);
  CHECK_FALSE(parsed(sizes + R"("hidden_size_per_layer_input": null}})").layer_embeddings);
  const Transformer own = parsed(sizes + R"("enable_moe_block": true}})");
  REQUIRE(own.layer_embeddings);
  CHECK(own.layer_embeddings->vocab == 262144);
  CHECK(own.layer_embeddings->width == 256);
  CHECK(holds(refused(sizes + R"("num_kv_shared_layers": 30}})"), "num_kv_shared_layers"));
}

TEST_CASE("absent keys mean what the configuration classes make of them") {
  SECTION("Gemma 3 writes only what differs from its class") {
    const Transformer m = parsed(
        R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560,
            "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024},
            "vision_config": {"hidden_size": 1152}})");
    CHECK(differences(m, model_of_id("gemma-3-4b")) == "");
    CHECK(m.model_type == "gemma3_text");
    CHECK(m.vision);
  }
  SECTION("Falcon 7B is multi-query with one norm per layer") {
    const Transformer m = parsed(
        R"({"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
            "num_hidden_layers": 32, "vocab_size": 65024, "num_kv_heads": 71})");
    CHECK(differences(m, model_of_id("falcon-7b")) == "");
  }
  SECTION("OPT 350M projects its embeddings and ends without a norm") {
    const Transformer m = parsed(
        R"({"model_type": "opt", "hidden_size": 1024, "num_attention_heads": 16, "ffn_dim": 4096,
            "num_hidden_layers": 24, "vocab_size": 50272, "max_position_embeddings": 2048,
            "word_embed_proj_dim": 512, "do_layer_norm_before": false})");
    CHECK(differences(m, model_of_id("opt-350m")) == "");
  }
  SECTION("Command R+ normalises each head's queries and keys") {
    const Transformer m = parsed(
        R"({"model_type": "cohere", "hidden_size": 12288, "num_attention_heads": 96,
            "num_key_value_heads": 8, "num_hidden_layers": 64, "vocab_size": 256000,
            "intermediate_size": 33792, "use_qk_norm": true})");
    CHECK(differences(m, model_of_id("command-r-plus")) == "");
  }
  SECTION("Phi-3.5-MoE switches its biases on by key") {
    const Transformer m = parsed(
        R"({"model_type": "phimoe", "hidden_size": 4096, "num_attention_heads": 32,
            "num_hidden_layers": 32, "vocab_size": 32064, "intermediate_size": 6400,
            "attention_bias": true, "lm_head_bias": true})");
    CHECK(differences(m, model_of_id("phi-3.5-moe")) == "");
  }
  SECTION("Stable LM 2 12B has parallel blocks and norms per head") {
    const Transformer m = parsed(
        R"({"model_type": "stablelm", "hidden_size": 5120, "num_attention_heads": 32,
            "num_key_value_heads": 8, "num_hidden_layers": 40, "vocab_size": 100352,
            "intermediate_size": 13824, "use_parallel_residual": true, "qk_layernorm": true})");
    CHECK(differences(m, model_of_id("stablelm-2-12b")) == "");
  }
  SECTION("a key-value count that is null is that of multi-head attention") {
    CHECK(parsed(llama_with("")).kv_heads == 32);
    const std::string mistral = R"("model_type": "mistral", "hidden_size": 4096,
        "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 14336,
        "vocab_size": 32000)";
    CHECK(parsed("{" + mistral + "}").kv_heads == 8);
    CHECK(parsed("{" + mistral + R"(, "num_key_value_heads": null})").kv_heads == 32);
    CHECK(parsed("{" + mistral + "}").sliding_window == 4096);
    CHECK_FALSE(parsed("{" + mistral + R"(, "sliding_window": null})").sliding_window);
  }
  SECTION("a window holds only where it hides something and is switched on") {
    CHECK_FALSE(parsed(llama_with(R"(, "sliding_window": 4096)")).sliding_window);
    const std::string qwen = R"({"model_type": "qwen2", "hidden_size": 4096,
        "num_hidden_layers": 4, "num_attention_heads": 32, "intermediate_size": 14336,
        "vocab_size": 32000, "max_position_embeddings": 8192, "sliding_window": )";
    CHECK_FALSE(parsed(qwen + "4096}").sliding_window);
    CHECK(parsed(qwen + R"(4096, "use_sliding_window": true})").sliding_window == 4096);
    CHECK_FALSE(parsed(qwen + R"(8192, "use_sliding_window": true})").sliding_window);
  }
}

// What transformers 5.23 builds from these sizes counts 30,697,345,280 and 36,151,104,512.
// Llama 2 7B has 6,738,415,616 parameters with 32,000 tokens; 64 more in the embedding and in the
// head are 2 x 64 x 4096 = 524,288.
TEST_CASE("LLaVA 1.5 writes of its Llama what differs from the class, and only within itself") {
  const std::string text = R"({"max_position_embeddings": 4096, "vocab_size": 32064})";
  const Transformer m = parsed(R"({"model_type": "llava", "text_config": )" + text + "}");
  CHECK(m.model_type == "llama");
  CHECK(parameter_count(m).total == 6'738'415'616 + 524'288);
  const auto alone = parse_huggingface_config(R"({"model_type": "llama", )" + text.substr(1), "c");
  REQUIRE_FALSE(alone);
  CHECK(alone.error().front().where == "c:/num_hidden_layers");
}

TEST_CASE("counts of Gemma 4 31B and Seed-OSS are those of their modules") {
  CHECK(parameter_count(model_of_id("gemma-4-31b")).total == 30'697'345'280);
  const Transformer seed = parsed(
      R"({"model_type": "seed_oss", "hidden_size": 5120, "num_hidden_layers": 64,
          "num_attention_heads": 80, "intermediate_size": 27648, "vocab_size": 155136,
          "max_position_embeddings": 524288})");
  CHECK(differences(seed, model_of_id("seed-oss-36b")) == "");
}

TEST_CASE("heads may be wider than hidden / heads") {
  CHECK(parsed(llama_with("")).head_dim == 128);
  CHECK(parsed(llama_with(R"(, "head_dim": 256)")).head_dim == 256);
  // with a head size of its own, the head count need not divide the hidden size
  const std::string text = R"({"model_type": "llama", "hidden_size": 5000, "head_dim": 128,
      "num_hidden_layers": 2, "num_attention_heads": 48, "intermediate_size": 64,
      "vocab_size": 100})";
  // 4 x 5000 x 6144 for attention
  CHECK(parameter_count(parsed(text)).attention_per_layer == 4LL * 5000 * 6144);
}

TEST_CASE("families with windows in some layers say in how many") {
  struct Pattern {
    const char* type;
    int window;
    int every;
  };
  const Pattern patterns[] = {{"mistral", 4096, 1}, {"gemma2", 4096, 2}, {"gemma3_text", 4096, 6},
                              {"cohere2", 4096, 4}, {"gpt_oss", 128, 2}, {"olmo3", 4096, 4},
                              {"exaone4", 4096, 4}, {"gpt_neo", 256, 2}};
  for (const Pattern& p : patterns) {
    INFO(p.type);
    const std::string text = R"({"model_type": ")" + std::string(p.type) + R"(",
        "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 1000,
        "intermediate_size": 8192, "max_position_embeddings": 131072, "num_local_experts": 8,
        "num_experts_per_tok": 2)";
    CHECK(parsed(text + "}").sliding_window == p.window);
    CHECK(parsed(text + "}").sliding_window_every == p.every);
  }
}

TEST_CASE("GLM 4 has two key-value heads and a bias on queries, keys and values") {
  const std::string members = R"("hidden_size": 4096, "num_attention_heads": 32,
      "num_hidden_layers": 40, "vocab_size": 151552, "intermediate_size": 13696})";
  CHECK(differences(parsed(R"({"model_type": "glm", )" + members), model_of_id("glm-4-9b")) == "");
  // the 0414 models have norms after both blocks too
  CHECK(parsed(R"({"model_type": "glm4", )" + members).norms.per_layer == 4);
}

}  // namespace shardwise
