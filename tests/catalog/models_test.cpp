// Sweeps the model catalog: each published count is met, names are unique, aliases lead somewhere.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "catalog/huggingface_family.hpp"
#include "catalog/json_document.hpp"
#include "catalog/load.hpp"
#include "catalog/model_name.hpp"
#include "catalog/transformer_flaws.hpp"
#include "catalog/unsupported_model.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const std::filesystem::path catalog_root_path = std::filesystem::path(source_dir()) / "catalog";

std::vector<Transformer> models() {
  auto loaded = load_models(catalog_root_path);
  for (const Problem& p : loaded ? Problems{} : loaded.error())
    UNSCOPED_INFO(p.where << ": " << p.what);
  REQUIRE(loaded);
  return *std::move(loaded);
}

double relative_error(const Transformer& m) {
  return static_cast<double>(parameter_count(m).total) / static_cast<double>(m.published->total) -
         1;
}

// A folder of models that is removed at the end of the test.
class ModelsFolder {
 public:
  ModelsFolder()
      : root_(std::filesystem::temp_directory_path() /
              ("shardwise-models-test-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "models");
  }
  ~ModelsFolder() { std::filesystem::remove_all(root_); }
  ModelsFolder(const ModelsFolder&) = delete;
  ModelsFolder& operator=(const ModelsFolder&) = delete;

  const std::filesystem::path& path() const { return root_; }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / "models" / name) << text;
  }

 private:
  std::filesystem::path root_;
};

std::string all_problems(const Problems& problems) {
  std::string out;
  for (const Problem& p : problems) out += p.where + ": " + p.what + '\n';
  return out;
}

// A small model; `members` are put before its other members.
std::string model_text(const std::string& members) {
  return "{" + members +
         R"("model_type": "llama", "layers": 2, "hidden": 8, "heads": 2, "kv_heads": 1,
 "head_dim": 4, "ffn": 16, "gated_mlp": true, "vocab": 10, "tied_embeddings": false,
 "norm": {"kind": "rms", "per_layer": 2}, "position": "rope",
 "source": "made up", "date": "2026-01-02"})";
}

}  // namespace

TEST_CASE("every exact published count is met to the last digit") {
  int asserted = 0;
  for (const Transformer& m : models()) {
    if (!m.published || !m.published->exact) continue;
    INFO(m.id);
    const std::int64_t excess = m.published->excess ? m.published->excess->values : 0;
    CHECK(parameter_count(m).total + excess == m.published->total);
    if (m.published->excess) CHECK(m.published->excess->reason.size() > 20);
    ++asserted;
  }
  CHECK(asserted >= 160);
}

TEST_CASE("rounded published counts are met within their rounding") {
  int asserted = 0;
  int near = 0;
  for (const Transformer& m : models()) {
    if (!m.published || m.published->exact) continue;
    INFO(m.id << " is off by " << 100 * relative_error(m) << " %");
    // Names round freely: "15B" for Nemotron-4's 15.6e9, "350M" for OPT's 331e6.
    CHECK(std::abs(relative_error(m)) < 0.07);
    near += std::abs(relative_error(m)) < 0.02 ? 1 : 0;
    ++asserted;
  }
  CHECK(asserted >= 78);
  CHECK(near >= 66);
}

// A name that stands for a refused architecture is nobody's in the catalog.
TEST_CASE("every unsupported model is of a refused architecture, and none is catalogued") {
  const auto document =
      parse_json_file(catalog_root_path / "models/unsupported.json", "unsupported.json");
  REQUIRE(document);
  Problems problems;
  JsonReader file(*document, problems);
  JsonReader rows = file.object("models");
  file.provenance();
  file.finish();
  CHECK(problems.empty());
  for (const std::string& name : rows.keys()) {
    INFO(name);
    CHECK(refused_family(rows.text(name)) != nullptr);
    CHECK(unsupported_model(catalog_root_path, name));
  }
  for (const Transformer& m : models()) {
    INFO(m.id);
    CHECK_FALSE(unsupported_model(catalog_root_path, m.id));
    for (const std::string& alias : m.aliases)
      CHECK_FALSE(unsupported_model(catalog_root_path, alias));
  }
  CHECK_FALSE(unsupported_model(catalog_root_path / "nowhere", "jamba"));
  // Nothing that is supported resembles what makes pictures.
  CHECK(unsupported_model(catalog_root_path, "FLUX.1-dev")
            ->ends_with("only language models are supported"));
}

