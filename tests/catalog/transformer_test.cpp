// Parameter counts by hand: every total is derived in a comment, then asserted.
#include "catalog/transformer.hpp"

#include <string>

#include "catalog/require.hpp"
#include "catalog/transformer_flaws.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

Transformer sized(int layers, int hidden, int heads, int kv_heads, int ffn, int vocab) {
  Transformer m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = hidden / heads;
  m.ffn = ffn;
  m.vocab = vocab;
  return m;
}

Transformer llama_31_8b() { return sized(32, 4096, 32, 8, 14336, 128256); }

Transformer gpt2() {
  Transformer m = sized(12, 768, 12, 12, 3072, 50257);
  m.gated_mlp = false;
  m.tied_embeddings = true;
  m.norms = {NormKind::layer, 2, true, true, false};
  m.biases.qkv = m.biases.o = m.biases.mlp = true;
  m.position = PositionKind::learned;
  m.position_rows = 1024;
  return m;
}

}  // namespace

TEST_CASE("Llama 3.1 8B counts 8,030,261,248 parameters") {
  const ParameterCount c = parameter_count(llama_31_8b());
  // q and o: 2 x 4096 x 4096 = 33,554,432; k and v: 2 x 4096 x 1024 = 8,388,608
  CHECK(c.attention_per_layer == 41'943'040);
  // gate, up, down: 3 x 4096 x 14336
  CHECK(c.dense_mlp_per_layer == 176'160'768);
  CHECK(c.norms_per_layer == 8'192);
  CHECK(c.final_norm == 4'096);
  // 128256 x 4096, once in and once out
  CHECK(c.embedding == 525'336'576);
  CHECK(c.lm_head == 525'336'576);
  CHECK(c.dense_layer() == 218'112'000);
  // 32 x 218,112,000 + 2 x 525,336,576 + 4,096
  CHECK(c.total == 8'030'261'248);
  CHECK(c.active == c.total);
}

TEST_CASE("GPT-2 counts 124,439,808 parameters: biases, learned positions, a tied head") {
  const ParameterCount c = parameter_count(gpt2());
  // 4 x 768 x 768 + 4 x 768 biases
  CHECK(c.attention_per_layer == 2'362'368);
  // 2 x 768 x 3072 + 3072 + 768
  CHECK(c.dense_mlp_per_layer == 4'722'432);
  // two norms of weight and bias
  CHECK(c.norms_per_layer == 3'072);
  CHECK(c.positions == 1024 * 768);
  CHECK(c.lm_head == 0);
  // 50257 x 768 + 1024 x 768 + 12 x 7,087,872 + 1,536
  CHECK(c.total == 124'439'808);
}

TEST_CASE("Mixtral 8x7B counts all experts in total and two of eight as active") {
  Transformer m = sized(32, 4096, 32, 8, 14336, 32000);
  m.moe = MixtureOfExperts{};
  m.moe->experts = 8;
  m.moe->top_k = 2;
  m.moe->expert_ffn = 14336;
  const ParameterCount c = parameter_count(m);
  // 8 x 3 x 4096 x 14336; the router is 4096 x 8
  CHECK(c.experts_per_layer == 1'409'286'144);
  CHECK(c.moe_rest_per_layer == 32'768);
  // 32 x (41,943,040 + 1,409,286,144 + 32,768 + 8,192) + 2 x 131,072,000 + 4,096
  CHECK(c.total == 46'702'792'704);
  // 6 of 8 experts of 176,160,768 stay idle in each of 32 layers
  CHECK(c.active == c.total - 32LL * 6 * 176'160'768);
}

TEST_CASE("DeepSeek-V3 has latent attention, three dense layers and a shared expert") {
  Transformer m = sized(61, 7168, 128, 128, 18432, 129280);
  m.head_dim = 192;
  m.mla = LatentAttention{1536, 512, 128, 64, 128};
  m.moe = MixtureOfExperts{256, 8, 2048, 2048, false, 3, 1};
  const ParameterCount c = parameter_count(m);
  // query  7168 x 1536 + 1536 + 1536 x 128 x 192         = 48,760,320
  // down   7168 x (512 + 64) + 512                       =  4,129,280
  // up     512 x 128 x (128 + 128)                       = 16,777,216
  // out    128 x 128 x 7168                              = 117,440,512
  CHECK(c.attention_per_layer == 48'760'320 + 4'129'280 + 16'777'216 + 117'440'512);
  CHECK(m.moe_layers() == 58);
  CHECK(c.dense_mlp_per_layer == 3LL * 7168 * 18432);
  CHECK(c.experts_per_layer == 256LL * 3 * 7168 * 2048);
  CHECK(c.moe_rest_per_layer == 7168LL * 256 + 3LL * 7168 * 2048);
  // 61 x (187,107,328 + 14,336) + 3 x 396,361,728 + 58 x 11,320,164,352
  //    + 2 x 926,679,040 + 7,168
  CHECK(c.total == 671'026'404'352);
}

TEST_CASE("a hybrid counts every layer as its letter says") {
  Transformer m = sized(4, 2688, 32, 2, 1856, 131072);
  m.head_dim = 128;
  m.gated_mlp = false;
  m.norms.per_layer = 1;
  m.mixers = "ME*-";
  m.mamba = StateSpace{64, 64, 8, 128, 4, 128};
  m.moe = MixtureOfExperts{128, 6, 1856, 3712, false, 0, 1};
  const ParameterCount c = parameter_count(m);
  // in 2688 x (2 x 4096 + 2 x 8 x 128 + 64), out 4096 x 2688, convolution 5 x (4096 + 2048),
  // A, D and time steps 3 x 64, gated norm 4096
  CHECK(c.mamba_per_layer == 2688LL * 10'304 + 4096LL * 2688 + 5 * 6144 + 3 * 64 + 4096);
  CHECK(c.experts_per_layer == 128LL * 2 * 2688 * 1856);
  CHECK(c.moe_rest_per_layer == 2688LL * 128 + 2LL * 2688 * 3712);
  CHECK(c.attention_per_layer == 2688LL * (2 * 4096 + 2 * 256));
  CHECK(c.total == c.mamba_per_layer + c.moe_rest_per_layer + c.experts_per_layer +
                       c.attention_per_layer + 2LL * 2688 * 1856 + 5 * 2688 + 2LL * 131072 * 2688);
  CHECK(m.moe_layers() == 1);
  CHECK(m.is_moe_layer(1));
  CHECK_FALSE(m.is_moe_layer(0));

  SECTION("latent experts work on narrower tokens, with two projections more") {
    m.moe->latent = 1024;
    const ParameterCount latent = parameter_count(m);
    CHECK(latent.experts_per_layer == 128LL * 2 * 1024 * 1856);
    CHECK(latent.moe_rest_per_layer == c.moe_rest_per_layer + 2LL * 2688 * 1024);
  }
  SECTION("a pattern of the wrong length or without its sizes is a flaw") {
    CHECK(flaws(m).empty());
    m.mixers = "ME*";
    CHECK(flaws(m).size() == 1);
    m.mixers = "ME*-";
    m.mamba.reset();
    CHECK(flaws(m).size() == 1);
  }
}

// Qwen3-Next's sizes, four layers of them.
TEST_CASE("a model with Gated DeltaNet counts whole blocks") {
  Transformer m = sized(4, 2048, 16, 2, 5120, 151936);
  m.head_dim = 256;
  m.qk_norm = QkNorm::head_dim;
  m.attention_gate = true;
  m.mixers = "DDDA";
  m.delta = DeltaNet{16, 32, 128, 128, 4, 64};
  m.moe = MixtureOfExperts{512, 10, 512, 512, true, 0, 1};
  const ParameterCount c = parameter_count(m);
  // Keys 16 x 128 = 2048, values 32 x 128 = 4096: in 2048 x (2 x 2048 + 2 x 4096 + 64), out
  // 4096 x 2048, convolution 4 x (2 x 2048 + 4096), a decay and its bias per head, a norm of 128.
  CHECK(c.delta_per_layer == 2048LL * 12'352 + 4096LL * 2048 + 4 * 8192 + 2 * 32 + 128);
  // queries and their gate 2 x 4096, keys and values 2 x 512, out 4096, two norms of 256
  CHECK(c.attention_per_layer == 2048LL * (2 * 4096 + 2 * 512 + 4096) + 2 * 256);
  CHECK(m.moe_layers() == 4);
  CHECK(m.is_moe_layer(0));
  const std::int64_t experts = 512LL * 3 * 2048 * 512;
  const std::int64_t rest = 2048LL * 512 + 3LL * 2048 * 512 + 2048;
  CHECK(c.total == 3 * c.delta_per_layer + c.attention_per_layer + 4 * (experts + rest) +
                       (4 * 2 + 1) * 2048 + 2LL * 151936 * 2048);
  CHECK(c.active == c.total - 4 * (512 - 10) * 3LL * 2048 * 512);
  CHECK(flaws(m).empty());
  m.mixers = "DDDM";  // a layer is a block or a mixer, not now one and now the other
  CHECK(flaws(m).size() == 1);
  m.mixers = "DDDA";
  m.delta->key_heads = 5;
  CHECK(flaws(m).size() == 1);
  m.delta.reset();
  CHECK(flaws(m).size() == 1);
}

// Granite 4.0 H-Tiny's, Falcon-H1-0.5B's and LFM2-350M's sizes, a few layers of them.
TEST_CASE("blocks count the mixer that stands in attention's place or beside it") {
  SECTION("Mamba-2 before experts") {
    Transformer m = sized(4, 1536, 12, 4, 1024, 100352);
    m.mixers = "SSAS";
    m.mamba = StateSpace{48, 64, 1, 128, 4, 256};
    m.moe = MixtureOfExperts{64, 6, 512, 1024, false, 0, 1};
    const ParameterCount c = parameter_count(m);
    // D = 48 x 64 = 3072: in 1536 x (2 D + 2 x 128 + 48), out D x 1536, taps and bias of D + 256
    // channels, three values per head, the norm of D.
    CHECK(c.mamba_per_layer == 1536LL * 6448 + 3072LL * 1536 + 5 * 3328 + 3 * 48 + 3072);
    CHECK(m.moe_layers() == 4);
    CHECK(c.total == 3 * c.mamba_per_layer + c.attention_per_layer +
                         4 * (c.experts_per_layer + c.moe_rest_per_layer) + (4 * 2 + 1) * 1536 +
                         2LL * 100352 * 1536);
    CHECK(flaws(m).empty());
  }
  SECTION("attention and Mamba-2 side by side, the latter without a norm") {
    Transformer m = sized(3, 1024, 8, 2, 2048, 32784);
    m.head_dim = 64;
    m.mixers = "BBB";
    m.mamba = StateSpace{24, 64, 1, 128, 4, 128, false};
    const ParameterCount c = parameter_count(m);
    CHECK(c.mamba_per_layer == 1024LL * 3352 + 1536LL * 1024 + 5 * 1792 + 3 * 24);
    CHECK(c.total == 3 * (c.mamba_per_layer + c.attention_per_layer + c.dense_mlp_per_layer) +
                         (3 * 2 + 1) * 1024 + 2LL * 32784 * 1024);
    m.mamba.reset();
    CHECK(flaws(m).size() == 1);
  }
  SECTION("short convolutions") {
    Transformer m = sized(3, 1024, 16, 8, 4608, 65536);
    m.qk_norm = QkNorm::head_dim;
    m.mixers = "CCA";
    m.convolution = GatedConvolution{3};
    const ParameterCount c = parameter_count(m);
    CHECK(c.convolution_per_layer == 3LL * 1024 * 1024 + 1024LL * 1024 + 3 * 1024);
    CHECK(c.total == 2 * c.convolution_per_layer + c.attention_per_layer +
                         3 * c.dense_mlp_per_layer + (3 * 2 + 1) * 1024 + 2LL * 65536 * 1024);
    m.mixers = "CC-";
    CHECK(flaws(m).size() == 1);
    m.mixers = "CCA";
    m.convolution.reset();
    CHECK(flaws(m).size() == 1);
  }
}

TEST_CASE("DeepSeek-V2-Lite has one plain query projection") {
  Transformer m = sized(27, 2048, 16, 16, 10944, 102400);
  m.mla = LatentAttention{std::nullopt, 512, 128, 64, 128};
  // 2048 x 16 x 192 + 2048 x 576 + 512 + 512 x 16 x 256 + 16 x 128 x 2048
  CHECK(parameter_count(m).attention_per_layer == 13'763'072);
}

TEST_CASE("Gemma 2 has four norms per layer and heads wider than the hidden size") {
  Transformer m = sized(42, 3584, 16, 8, 14336, 256000);
  m.head_dim = 256;
  m.norms.per_layer = 4;
  m.tied_embeddings = true;
  const ParameterCount c = parameter_count(m);
  // q and o: 2 x 3584 x 4096; k and v: 2 x 3584 x 2048
  CHECK(c.attention_per_layer == 29'360'128 + 14'680'064);
  CHECK(c.norms_per_layer == 4 * 3584);
  // 42 x (44,040,192 + 154,140,672 + 14,336) + 917,504,000 + 3,584
  CHECK(c.total == 9'241'705'984);
}

// Gemma 4 26B-A4B, as the modules of transformers 5.23 count it.
//   windowed   2816 x (4096 + 2 x 2048) + 4096 x 2816 + 2 x 256           = 34,603,520, 25 layers
//   full       2816 x (8192 + 1024) + 8192 x 2816 + 2 x 512               = 49,021,952, 5 layers
//   the rest   128 x 3 x 2816 x 704 experts, 2816 x 128 + 2816 + 128 router, 3 x 2816 x 2112 dense,
//              7 x 2816 norms                                             = 779,491,456, 30 layers
//   table      262144 x 2816, norm 2816: 738,200,320
TEST_CASE("Gemma 4 has other heads where it sees everything") {
  Transformer m = sized(30, 2816, 16, 8, 2112, 262144);
  m.head_dim = 256;
  m.tied_embeddings = true;
  m.norms.per_layer = 7;
  m.qk_norm = QkNorm::head_dim;
  m.sliding_window = 1024;
  m.sliding_window_every = 6;
  m.global_attention = GlobalAttention{2, 512, true};
  m.moe = MixtureOfExperts{128, 8, 704, 2112};
  m.moe->scaled_router = m.moe->normed_branches = true;
  const ParameterCount c = parameter_count(m);
  CHECK(c.attention_per_layer == 34'603'520);
  CHECK(c.global_attention_per_layer == 49'021'952);
  CHECK(c.total == 25'233'141'760);
  CHECK(m.sees_window(4));
  CHECK_FALSE(m.sees_window(5));
  CHECK(flaws(m).empty());

  m.global_attention->kv_heads = 3;  // of 16
  CHECK(flaws(m).front().field == "global_attention.kv_heads");
  m.global_attention->kv_heads = 2;
  m.sliding_window.reset();
  CHECK(flaws(m).front().field == "global_attention");
}

// Gemma 4 E2B, as the modules of transformers 5.24 count it.
//   windowed   1536 x (2048 + 2 x 256) + 2048 x 1536 + 2 x 256            =  7,078,400, 12 layers
//   full       1536 x (4096 + 2 x 512) + 4096 x 1536 + 2 x 512            = 14,156,800, 3 layers
//   sharing    the same without k, v and k's norm: - 786,688 (16 layers), - 1,573,376 (4)
//   MLP        3 x 1536 x 6144 = 28,311,552, twice as wide in the 20 layers that share
//   the rest   2 x 1536 x 256 + 1536 for its piece, 4 x 1536 norms        =    794,112, 35 layers
//   tables     262144 x 1536 + 1536; 262144 x 8960 + 1536 x 8960 + 256
TEST_CASE("the last layers of Gemma 4 E2B share keys, and each has embeddings of its own") {
  Transformer m = sized(35, 1536, 8, 1, 6144, 262144);
  m.head_dim = 256;
  m.tied_embeddings = true;
  m.norms.per_layer = 4;
  m.qk_norm = QkNorm::head_dim;
  m.sliding_window = 512;
  m.sliding_window_every = 5;
  m.global_attention = GlobalAttention{1, 512, false};
  m.shared_keys = SharedKeys{20, true};
  m.layer_embeddings = LayerEmbeddings{262144, 256};
  const ParameterCount c = parameter_count(m);
  CHECK(c.attention_per_layer == 7'078'400);
  CHECK(c.global_attention_per_layer == 14'156'800);
  CHECK(c.layer_embeddings == 2'362'573'056);
  CHECK(c.total == 4'628'569'344);
  // Layers 13 and 14 are the last of their kinds before the 20.
  for (int layer = 0; layer < 35; ++layer) {
    INFO(layer);
    CHECK(m.shares_keys(layer) == (layer >= 15));
    CHECK(m.lends_keys(layer) == (layer == 13 || layer == 14));
    CHECK(m.mlp_width(layer) == (layer >= 15 ? 12288 : 6144));
  }
  CHECK(flaws(m).empty());

  m.shared_keys->layers = 31;  // the first four, all windowed, are left
  CHECK(flaws(m).front().field == "shared_keys.layers");
  m.shared_keys->layers = 35;
  CHECK(flaws(m).front().field == "shared_keys.layers");
  m.shared_keys.reset();
  m.layer_embeddings->width = 0;
  CHECK(flaws(m).front().field == "layer_embeddings.width");
  m.layer_embeddings.reset();
  m.value_embeddings = ValueEmbeddings{m.layers + 1};
  CHECK(flaws(m).front().field == "value_embeddings.tables");
  m.value_embeddings->tables = m.layers;
  CHECK(flaws(m).empty());
}

TEST_CASE("Qwen 3 normalises queries and keys, Qwen 2 has biases on them") {
  Transformer m = sized(36, 4096, 32, 8, 12288, 151936);
  m.qk_norm = QkNorm::head_dim;
  // 41,943,040 + one vector of 128 for queries, one for keys
  CHECK(parameter_count(m).attention_per_layer == 41'943'040 + 256);
  CHECK(parameter_count(m).total == 8'190'735'360);

  m.qk_norm = QkNorm::none;
  m.biases.qkv = true;
  // 32 x 128 for queries, 8 x 128 for keys and values each
  CHECK(parameter_count(m).attention_per_layer == 41'943'040 + 4096 + 2 * 1024);

  m.biases.qkv = false;
  m.qk_norm = QkNorm::full;
  CHECK(parameter_count(m).attention_per_layer == 41'943'040 + 4096 + 1024);
}

TEST_CASE("OPT-350M has embeddings narrower than its layers and no final norm") {
  Transformer m = sized(24, 1024, 16, 16, 4096, 50272);
  m.gated_mlp = false;
  m.tied_embeddings = true;
  m.norms = {NormKind::layer, 2, true, false, false};
  m.biases.qkv = m.biases.o = m.biases.mlp = true;
  m.position = PositionKind::learned;
  m.position_rows = 2050;
  m.embed_dim = 512;
  const ParameterCount c = parameter_count(m);
  // 50272 x 512 and a projection of 512 x 1024 on the way in and one on the way out
  CHECK(c.embedding == 25'739'264 + 1'048'576);
  CHECK(c.final_norm == 0);
  // layer: 4,198,400 + 8,393,728 + 4,096 = 12,596,224; 24 of them, 2050 x 1024 positions
  CHECK(c.total == 24LL * 12'596'224 + 26'787'840 + 2'099'200);
}

TEST_CASE("BLOOM has a norm after the embedding and no position table") {
  Transformer m = sized(24, 1024, 16, 16, 4096, 250880);
  m.gated_mlp = false;
  m.tied_embeddings = true;
  m.norms = {NormKind::layer, 2, true, true, true};
  m.biases.qkv = m.biases.o = m.biases.mlp = true;
  m.position = PositionKind::alibi;
  const ParameterCount c = parameter_count(m);
  CHECK(c.positions == 0);
  CHECK(c.final_norm == 2 * 2 * 1024);
  // 250880 x 1024 + 24 x 12,596,224 + 4,096
  CHECK(c.total == 559'214'592);
}

TEST_CASE("gpt-oss has sinks, biased routers and biased experts") {
  Transformer m = sized(36, 2880, 64, 8, 2880, 201088);
  m.head_dim = 64;
  m.biases.qkv = m.biases.o = m.biases.experts = m.biases.router = true;
  m.attention_extra_per_layer = 64;
  m.moe = MixtureOfExperts{128, 4, 2880, 0, false, 0, 1};
  const ParameterCount c = parameter_count(m);
  // 2 x 2880 x 4096 + 2 x 2880 x 512 + (4096 + 2 x 512 + 2880) biases + 64 sinks
  CHECK(c.attention_per_layer == 23'592'960 + 2'949'120 + 8'000 + 64);
  // per expert 3 x 2880 x 2880 + 2 x 2880 + 2880
  CHECK(c.experts_per_layer == 128LL * 24'891'840);
  CHECK(c.moe_rest_per_layer == 2880 * 128 + 128);
  CHECK(c.total == 116'829'156'672);
}

TEST_CASE("norms without weights and the head's own bias are counted as such") {
  Transformer m = sized(1, 8, 2, 2, 16, 10);
  m.norms.kind = NormKind::layer_no_weight;
  m.norms.bias = true;  // without weights there is no bias either
  m.tied_embeddings = true;
  m.biases.lm_head = true;
  const ParameterCount c = parameter_count(m);
  CHECK(c.norms_per_layer == 0);
  CHECK(c.final_norm == 0);
  CHECK(c.lm_head == 10);
  // 80 + (4 x 64) + (3 x 8 x 16) + 10
  CHECK(c.total == 80 + 256 + 384 + 10);
}

TEST_CASE("MoE layers start after the dense ones and come every n-th layer") {
  Transformer m = llama_31_8b();
  CHECK(m.moe_layers() == 0);
  CHECK_FALSE(m.is_moe_layer(0));
  for (int dense = 0; dense <= 5; ++dense) {
    for (int every = 1; every <= 4; ++every) {
      for (int layers = 1; layers <= 9; ++layers) {
        m.layers = layers;
        m.moe = MixtureOfExperts{4, 1, 8, 0, false, dense, every};
        int counted = 0;
        for (int i = 0; i < layers; ++i) counted += m.is_moe_layer(i) ? 1 : 0;
        CHECK(m.moe_layers() == counted);
      }
    }
  }
  // Llama 4 Maverick: every second layer, from the second on
  m.moe = MixtureOfExperts{128, 1, 8192, 8192, false, 0, 2};
  m.layers = 48;
  CHECK_FALSE(m.is_moe_layer(0));
  CHECK(m.is_moe_layer(1));
  CHECK(m.moe_layers() == 24);
  CHECK_THROWS_AS(m.is_moe_layer(48), BrokenInvariant);
}

TEST_CASE("the parts of a count add up to its total") {
  Transformer m = llama_31_8b();
  m.moe = MixtureOfExperts{16, 2, 1024, 2048, true, 3, 2};
  m.biases.router = true;
  const ParameterCount c = parameter_count(m);
  const int moe = m.moe_layers();
  CHECK(moe == 15);  // layers 3, 5, ..., 31
  CHECK(c.total == c.embedding + c.positions + (m.layers - moe) * c.dense_layer() +
                       moe * c.moe_layer() + c.final_norm + c.lm_head);
  // the shared gate is one vector, the router's bias one value per expert
  CHECK(c.moe_rest_per_layer == 4096LL * 16 + 16 + 3LL * 4096 * 2048 + 4096);
}

TEST_CASE("flaws are found before anything is counted") {
  CHECK(flaws(llama_31_8b()).empty());
  CHECK(flaws(gpt2()).empty());

  const auto flawed = [](void (*spoil)(Transformer&)) {
    Transformer m = llama_31_8b();
    spoil(m);
    const auto found = flaws(m);
    return found.empty() ? std::string() : found.front().field;
  };
  CHECK(flawed([](Transformer& m) { m.layers = 0; }) == "layers");
  CHECK(flawed([](Transformer& m) { m.hidden = -1; }) == "hidden");
  CHECK(flawed([](Transformer& m) { m.kv_heads = 5; }) == "kv_heads");
  CHECK(flawed([](Transformer& m) { m.kv_heads = 0; }) == "kv_heads");
  CHECK(flawed([](Transformer& m) { m.vocab = most_vocab + 1; }) == "vocab");
  CHECK(flawed([](Transformer& m) { m.position = PositionKind::learned; }) == "position_rows");
  CHECK(flawed([](Transformer& m) { m.sliding_window = 0; }) == "sliding_window");
  CHECK(flawed([](Transformer& m) { m.embed_dim = 0; }) == "embed_dim");
  CHECK(flawed([](Transformer& m) { m.moe = MixtureOfExperts{4, 5, 8, 0, false, 0, 1}; }) ==
        "moe.top_k");
  CHECK(flawed([](Transformer& m) { m.moe = MixtureOfExperts{4, 1, 8, 0, false, 33, 1}; }) ==
        "moe.dense_layers");
  CHECK(flawed([](Transformer& m) {
          m.mla = LatentAttention{0, 512, 128, 64, 128};
        }) == "mla.q_lora_rank");
}

TEST_CASE("sizes that are each allowed may still multiply out to nonsense") {
  Transformer m = sized(most_layers, most_width, 1000, 1000, most_width, most_vocab);
  m.moe = MixtureOfExperts{most_experts, 1, most_width, 0, false, 0, 1};
  // 10^4 layers x 3 x 10^6 x 10^5 x 10^6 is 3e21, which int64 cannot hold
  const auto found = flaws(m);
  REQUIRE(found.size() == 1);
  CHECK(found.front().what.find("multiply out to about 3e+21") != std::string::npos);
}

}  // namespace shardwise
