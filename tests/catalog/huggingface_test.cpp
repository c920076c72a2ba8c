// Real config.json files give the dimensions of the catalogued models, and every file of the
// corpus of bad ones gives its problem. hf_configs/SOURCES.json says where each file was read and
// what it must come to.
#include "catalog/huggingface.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalog/huggingface_family.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/load.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const std::filesystem::path source_root = source_dir();
const std::filesystem::path configs = source_root / "tests/catalog/hf_configs";
const std::filesystem::path bad_configs = source_root / "tests/catalog/bad_input/config";

std::string all_of_them(const Problems& problems) {
  std::string out;
  for (const Problem& p : problems) out += p.where + ": " + p.what + '\n';
  return out;
}

const std::vector<Transformer>& catalogued_models() {
  static const std::vector<Transformer> models = [] {
    auto loaded = load_models(source_root / "catalog");
    REQUIRE(loaded);
    return *std::move(loaded);
  }();
  return models;
}

const Transformer& model_of_id(const std::string& id) {
  const auto found = std::find_if(catalogued_models().begin(), catalogued_models().end(),
                                  [&](const Transformer& m) { return m.id == id; });
  INFO(id);
  REQUIRE(found != catalogued_models().end());
  return *found;
}

// The members that bear on size or time, by name, so that a difference can be named.
std::vector<std::pair<std::string, int>> dimensions_of(const Transformer& m) {
  const MixtureOfExperts moe = m.moe.value_or(MixtureOfExperts{});
  const LatentAttention mla = m.mla.value_or(LatentAttention{});
  const DeltaNet delta = m.delta.value_or(DeltaNet{});
  const StateSpace mamba = m.mamba.value_or(StateSpace{});
  const auto layers_of = [&](char letter) {
    return static_cast<int>(std::count(m.mixers.begin(), m.mixers.end(), letter));
  };
  return {{"layers", m.layers},
          {"hidden", m.hidden},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},
          {"ffn", m.ffn},
          {"gated_mlp", m.gated_mlp},
          {"vocab", m.vocab},
          {"tied_embeddings", m.tied_embeddings},
          {"caps_logits", m.caps_logits},
          {"norms.kind", static_cast<int>(m.norms.kind)},
          {"norms.per_layer", m.norms.per_layer},
          {"norms.bias", m.norms.bias},
          {"norms.final", m.norms.final},
          {"norms.embedding", m.norms.embedding},
          {"biases.qkv", m.biases.qkv},
          {"biases.o", m.biases.o},
          {"biases.mlp", m.biases.mlp},
          {"biases.experts", m.biases.experts},
          {"biases.router", m.biases.router},
          {"biases.lm_head", m.biases.lm_head},
          {"qk_norm", static_cast<int>(m.qk_norm)},
          {"position", static_cast<int>(m.position)},
          {"position_rows", m.position_rows},
          {"sliding_window", m.sliding_window.value_or(0)},
          {"sliding_window_every", m.sliding_window_every},
          {"embed_dim", m.embed_dim.value_or(0)},
          {"attention_extra_per_layer", m.attention_extra_per_layer},
          {"moe.experts", moe.experts},
          {"moe.top_k", moe.top_k},
          {"moe.expert_ffn", moe.expert_ffn},
          {"moe.shared_expert_ffn", moe.shared_expert_ffn},
          {"moe.shared_gate", moe.shared_gate},
          {"moe.dense_layers", moe.dense_layers},
          {"moe.every", moe.every},
          {"mla.q_lora_rank", mla.q_lora_rank.value_or(0)},
          {"mla.kv_lora_rank", mla.kv_lora_rank},
          {"mla.qk_nope_head_dim", mla.qk_nope_head_dim},
          {"mla.qk_rope_head_dim", mla.qk_rope_head_dim},
          {"mla.v_head_dim", mla.v_head_dim},
          {"delta.key_heads", delta.key_heads},
          {"delta.value_heads", delta.value_heads},
          {"delta.key_dim", delta.key_dim},
          {"delta.value_dim", delta.value_dim},
          {"delta.convolution", delta.convolution},
          {"delta.chunk", delta.chunk},
          {"attention_gate", m.attention_gate},
          {"mamba.heads", mamba.heads},
          {"mamba.head_dim", mamba.head_dim},
          {"mamba.groups", mamba.groups},
          {"mamba.state", mamba.state},
          {"mamba.convolution", mamba.convolution},
          {"mamba.chunk", mamba.chunk},
          {"mamba.normed", mamba.normed},
          {"convolution.taps", m.convolution.value_or(GatedConvolution{0}).taps},
          {"layers D", layers_of('D')},
          {"layers S", layers_of('S')},
          {"layers B", layers_of('B')},
          {"layers C", layers_of('C')}};
}

