// Families of 2025 and 2026, by what the classes of transformers build: the counts are those of
// transformers 5.23 (PyPI), each class with its defaults on the meta device, where no catalogued
// model says them.
#include <string>

#include "catalog/find.hpp"
#include "tests/catalog/config_members.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"

namespace shardwise {

TEST_CASE("classes with their defaults count what transformers builds of them") {
  CHECK(counted_in(members_of(24, 2560, 20, 7040, 48000) + R"("model_type": "helium")") ==
        2'172'643'840);
  CHECK(counted_in(members_of(48, 4096, 32, 10240, 128512) + R"("model_type": "internlm3")") ==
        8'804'241'408);
  CHECK(counted_in(members_of(80, 5120, 40, 27648, 76800) + R"("model_type": "iquestcoder")") ==
        39'794'283'520);
  CHECK(counted_in(members_of(32, 4096, 32, 11008, 32000) + R"("model_type": "hyperclovax")") ==
        6'738'677'760);
  CHECK(counted_in(members_of(32, 3328, 26, 26624, 150272) + R"("model_type": "jais2")") ==
        8'090'401'280);
  CHECK(counted_in(members_of(26, 2304, 8, 9216, 256000) + R"("model_type": "vaultgemma")") ==
        2'614'222'080);
  CHECK(counted_in(members_of(32, 2048, 16, 6144, 128256) +
                   R"("model_type": "youtu", "q_lora_rank": 1536, "kv_lora_rank": 512,
                 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128)") ==
        1'961'560'064);
  CHECK(counted_in(members_of(32, 4096, 32, 11008, 32000) + R"("model_type": "granitemoe")") ==
        37'039'116'288);
  CHECK(counted_in(members_of(32, 4096, 32, 16384, 102400) +
                   R"("model_type": "exaone_moe", "moe_intermediate_size": 1024,
                 "num_shared_experts": 1)") == 28'550'639'616);
  CHECK(counted_in(members_of(80, 4096, 64, 13312, 120832) +
                   R"("model_type": "hy_v3", "moe_intermediate_size": 1536,
                 "num_shared_experts": 1)") == 295'033'528'320);
  CHECK(counted_in(members_of(28, 2304, 32, 7168, 98304) +
                   R"("model_type": "mellum", "moe_intermediate_size": 896,
                 "sliding_window": 1024)") == 12'149'923'072);
  CHECK(counted_in(members_of(32, 4096, 32, 11008, 100352) + R"("model_type": "flex_olmo")") ==
        33'270'665'216);
  // of which 31 x 64 values are corrections of routing, which are not counted
  CHECK(counted_in(members_of(32, 2048, 16, 6144, 200192) +
                   R"("model_type": "afmoe", "moe_intermediate_size": 1408,
                 "num_shared_experts": 2)") == 19'232'600'000 - 31 * 64);
}

TEST_CASE("newer configs come to the catalogued models") {
  struct Row {
    const char* id;
    std::string members;
  };
  const Row rows[] = {
      {"granite-3.1-3b-a800m", members_of(32, 1536, 24, 512, 49155) +
                                   R"("model_type": "granitemoe", "num_key_value_heads": 8,
        "num_local_experts": 40, "num_experts_per_tok": 8, "tie_word_embeddings": true)"},
      {"glm-4.7-flash", members_of(47, 2048, 20, 10240, 154880) +
                            R"("model_type": "glm4_moe_lite", "moe_intermediate_size": 1536,
        "n_shared_experts": 1, "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64, "v_head_dim": 256)"},
      {"hunyuan-a13b", members_of(32, 4096, 32, 3072, 128167) +
                           R"("model_type": "hunyuan_v1_moe", "num_key_value_heads": 8,
        "head_dim": 128, "num_experts": 64, "moe_topk": [8, 8], "moe_intermediate_size": [3072],
        "num_shared_expert": [1, 1], "tie_word_embeddings": true)"},
      {"olmo-hybrid-7b",
       members_of(32, 3840, 30, 11008, 100352) + R"("model_type": "olmo_hybrid")"},
      {"trinity-nano", members_of(56, 1024, 8, 3072, 200192) +
                           R"("model_type": "afmoe", "num_key_value_heads": 2,
        "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 256,
        "num_shared_experts": 1, "num_dense_layers": 2, "sliding_window": 2048)"},
      {"solar-open-100b", members_of(48, 4096, 64, 10240, 196608) +
                              R"("model_type": "solar_open", "moe_intermediate_size": 1280,
        "n_shared_experts": 1, "first_k_dense_replace": 0)"},
      {"phi-4-multimodal", members_of(32, 3072, 24, 8192, 200064) +
                               R"("model_type": "phi4mm", "num_key_value_heads": 8)"},
  };
  for (const Row& row : rows) {
    INFO(row.id);
    const Transformer model = model_of_members(row.members);
    const auto known = find_model(loaded_catalog(), row.id);
    REQUIRE(known);
    CHECK(parameter_count(model).total == parameter_count(**known).total);
    CHECK(parameter_count(model).active == parameter_count(**known).active);
    CHECK(model.attention_gate == (*known)->attention_gate);
    CHECK(model.mixers == (*known)->mixers);
  }
}

TEST_CASE("windows follow a period, or the letters of a list that has none") {
  const std::string eight =
      members_of(8, 64, 8, 128, 100) + R"("sliding_window": 16, "max_position_embeddings": 64, )";
  const Transformer first = model_of_members(eight + R"("model_type": "cwm")");
  CHECK(first.windows == "fwwwfwww");
  const Transformer last = model_of_members(eight + R"("model_type": "olmo3")");
  CHECK(last.windows.empty());
  CHECK(last.sliding_window_every == 4);
  // Llama 4 sees chunks, but in every 4th layer (transformers 5.23 configuration_llama4.py:190).
  const Transformer chunks = model_of_members(
      eight + R"("attention_chunk_size": 32, "num_local_experts": 4, "intermediate_size_mlp": 256,
                 "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0], "model_type": "llama4_text")");
  CHECK(chunks.sliding_window == 32);
  CHECK(chunks.sliding_window_every == 4);
  CHECK(chunks.window_restarts);
  CHECK_FALSE(last.window_restarts);
  const std::string mistral = eight + R"("model_type": "ministral", "layer_types": [)";
  const std::string w = R"("sliding_attention")", f = R"("full_attention")";
  const auto list = [](std::initializer_list<std::string> types) {
    std::string out;
    for (const std::string& type : types) out += (out.empty() ? "" : ", ") + type;
    return out + "]";
  };
  CHECK(model_of_members(mistral + list({w, f, w, w, w, f, w, f})).windows == "wfwwwfwf");
  const Transformer every = model_of_members(mistral + list({w, f, w, f, w, f, w, f}));
  CHECK(every.windows.empty());
  CHECK(every.sliding_window_every == 2);
  CHECK_FALSE(model_of_members(mistral + list({f, f, f, f, f, f, f, f})).sliding_window);
  int full = 0;
  for (int i = 0; i < 8; ++i) full += first.sees_window(i) ? 0 : 1;
  CHECK(full == 2);
}

TEST_CASE("dense layers that a list names stand at the front, or are refused") {
  const std::string four = members_of(4, 64, 8, 128, 100) +
                           R"("model_type": "hy_v3", "moe_intermediate_size": 32,
      "num_shared_experts": 1, "mlp_layer_types": )";
  CHECK(model_of_members(four + R"(["dense", "dense", "sparse", "sparse"])").moe->dense_layers ==
        2);
  const auto behind = read_members(four + R"(["dense", "sparse", "dense", "sparse"])");
  REQUIRE_FALSE(behind);
  CHECK(behind.error().front().where == "config.json:/mlp_layer_types");
  const auto unlike = read_members(members_of(2, 64, 4, 128, 100) +
                                   R"("model_type": "hunyuan_v1_moe", "num_experts": [4, 8])");
  REQUIRE_FALSE(unlike);
  CHECK(unlike.error().front().where == "config.json:/num_experts");
}

TEST_CASE("Kimi Linear says its layers by number or by name") {
  const std::string own = members_of(27, 2304, 32, 9216, 163840) +
                          R"("model_type": "kimi_linear", "moe_intermediate_size": 1024,
      "num_shared_experts": 1, "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "v_head_dim": 128)";
  // Silent, as the class: every fourth layer from the fifth on.
  const Transformer silent = model_of_members(own);
  CHECK(silent.mixers == "DDDDADDDADDDADDDADDDADDDADD");
  CHECK(parameter_count(silent).total == 49'133'074'464);
  // As published: the fourth and every fourth, and the last. A seventh layer of attention in the
  // place of Kimi's makes it smaller: a layer of attention holds 2304 x (32 x 192 + 576) values,
  // 512 x 32 x 256 behind the latent and its norm of 512, and 4096 x 2304 to come back, which are
  // 29,114,880; Kimi's, 4 x 4096 x 2304 + 2 x 128 x (2304 + 4096) + 32 x 2304, 3 x 4 x 4096 of
  // convolutions, and 4096 + 32 + 128 of its decays and norm, 39,514,272. 10,399,392 between them.
  const auto known = find_model(loaded_catalog(), "kimi-linear-48b-a3b");
  REQUIRE(known);
  const Transformer published = model_of_members(
      own + R"(, "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
               "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23,
                              25, 26],
               "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4})");
  CHECK(published.mixers == "DDDADDDADDDADDDADDDADDDADDA");
  CHECK(published.mixers == (*known)->mixers);
  CHECK(parameter_count(published).total == 49'133'074'464 - 10'399'392);
  CHECK(parameter_count(**known).total == parameter_count(published).total);
  CHECK(parameter_count(**known).active == parameter_count(published).active);
  const Transformer listed = model_of_members(
      own + R"(, "linear_attn_config": {"full_attn_layers": [4, 8, 27], "head_dim": 64,
               "num_heads": 16, "short_conv_kernel_size": 3})");
  CHECK(listed.mixers == "DDDADDDADDDDDDDDDDDDDDDDDDA");
  REQUIRE(listed.delta);
  CHECK(listed.delta->key_heads == 16);
  CHECK(listed.delta->gate_rank == 64);
  CHECK(listed.delta->convolution == 3);
  const auto outside = read_members(own + R"(, "linear_attn_config": {"full_attn_layers": [28]})");
  REQUIRE_FALSE(outside);
}

// GLM's newer configs say which layers take over the choice of the one before: with a period of 4
// from layer 2 on, layers 0, 1 (max(i - 2 + 1, 0) = 0), 5 and 9 choose for themselves.
TEST_CASE("an indexer is read by list, by pattern of letters or by period") {
  const std::string config = members_of(10, 64, 4, 128, 100) +
                             R"("model_type": "glm_moe_dsa", "moe_intermediate_size": 32,
      "n_shared_experts": 1, "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
      "qk_rope_head_dim": 8, "v_head_dim": 16, "index_n_heads": 2, "index_head_dim": 16,
      "index_topk": 32)";
  const Transformer all = model_of_members(config);
  REQUIRE(all.indexer);
  CHECK(all.indexer->layers.empty());
  CHECK(model_of_members(config + R"(, "index_topk_freq": 4)").indexer->layers == "oosssossso");
  const Transformer some = model_of_members(config + R"(, "index_topk_pattern": "FSSSFSSSFS")");
  CHECK(some.indexer->layers == "osssosssos");
  // 48 x 2 x 16 + 64 x 16 + 2 x 16 + 64 x 2 values in each of the seven that have none
  CHECK(parameter_count(all).total - parameter_count(some).total ==
        7 * (48 * 32 + 64 * 16 + 32 + 128));
  CHECK(holds(read_members(config + R"(, "index_topk_pattern": "SFFFFFFFFF")").error().front().what,
              "the first one o"));
}

// Ling: norms of heads unless the file says otherwise; the first layers are dense, and shared
// experts are as wide as routed ones. A file of the generation before knows no such norms.
TEST_CASE("Ling's experts and norms are read") {
  const std::string sizes = members_of(4, 64, 4, 128, 100);
  const std::string experts = R"(, "head_dim": 16, "num_key_value_heads": 2, "num_experts": 8,
      "num_experts_per_tok": 2, "num_shared_experts": 2, "moe_intermediate_size": 32,
      "first_k_dense_replace": 1)";
  const Transformer ling = model_of_members(sizes + R"("model_type": "bailing_moe_v2")" + experts);
  REQUIRE(ling.moe);
  CHECK(ling.moe->shared_expert_ffn == 64);
  CHECK(ling.moe->dense_layers == 1);
  CHECK(ling.qk_norm == QkNorm::head_dim);
  CHECK(ling.code.fused_qkv);
  const Transformer older = model_of_members(sizes + R"("model_type": "bailing_moe")" + experts);
  CHECK(older.qk_norm == QkNorm::none);
  // Two norms of 16 values in each of four layers.
  CHECK(parameter_count(ling).total - parameter_count(older).total == 4 * 2 * 16);
  const Transformer named = model_of_members(sizes + R"("model_type": "bailing_moe")" + experts +
                                             R"(, "use_qk_norm": true)");
  CHECK(named.qk_norm == QkNorm::head_dim);
}

}  // namespace shardwise
