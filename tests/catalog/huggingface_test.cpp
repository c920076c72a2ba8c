// Real config.json files give the dimensions of the catalogued models, and every file of the
// corpus of bad ones gives its problem. hf_configs/SOURCES.json says where each file was read and
// what it must come to.
#include "catalog/huggingface.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalog/huggingface_family.hpp"
#include "catalog/json_reader.hpp"
#include "tests/catalog/config_differences.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const std::filesystem::path source_root = source_dir();
const std::filesystem::path configs = source_root / "tests/catalog/hf_configs";
const std::filesystem::path bad_configs = source_root / "tests/catalog/bad_input/config";

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