std::string differences(const Transformer& found, const Transformer& expected) {
  const auto a = dimensions_of(found);
  const auto b = dimensions_of(expected);
  std::string out;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].second != b[i].second)
      out += a[i].first + " is " + std::to_string(a[i].second) + ", not " +
             std::to_string(b[i].second) + "; ";
  return out;
}

Transformer parsed(const std::string& text) {
  const auto model = parse_huggingface_config(text, "config.json");
  if (!model) UNSCOPED_INFO(all_of_them(model.error()));
  REQUIRE(model);
  return *model;
}

std::string refused(const std::string& text) {
  const auto model = parse_huggingface_config(text, "config.json");
  REQUIRE_FALSE(model);
  return all_of_them(model.error());
}

JsonDocument document(const std::filesystem::path& file) {
  auto read = parse_json_file(file, file.filename().string());
  REQUIRE(read);
  return *std::move(read);
}

std::set<std::string> json_names(const std::filesystem::path& folder, const char* but) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != but) names.insert(entry.path().filename().string());
  return names;
}

std::string llama_with(const std::string& members) {
  return R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
             "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000)" +
         members + "}";
}

}  // namespace

TEST_CASE("real config.json files come to the catalogued models or are refused by name") {
  const JsonDocument sources = document(configs / "SOURCES.json");
  Problems problems;
  JsonReader files(sources, problems);
  int equal = 0;
  int others = 0;
  for (const std::string& name : files.keys()) {
    INFO(name);
    JsonReader row = files.object(name);
    row.text("source");
    const auto model = read_huggingface_config(configs / name);
    if (const auto reason = row.maybe_text("refused")) {
      REQUIRE_FALSE(model);
      CHECK(holds(all_of_them(model.error()), *reason));
      ++others;
      continue;
    }
    if (!model) UNSCOPED_INFO(all_of_them(model.error()));
    REQUIRE(model);
    if (const auto id = row.maybe_text("catalog")) {
      CHECK(differences(*model, model_of_id(*id)) == "");
      CHECK(parameter_count(*model).total == parameter_count(model_of_id(*id)).total);
      ++equal;
    } else {
      CHECK(parameter_count(*model).total == row.integer64("parameters", 1, 1'000'000'000'000));
      ++others;
    }
  }
  CHECK(problems.empty());
  CHECK(equal >= 60);
  CHECK(others >= 8);
  const std::vector<std::string> listed = files.keys();
  CHECK(json_names(configs, "SOURCES.json") == std::set<std::string>(listed.begin(), listed.end()));
}

TEST_CASE("each bad config.json gives its problems and nothing else") {
  const JsonDocument expected = document(bad_configs / "EXPECTED.json");
  Problems problems;
  JsonReader files(expected, problems);
  for (const std::string& name : files.keys()) {
    INFO(name);
    const auto model = read_huggingface_config(bad_configs / name);
    REQUIRE_FALSE(model);
    const std::string said = all_of_them(model.error());
    for (const std::string& part : files.texts(name)) {
      INFO("expected " << part << " in\n" << said);
      CHECK(holds(said, part));
    }
    std::set<std::string> places;
    for (const Problem& p : model.error()) {
      CHECK(p.kind == ProblemKind::file);
      CHECK(holds(p.where, name));
      CHECK(places.insert(p.where).second);
    }
  }
  CHECK(problems.empty());
  CHECK(files.keys().size() >= 50);
  const std::vector<std::string> listed = files.keys();
  CHECK(json_names(bad_configs, "EXPECTED.json") ==
        std::set<std::string>(listed.begin(), listed.end()));
}

TEST_CASE("a config.json of any size ends in an answer") {
  CHECK(holds(refused(std::string(std::size_t{100} << 20, '[')), "larger than 16 MiB"));
  CHECK(holds(refused(std::string(std::size_t{1} << 20, '[')), "nested more than 64 levels"));
  CHECK(holds(refused(llama_with(", \"x\": \"" + std::string(std::size_t{17} << 20, 'y') + '"')),
              "larger than 16 MiB"));
  // what nobody reads may be long
  CHECK(parsed(llama_with(", \"x\": \"" + std::string(1 << 20, 'y') + '"')).layers == 32);
}

TEST_CASE("a file that cannot be read is a problem of the file") {
  for (const char* name : {"nowhere.json", "hf_configs"}) {
    const auto model = read_huggingface_config(source_root / "tests/catalog" / name);
    REQUIRE_FALSE(model);
    CHECK(model.error().front().kind == ProblemKind::file);
    CHECK(holds(model.error().front().where, name));
  }
}

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

TEST_CASE("a config without model_type is known by its architecture") {
  const Transformer m = parsed(
      R"({"architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12, "n_head": 12,
          "vocab_size": 50257, "n_ctx": 1024})");
  CHECK(m.model_type == "gpt2");
  CHECK(differences(m, model_of_id("gpt2")) == "");
}