TEST_CASE("the catalog holds the families that people train") {
  const auto loaded = models();
  CHECK(loaded.size() >= 300);
  for (const char* id : {"llama-7b",
                         "llama-2-70b",
                         "llama-3-8b",
                         "llama-3.1-405b",
                         "llama-3.2-1b",
                         "llama-3.3-70b",
                         "llama-4-scout-17b-16e",
                         "mistral-7b-v0.3",
                         "mixtral-8x22b",
                         "qwen-7b",
                         "qwen1.5-110b",
                         "qwen2-72b",
                         "qwen2.5-32b",
                         "qwen3-235b-a22b",
                         "gemma-7b",
                         "gemma-2-27b",
                         "gemma-3-27b",
                         "phi-1.5",
                         "phi-4",
                         "falcon-180b",
                         "mpt-30b",
                         "bloom-176b",
                         "opt-175b",
                         "gpt2-xl",
                         "gpt-neo-2.7b",
                         "gpt-j-6b",
                         "gpt-neox-20b",
                         "gpt3-175b",
                         "pythia-12b",
                         "stablelm-2-12b",
                         "yi-34b",
                         "internlm2-20b",
                         "baichuan2-13b",
                         "chatglm3-6b",
                         "glm-4-9b",
                         "deepseek-v2",
                         "deepseek-v3",
                         "deepseek-r1-distill-qwen-32b",
                         "dbrx",
                         "grok-1",
                         "command-r-plus",
                         "olmo-2-32b",
                         "gpt-oss-120b",
                         "smollm3-3b",
                         "tinyllama-1.1b"}) {
    INFO(id);
    CHECK(std::any_of(loaded.begin(), loaded.end(),
                      [&](const Transformer& m) { return m.id == id; }));
  }
}

TEST_CASE("every model is sound, sourced and dated") {
  for (const Transformer& m : models()) {
    INFO(m.id);
    CHECK(flaws(m).empty());
    CHECK_FALSE(m.provenance.source.empty());
    CHECK(m.provenance.date.starts_with("2026-11-2"));
    CHECK(parameter_count(m).active <= parameter_count(m).total);
    CHECK((parameter_count(m).active < parameter_count(m).total) == m.moe.has_value());
  }
}

TEST_CASE("no name means two models") {
  std::map<std::string, std::string> owner;
  for (const Transformer& m : models()) {
    std::set<std::string> keys{model_name_key(m.id)};
    if (!m.hf_id.empty()) keys.insert(model_name_key(m.hf_id));
    for (const std::string& alias : m.aliases) keys.insert(model_name_key(alias));
    for (const std::string& key : keys) {
      INFO(key << " means " << m.id << " and " << owner[key]);
      CHECK((owner[key].empty() || owner[key] == m.id));
      owner[key] = m.id;
    }
  }
}

TEST_CASE("aliases lead to catalogued models") {
  const auto aliases = load_model_aliases(catalog_root_path);
  REQUIRE(aliases);
  const auto loaded = models();
  for (const auto& [alias, id] : *aliases) {
    INFO(alias << " -> " << id);
    const Transformer* meant = model_meant(alias, loaded, *aliases);
    REQUIRE(meant != nullptr);
    CHECK(meant->id == id);
  }
  const std::map<std::string, std::string> usual{
      {"70b", "llama-3.1-70b"}, {"8b", "llama-3.1-8b"},     {"7b", "llama-2-7b"},
      {"13b", "llama-2-13b"},   {"405b", "llama-3.1-405b"}, {"mixtral", "mixtral-8x7b"}};
  for (const auto& [alias, id] : usual) CHECK(aliases->at(alias) == id);
}

