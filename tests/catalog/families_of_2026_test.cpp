// Families that transformers 5.24 has and the catalog had not: what the classes of that release
// (PyPI) count with their defaults on the meta device.
#include <string>

#include "catalog/find.hpp"
#include "tests/catalog/config_members.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"

namespace shardwise {
namespace {

std::string first_problem(const std::string& text) {
  const auto model = read_members(text);
  return model ? "read" : model.error().front().where + ": " + model.error().front().what;
}

}  // namespace

TEST_CASE("families of 2026 count what transformers builds of their defaults") {
  CHECK(counted_in(members_of(24, 2560, 20, 8192, 100352) + R"("model_type": "granite_swa")") ==
        2'144'463'840);
  CHECK(counted_in(members_of(32, 4096, 32, 11008, 32000) +
                   R"("model_type": "granitemoe_swa", "num_key_value_heads": 32)") ==
        37'039'117'312);
  CHECK(counted_in(members_of(24, 2048, 16, 7680, 128000) + R"("model_type": "lfm3")") ==
        1'728'801'536);
  CHECK(counted_in(members_of(50, 2560, 48, 512, 128000) +
                   R"("model_type": "kolibri1", "moe_intermediate_size": 512,
                    "shared_expert_intermediate_size": 512)") == 78'103'055'360);
  CHECK(counted_in(members_of(40, 8192, 64, 22528, 256000) + R"("model_type": "cohere2_moe")") ==
        190'004'928'512);
  CHECK(counted_in(members_of(32, 4096, 64, 16384, 262144) +
                   R"("model_type": "sarvam_mla", "moe_intermediate_size": 2048,
                    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                    "v_head_dim": 128)") == 106'031'763'456);
  CHECK(counted_in(members_of(19, 4096, 64, 8192, 262144) +
                   R"("model_type": "sarvam_moe", "moe_intermediate_size": 1024)") ==
        32'152'648'064);
  CHECK(counted_in(members_of(32, 4096, 32, 14336, 266752) +
                   R"("model_type": "apertus1p5_text")") == 8'091'086'912);
}

// Windows of the layers that attend, a gate for each head (2,048 values of 16 heads in 11 layers),
// and norms behind both branches.
TEST_CASE("LFM3 attends in every second layer, by turns with a window") {
  const std::string lfm3 = members_of(8, 2048, 16, 7680, 1000) + R"("model_type": "lfm3")";
  const Transformer m = model_of_members(lfm3);
  CHECK(m.mixers == "CCACACAC");
  CHECK(m.windows == "ffffwfff");
  CHECK(m.sliding_window == 256);
  CHECK(m.head_gate);
  CHECK(m.norms.per_layer == 4);
  const Transformer plain = model_of_members(lfm3 + R"(, "use_attention_gate": false)");
  CHECK(parameter_count(m).total - parameter_count(plain).total == 3 * 2048 * 16);
}

TEST_CASE("Jamba's classes count Mamba-1 and experts") {
  const std::string jamba = members_of(32, 4096, 32, 14336, 65536) + R"("model_type": "jamba")";
  const Transformer m = model_of_members(jamba);
  CHECK(parameter_count(m).total == 51'570'323'328);
  CHECK(m.mamba->step_rank == 256);  // a 16th of the hidden size
  const auto known = find_model(loaded_catalog(), "jamba-v0.1");
  REQUIRE(known);
  CHECK(m.mixers == (*known)->mixers);
  CHECK(parameter_count(**known).total == parameter_count(m).total);
  // Jamba 1.5 Large (arXiv 2408.12570): 398 billion, of which 94 billion are active.
  const Transformer large =
      model_of_members(members_of(72, 8192, 64, 24576, 65536) + R"("model_type": "jamba")");
  CHECK(parameter_count(large).total == 398'555'145'696);
  CHECK(parameter_count(large).active / 1'000'000'000 == 94);
  // One expert is none: the 3 billion that attend in 2 of 28 layers.
  const Transformer small =
      model_of_members(members_of(28, 2560, 20, 8192, 65536) +
                       R"("model_type": "jamba", "num_key_value_heads": 1, "num_experts": 1,
         "attn_layer_period": 14, "attn_layer_offset": 7, "tie_word_embeddings": true)");
  CHECK_FALSE(small.moe);
  CHECK(parameter_count(small).total == 3'029'337'472);
  CHECK(holds(first_problem(jamba + R"(, "expert_layer_offset": 0)"), "expert_layer_offset"));
}

TEST_CASE("MiniMax's classes count lightning attention, listed by name or by number") {
  const std::string sizes = members_of(32, 4096, 32, 14336, 32000);
  const Transformer m = model_of_members(sizes + R"("model_type": "minimax")");
  CHECK(parameter_count(m).total == 47'373'946'880);
  CHECK(m.mixers.substr(0, 4) == "ALAL");
  CHECK(m.norms.feed_residual);
  const Transformer listed =
      model_of_members(members_of(4, 4096, 32, 14336, 32000) +
                       R"("model_type": "minimax_m1", "attn_type_list": [0, 0, 0, 1])");
  CHECK(listed.mixers == "LLLA");
  // MiniMaxForCausalLM with the sizes of the card on the meta device; 45.9 billion are active
  // beside embedding and head.
  const auto text_01 = find_model(loaded_catalog(), "minimax-text-01");
  REQUIRE(text_01);
  CHECK(parameter_count(**text_01).total == 456'089'655'296);
  const ParameterCount count = parameter_count(**text_01);
  CHECK((count.active - count.embedding - count.lm_head) / 100'000'000 == 459);
}

// Two classes of transformers 5.23 on the meta device: the defaults, and E2B's sizes.
TEST_CASE("Gemma 3n's classes count alternating updates, and list a width for each layer") {
  const std::string defaults = R"("model_type": "gemma3n_text")";
  const Transformer m = model_of_members(defaults);
  CHECK(parameter_count(m).total == 6'835'235'568);
  CHECK(m.altup->cut_gates == 10);
  CHECK(m.stream_width() == 4 * 2048);
  const auto known = find_model(loaded_catalog(), "gemma-3n-e4b");
  REQUIRE(known);
  CHECK(parameter_count(**known).total == 6'835'235'568);
  CHECK(m.sliding_window_every == (*known)->sliding_window_every);
  const Transformer listed =
      model_of_members(defaults + R"(, "num_hidden_layers": 6, "num_kv_shared_layers": 0,
                     "intermediate_size": [8192, 8192, 8192, 8192, 8192, 8192],
                     "activation_sparsity_pattern": [0.95, 0.95, 0, 0, 0, 0])");
  CHECK(listed.ffn == 8192);
  CHECK(listed.altup->cut_gates == 2);
  CHECK(holds(first_problem(defaults + R"(, "num_hidden_layers": 2, "num_kv_shared_layers": 0,
                              "intermediate_size": [8192, 4096])"),
              "one number for all layers"));
  const auto e2b = find_model(loaded_catalog(), "gemma-3n-e2b");
  REQUIRE(e2b);
  CHECK(parameter_count(**e2b).total == 4'435'182'688);
}

// Three text configs with the sizes of their classes' defaults, on the meta device (5.24.0): what
// lies below language_model and lm_head.
TEST_CASE("language models of page readers count what transformers builds of their defaults") {
  CHECK(counted_in(members_of(16, 1024, 16, 4096, 59392) + R"("model_type": "glm_ocr_text")") ==
        373'359'616);
  CHECK(counted_in(members_of(18, 1024, 16, 3072, 103424) +
                   R"("model_type": "paddleocr_vl_text")") == 360'748'032);
  CHECK(counted_in(members_of(12, 1280, 10, 6848, 129280) +
                   R"("model_type": "unlimited_ocr_text", "n_routed_experts": 64,
                    "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 896,
                    "first_k_dense_replace": 1)") == 2'934'734'080);
  // Fewer layers than the classes' own.
  CHECK(counted_in(members_of(4, 1280, 10, 3072, 102400) +
                   R"("model_type": "deepseek_ocr2_text", "n_routed_experts": 8,
                    "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 512,
                    "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"])") == 359'179'520);
  CHECK(counted_in(members_of(4, 4096, 32, 11008, 290943) +
                   R"("model_type": "hunyuan_vl_text", "num_key_value_heads": 8)") ==
        1'900'577'792);
  CHECK(counted_in(members_of(4, 4096, 32, 11008, 32000) +
                   R"("model_type": "granite4_vision_text")") == 940'609'536 + 32000 * 4096);
}

// A Qwen-Omni file's thinker_config holds what it says of reading: here Qwen2.5-7B's sizes, which
// its class has by default (5.24.0).
TEST_CASE("a file with a thinker is read at the thinker's language model") {
  const std::string text = members_of(28, 3584, 28, 18944, 152064) +
                           R"("model_type": "qwen2_5_omni_text", "num_key_value_heads": 4)";
  const Transformer m = model_of_members(
      R"("model_type": "qwen2_5_omni", "thinker_config": {"text_config": {)" + text + "}}");
  CHECK(parameter_count(m).total == 7'615'616'512);
  CHECK(holds(m.notes, "the language model alone"));
}

// transformers 5 reads the outer flag, 4 the language model's; 5 leaves apart what a checkpoint has
// twice, so an outer "true" says nothing.
TEST_CASE("the release that wrote a file says whose word on tying counts") {
  const auto tied = [](const std::string& release, const std::string& outer,
                       const std::string& own) {
    return model_of_members(R"("model_type": "llava", "transformers_version": ")" + release +
                            R"(", "tie_word_embeddings": )" + outer +
                            R"(, "text_config": {"model_type": "qwen2", "tie_word_embeddings": )" +
                            own + "}")
        .tied_embeddings;
  };
  CHECK_FALSE(tied("5.24.0", "false", "true"));
  CHECK(tied("4.57.6", "false", "true"));
  CHECK_FALSE(tied("5.24.0", "true", "false"));
  CHECK(tied("5.24.0", "true", "true"));
}

TEST_CASE("an explicit null of MiniCPM3 is one plain projection of queries") {
  const std::string sizes =
      members_of(62, 2560, 40, 6400, 73448) + R"("model_type": "minicpm3", "v_head_dim": 64)";
  CHECK(model_of_members(sizes).mla->q_lora_rank == 768);
  CHECK_FALSE(model_of_members(sizes + R"(, "q_lora_rank": null)").mla->q_lora_rank);
}

TEST_CASE("what a family's newer file adds is refused, not passed over") {
  const std::string kimi =
      members_of(27, 2304, 32, 9216, 163840) +
      R"("model_type": "kimi_linear", "moe_intermediate_size": 1024, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128)";
  CHECK(first_problem(kimi) == "read");
  CHECK(holds(first_problem(kimi + R"(, "attn_res_block_size": 12)"), "attn_res_block_size"));
  CHECK(holds(first_problem(members_of(2, 64, 8, 64, 100) + R"("model_type": "minimax_m3")"),
              "blocks of keys"));
  // A wrapper's reason is that of the language model in it.
  CHECK(holds(first_problem(members_of(2, 64, 8, 64, 100) + R"("model_type": "hy_v4_vl")"),
              "hyper-connections"));
  CHECK(holds(first_problem(members_of(2, 64, 8, 64, 100) +
                            R"("model_type": "apertus1p5_text", "output_vocab_size": 64)"),
              "output_vocab_size"));
}

}  // namespace shardwise