TEST_CASE("a model is called by its name or path, else by its folder or file") {
  CHECK(parsed(llama_with(R"(, "_name_or_path": "meta-llama/Llama-2-7b-hf")")).id ==
        "llama-2-7b-hf");
  CHECK(parsed(llama_with(R"(, "_name_or_path": "meta-llama/Llama-2-7b-hf")")).hf_id ==
        "meta-llama/Llama-2-7b-hf");
  CHECK(parsed(llama_with(R"(, "_name_or_path": "/data/My Model/")")).id == "my-model");
  CHECK(parsed(llama_with(R"(, "_name_or_path": "/data/my-model/")")).hf_id.empty());
  const auto from = [](const char* name) {
    const auto model = parse_huggingface_config(llama_with(""), name);
    REQUIRE(model);
    return model->id;
  };
  CHECK(from("models/llama-like/config.json") == "llama-like");
  CHECK(from("some/folder/tiny.json") == "tiny");
  CHECK(from("/config.json") == "llama");
}

TEST_CASE("prediction layers are left out and said to be") {
  const auto model = read_huggingface_config(configs / "deepseek-ai--DeepSeek-V3.json");
  REQUIRE(model);
  CHECK(holds(model->notes, "without its multi-token-prediction layers (1)"));
}

TEST_CASE("every row reads a config that gives the keys of its columns") {
  for (const ConfigFamily& family : config_families()) {
    INFO(family.model_type);
    const DimensionKeys& keys = *family.keys;
    std::string text = R"({"model_type": ")" + std::string(family.model_type) + '"';
    const auto give = [&](std::string_view key, int value) {
      if (!key.empty() && text.find('"' + std::string(key) + '"') == std::string::npos)
        text += ", \"" + std::string(key) + "\": " + std::to_string(value);
    };
    give(keys.hidden[0], 4096);
    give(keys.layers[0], 12);
    give(keys.heads[0], 32);
    give(keys.kv_heads[0], 8);
    give(keys.ffn[0], 11008);
    give(keys.vocab[0], 32000);
    give(keys.positions[0], 2048);
    for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                            "index_n_heads", "index_head_dim", "index_topk"})
      give(key, 64);
    // What Gemma 4 has unless told otherwise, and Gemma 3n always, which shares keys of 20 layers.
    give("hidden_size_per_layer_input", family.model_type == "gemma3n_text" ? 256 : 0);
    give("num_kv_shared_layers", 0);
    if (family.model_type == "dbrx")
      text += R"(, "attn_config": {"kv_n_heads": 8}, "ffn_config": {"moe_num_experts": 8,
                 "moe_top_k": 2, "ffn_hidden_size": 1024})";
    else if (family.experts) {
      give(family.experts->experts[0], 8);
      give(family.experts->top_k[0], 2);
      give(family.experts->width[0], 1024);
      give(family.experts->shared_width, 1024);
    }
    if (family.model_type == "gemma4_text") text += R"(, "enable_moe_block": true)";
    if (family.model_type == "nemotron_h") text += R"(, "hybrid_override_pattern": "M*EM*EM*EM-E")";
    const Transformer m = parsed(text + "}");
    CHECK(m.layers == 12);
    CHECK(m.hidden == 4096);
    CHECK(m.heads == 32);
    CHECK(m.vocab == 32000);
    CHECK(m.moe.has_value() == (family.experts != nullptr));
    const bool latent = family.details == config_details::latent_attention ||
                        family.details == config_details::minicpm3 ||
                        family.details == config_details::sparse_attention ||
                        family.details == config_details::sarvam_mla ||
                        family.details == config_details::kimi_linear;
    CHECK(m.mla.has_value() == latent);
    if (latent) CHECK((m.kv_heads == 32 && m.head_dim == 64 + 64));
    CHECK(m.tied_embeddings == family.tied);
    CHECK(parameter_count(m).active > 0);
  }
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

TEST_CASE("each family's row can be reached, and no refused one can") {
  std::set<std::string_view> seen;
  for (const ConfigFamily& family : config_families()) {
    INFO(family.model_type);
    CHECK(config_family(family.model_type) == &family);
    CHECK(refused_family(family.model_type) == nullptr);
    CHECK(seen.insert(family.model_type).second);
    CHECK(family.keys != nullptr);
  }
  CHECK(seen.size() >= 50);
  for (const char* type :
       {"zamba2", "mimo_v2_flash", "rwkv5", "t5", "deepseek_v4", "hy_v4", "mllama_text_model"}) {
    INFO(type);
    const RefusedFamily* family = refused_family(type);
    REQUIRE(family != nullptr);
    CHECK(config_family(family->nearest) != nullptr);
  }
  CHECK(refused_family("") == nullptr);
}

}  // namespace shardwise