TEST_CASE("names as people type them lead to the model they mean") {
  const auto aliases = load_model_aliases(catalog_root_path);
  REQUIRE(aliases);
  const auto loaded = models();
  const std::pair<const char*, const char*> typed[] = {
      {"ibm/PowerLM-3b", "powerlm-3b"},
      {"deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3"},
      {"01-ai/Yi-34B-Chat-4bits", "yi-34b"},
      {"llama3_8b", "llama-3-8b"},
      {"gemma2_9b_sft", "gemma-2-9b"},
      {"qwen2_7b", "qwen2-7b"},
      {"Qwen/QVQ-72B-Preview", "qwen2-vl-72b"},
      {"bigcode/gpt_bigcode-santacoder", "santacoder"},
      {"unsloth/gemma-3-270m-it", "gemma-3-270m"},
      {"google/gemma-3-4b-pt", "gemma-3-4b"},
      {"ibm-granite/granite-3.3-8b-instruct", "granite-3.3-8b"},
      {"granite-3.1-2b-instruct", "granite-3.1-2b"},
      {"THUDM/GLM-4-32B-0414", "glm-4-32b-0414"},
      {"GLM-4-9B-0414", "glm-4-9b-0414"},
      {"zai-org/glm-4-9b-chat", "glm-4-9b"},
      {"GLM-4.6", "glm-4.5"},
      {"openbmb/MiniCPM3-4B", "minicpm3-4b"},
      {"deepseek-coder-33b-instruct", "deepseek-coder-33b"},
      {"deepseek-coder", "deepseek-coder-6.7b"},
      {"deepseek-ai/DeepSeek-V2.5", "deepseek-v2"},
      {"deepseek-r1:7b", ""},  // Ollama's spelling is none of ours
      {"deepseek-r1-7b", "deepseek-r1-distill-qwen-7b"},
      {"Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl-7b"},
      {"qwen3-4b-instruct-2507", "qwen3-4b"},
      {"Qwen/Qwen3.5-9B", "qwen3.5-9b"},
      {"mistral-small-3.2", "mistral-small-24b-2501"},
      {"mistralai/Devstral-Small-2507", "mistral-small-24b-2501"},
      {"Ministral-3-8B-Instruct-2512", "ministral-3-8b"},
      {"nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nemotron-nano-9b-v2"},
      {"NousResearch/Hermes-3-Llama-3.1-8B", "llama-3.1-8b"},
      {"Qwen/Qwen3.5-2B", "qwen3.5-2b"},
      {"zai-org/GLM-5.1", "glm-5"},
      {"inclusionAI/Ling-mini-2.0", "ling-mini-2.0"},
      {"microsoft/Phi-4-reasoning-plus", "phi-4"},
      {"PrimeIntellect/INTELLECT-3", "glm-4.5-air"},
      {"NousResearch/Hermes-4.3-36B", "seed-oss-36b"},
      {"ibm-granite/granite-4.1-8b-base", "granite-4.1-8b"},
      {"ibm-granite/granite-4.2-30b", "granite-4.1-30b"},
      {"llama-3.2", "llama-3.2-3b"},
      {"270m", "gemma-3-270m"},
      {"olmo-2-7b", "olmo-2-7b"}};
  for (const auto& [name, id] : typed) {
    INFO(name);
    const Transformer* meant = model_meant(name, loaded, *aliases);
    CHECK((meant ? meant->id : std::string()) == id);
  }
}

// A fine-tune's name holds its base's, with a size. What says another size beside it, or that
// layers were rebuilt, is another model; what has blanks is a description.
TEST_CASE("a fine-tune's name means its base") {
  const std::vector<Transformer> loaded = models();
  const auto aliases = load_model_aliases(catalog_root_path);
  REQUIRE(aliases);
  const std::vector<std::pair<std::string, std::string>> typed{
      {"huihui-ai/Qwen3-8B-abliterated", "qwen3-8b"},
      {"NousResearch/Hermes-2-Pro-Mistral-7B", "mistral-7b-v0.1"},
      {"cognitivecomputations/dolphin-2.9-llama3-8b", "llama-3-8b"},
      {"someone/Qwen3-30B-A3B-stories", "qwen3-30b-a3b"},  // not the dense part of its name
      {"nvidia/Llama-3.1-Minitron-4B-Width-Base", ""},
      {"someone/Llama-3-8B-MoE-8x8B", ""},
      {"someone/Qwen3-8B-eagle3", ""},
      {"someone/Qwen3-8B-tuned-16k-3epochs", "qwen3-8b"},  // a length and a duration are no layers
      {"DAMO-NLP-SG/Video-LLaMA-2-7B", ""},
      {"BAAI/Bunny-Llama-3-8B-V", ""},
      {"OpenMOSE/Llama-3-8B-RWKV", ""},
      {"featherless-ai/QRWKV6-Qwen2.5-32B", ""},
      {"google/PaliGemma-Gemma-2B-448", ""},
      {"someone/mistral-7b-retnet", ""},
      {"someone/qwen3-32b-drafter", ""},
      {"someone/speculator-llama-3-8b", ""},
      {"someone/qwen3-8b-tts", ""},
      {"someone/tiny-random-llama-3-8b", ""},
      {"someone/Llama-3.1-8B-BitNet", ""},
      {"someone/llama-3.1-8b-6layers", ""},
      {"someone/Llama-3-8B-4expert", ""},
      {"Qwen3-32B-like", ""},
      {"Llama-3.1-70B shape, GPT-2 vocabulary", ""},
      {"openchat-7b", ""}};  // a size alone is no model's name here
  for (const auto& [name, id] : typed) {
    INFO(name);
    const ModelReading meant = read_model_name(name, loaded, *aliases);
    CHECK((meant.model ? meant.model->id : std::string()) == id);
    CHECK(meant.as_base);
  }
  CHECK_FALSE(read_model_name("Qwen/Qwen3-8B", loaded, *aliases).as_base);
}

TEST_CASE("a model file is read strictly") {
  const ModelsFolder folder;
  folder.put("tiny.json", model_text(R"("id": "tiny", )"));
  const auto good = load_models(folder.path());
  REQUIRE(good);
  REQUIRE(good->size() == 1);
  CHECK(good->front().head_dim == 4);
  CHECK(good->front().provenance.date == "2026-01-02");

  SECTION("an id that is not the file's name") {
    folder.put("other.json", model_text(R"("id": "tiny", )"));
    CHECK(holds(all_problems(load_models(folder.path()).error()), "models/other.json:/id"));
  }
  SECTION("a key nobody knows, with the one that was meant") {
    folder.put("tiny.json", model_text(R"("id": "tiny", "sliding_windov": 4, )"));
    CHECK(holds(all_problems(load_models(folder.path()).error()), "did you mean sliding_window?"));
  }
  SECTION("sizes that contradict each other") {
    folder.put("tiny.json", model_text(R"("id": "tiny", "moe": {"experts": 2, "top_k": 3,
                                          "expert_ffn": 4}, )"));
    const Problems problems = load_models(folder.path()).error();
    CHECK(holds(all_problems(problems), "moe.top_k: a token visits 3 experts"));
    CHECK(problems.size() == 1);  // and nothing of groups, which nobody named
  }
  SECTION("a bias that no linear has, and a word that is no position") {
    folder.put("tiny.json", model_text(R"("id": "tiny", "biases": ["qk"], "qk_norm": "both", )"));
    const std::string problems = all_problems(load_models(folder.path()).error());
    CHECK(holds(problems, "models/tiny.json:/biases"));
    CHECK(holds(problems, "models/tiny.json:/qk_norm"));
  }
  SECTION("an excess over a count that is not given") {
    folder.put("tiny.json",
               model_text(R"("id": "tiny", "published_excess": {"values": 1, "reason": "x"}, )"));
    CHECK(holds(all_problems(load_models(folder.path()).error()),
                "published_excess without published"));
  }
  SECTION("problems of several files come together") {
    folder.put("a.json", "{");
    folder.put("b.json", R"({"id": "b"})");
    const std::string problems = all_problems(load_models(folder.path()).error());
    CHECK(holds(problems, "models/a.json: not valid JSON"));
    CHECK(holds(problems, "models/b.json:/layers: missing"));
    CHECK(holds(problems, "models/b.json:/source: missing"));
  }
  SECTION("a folder that is not there") {
    CHECK_FALSE(load_models(folder.path() / "nowhere"));
    CHECK_FALSE(load_model_aliases(folder.path() / "nowhere"));
  }
  SECTION("an alias that is not a name") {
    folder.put("aliases.json", R"({"aliases": {"7b": 7}, "source": "made up", "date": "unknown"})");
    CHECK(holds(all_problems(load_model_aliases(folder.path()).error()),
                "models/aliases.json:/aliases/7b"));
  }
}

TEST_CASE("a question about one model by name needs no other model's file") {
  const ModelAliases aliases = *load_model_aliases(catalog_root_path);
  SECTION("ids and aliases.json, as they stand") {
    CHECK(find_model_file(catalog_root_path, "llama-3.1-8b", aliases) == "llama-3.1-8b");
    CHECK(find_model_file(catalog_root_path, "Llama 3.1 8B", aliases) == "llama-3.1-8b");
    CHECK(find_model_file(catalog_root_path, "70b", aliases) == aliases.at("70b"));
  }
  SECTION("what only the files know, or is no one model") {
    CHECK_FALSE(find_model_file(catalog_root_path, "llama-3.1-8b-instruct", aliases));
    CHECK_FALSE(find_model_file(catalog_root_path, "opt-1.3b + opt-350m", aliases));
    CHECK_FALSE(find_model_file(catalog_root_path, "no-such-model", aliases));
  }
  SECTION("the same model as from all files, for every id and alias") {
    const std::vector<Transformer> all_models = models();
    const auto check = [&](const std::string& name) {
      INFO(name);
      const Transformer* meant = model_meant(name, all_models, aliases);
      REQUIRE(meant != nullptr);
      CHECK(find_model_file(catalog_root_path, name, aliases) == meant->id);
    };
    for (const Transformer& model : all_models) check(model.id);
    for (const auto& [alias, id] : aliases) check(alias);
  }
  SECTION("a catalog of that one model") {
    const auto catalog = load_catalog(catalog_root_path, "70b");
    REQUIRE(catalog);
    CHECK_FALSE(catalog->all_models);
    REQUIRE(catalog->models.size() == 1);
    CHECK(catalog->models.front().id == aliases.at("70b"));
    const auto whole = load_catalog(catalog_root_path, "llama-3.1-8b-instruct");
    REQUIRE(whole);
    CHECK(whole->all_models);
    CHECK(whole->models.size() > 1);
  }
}

}  // namespace shardwise
