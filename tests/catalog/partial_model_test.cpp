// Names and sizes as published runs give them.
#include "catalog/partial_model.hpp"

#include <algorithm>
#include <string>

#include "catalog/load.hpp"
#include "catalog/model_name.hpp"
#include "catalog/transformer_flaws.hpp"
#include "tests/catalog/sized_partial.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const std::filesystem::path models_root = std::filesystem::path(source_dir()) / "catalog";

const std::vector<Transformer>& known_models() {
  static const std::vector<Transformer> models = *load_models(models_root);
  return models;
}

const std::map<std::string, std::string>& aliases() {
  static const std::map<std::string, std::string> map = *load_model_aliases(models_root);
  return map;
}

std::string model_id_of(const std::string& name) {
  const Transformer* model = model_meant(name, known_models(), aliases());
  return model ? model->id : "";
}

Transformer completed(const PartialModel& partial) {
  const auto model = complete(partial, known_models(), aliases());
  for (const Problem& p : model ? Problems{} : model.error()) UNSCOPED_INFO(p.what);
  REQUIRE(model);
  return *model;
}

std::string problem(const PartialModel& partial) {
  const auto model = complete(partial, known_models(), aliases());
  REQUIRE_FALSE(model);
  CHECK(model.error().front().where == partial.name);
  CHECK(model.error().front().kind == ProblemKind::file);
  return model.error().front().what;
}

bool assumed(const Transformer& m, const std::string& field) {
  return std::any_of(m.provenance.fields.begin(), m.provenance.fields.end(),
                     [&](const FieldSource& f) { return f.field == field; });
}

struct Spelling {
  const char* name;
  const char* id;
};

}  // namespace

TEST_CASE("a name's key is what tells models apart") {
  CHECK(model_name_key("Qwen/Qwen-1_8B") == "qwen1.8b");
  CHECK(model_name_key("GPT2-XL (~1.6B)") == "gpt2xl");
  CHECK(model_name_key("microsoft/phi-1_5") == "phi1.5");
  CHECK(model_name_key("Nemotron_3_Nano") == "nemotron3nano");
  CHECK(model_name_key("") == "");
}

TEST_CASE("published spellings find their model") {
  const Spelling spellings[] = {
      {"Llama-2-7B", "llama-2-7b"},
      {"meta-llama/Llama-2-70b-chat-hf", "llama-2-70b"},
      {"LLaMA-33B", "llama-30b"},
      {"Llama3-8B (model not named in the table; source page is another)", "llama-3-8b"},
      {"Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"},
      {"Llama-3.2-1B dims", "llama-3.2-1b"},
      {"Llama4-17Bx16E reduced to 2 layers", "llama-4-scout-17b-16e"},
      {"meta-llama/Llama-4-Scout-17B-16E", "llama-4-scout-17b-16e"},
      {"70B", "llama-3.1-70b"},
      {"Qwen-7B", "qwen-7b"},
      {"Qwen/Qwen-1_8B-Chat", "qwen-1.8b"},
      {"Qwen1.5-72B-Chat-GPTQ-Int4", "qwen1.5-72b"},
      {"Qwen1.5-MoE-A2.7B (14B)", "qwen1.5-moe-a2.7b"},
      {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
      {"Qwen/Qwen3-14B-FP8", "qwen3-14b"},
      {"Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"},
      {"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3-8b"},
      {"MPT-30b", "mpt-30b"},
      {"Mistral-7B-v0.2-base", "mistral-7b-v0.1"},
      {"mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"},
      {"mistralai/Devstral-Small-2507", "mistral-small-24b-2501"},
      {"codellama/CodeLlama-7b-hf", "codellama-7b"},
      {"axolotl-ai-co/gpt-oss-120b-dequantized", "gpt-oss-120b"},
      {"openai-mirror/gpt-oss-20b", "gpt-oss-20b"},
      {"allenai/Olmo-3-7B-Instruct-SFT", "olmo-3-7b"},
      {"stabilityai/stablelm-2-1_6b", "stablelm-2-1.6b"},
      {"StableLM-base-alpha-3B", "stablelm-base-alpha-3b"},
      {"BLOOMZ-7B1", "bloom-7b1"},
      {"GPT-2 124M", "gpt2"},
      {"GPT-2 1558M", "gpt2-xl"},
      {"GPT-3-175B", "gpt3-175b"},
      {"GPT-3 125M", "gpt3-125m"},
      {"GPT3-20B", "nemo-gpt3-20b"},
      {"GPT-39.1B", "megatron-gpt-39b"},
      {"GPT-530B", "megatron-gpt-530b"},
      {"Nemotron-340B", "nemotron-4-340b"},
      {"Nemotron_3_Super", "nemotron-3-super-120b-a12b"},
      {"Phi-3-mini-4k", "phi-3-mini"},
      {"Yi-34B-200K", "yi-34b"},
      {"databricks/dbrx-base", "dbrx"},
      {"Moonlight-16B-A3B-Instruct", "moonlight-16b-a3b"},
      {"TinyLlama-1.1B", "tinyllama-1.1b"},
  };
  for (const Spelling& s : spellings) {
    INFO(s.name);
    CHECK(model_id_of(s.name) == s.id);
  }
}

TEST_CASE("names of other things find nothing") {
  for (const char* name :
       {"", "-", "Qwen", "t5-large", "OPT-1.3B (actor) + OPT-350M critic", "google/gemma-5-12B-it",
        "state-spaces/mamba-2.8b", "GPT-200B (BLOOM prequel)",
        "moonshotai/Kimi-K9-48B-A3B-Instruct", "Llama2-1B (dims not stated)"}) {
    INFO(name);
    if (std::string(name) != "Qwen") CHECK(model_id_of(name) == "");
  }
}

TEST_CASE("a name alone is completed from the catalog") {
  PartialModel p;
  p.name = "InternLM-20B";
  CHECK(completed(p).layers == 60);
  CHECK(completed(p).id == "internlm-20b");
  p.name = "our finetune";
  p.hf_id = "meta-llama/Llama-2-7b-hf";
  CHECK(completed(p).id == "llama-2-7b");
}

TEST_CASE("sizes given take the place of the catalogued ones") {
  PartialModel p = sized_partial("Llama-65B", 80, 8192);
  p.vocab = 32004;
  const Transformer m = completed(p);
  CHECK(m.vocab == 32004);
  CHECK(m.ffn == 22016);
  CHECK_FALSE(m.published);  // the published count is of another vocabulary

  PartialModel reduced;
  reduced.name = "Llama4-17Bx16E reduced to 2 layers";
  reduced.layers = 2;
  CHECK(completed(reduced).layers == 2);
  CHECK(completed(reduced).moe->experts == 16);

  PartialModel hybrid;  // ten layers are the first ten: nine of Mamba-2 and one of attention
  hybrid.name = "granite-4.0-h-tiny";
  hybrid.layers = 10;
  CHECK(completed(hybrid).mixers == "SSSSSASSSS");

  PartialModel windowed;  // the first eight of CWM's 64: two see everything, six a window
  windowed.name = "cwm-32b";
  windowed.layers = 8;
  CHECK(completed(windowed).windows == "fwwwfwww");
  CHECK_FALSE(completed(windowed).sees_window(4));
  CHECK(completed(windowed).sees_window(7));

  PartialModel untied = sized_partial("Llama-3.2-1B dims", 16, 2048);
  untied.tied_embeddings = false;
  // one more table of 128256 x 2048 than the 1,235,814,400 of the tied model
  CHECK(parameter_count(completed(untied)).total == 1'235'814'400 + 128256LL * 2048);

  PartialModel experts = sized_partial("Mixtral-8x7B", 32, 4096);
  experts.moe = PartialExperts{16, 4, 7168, 1, std::nullopt};
  CHECK(completed(experts).moe->top_k == 4);
  CHECK(completed(experts).moe->shared_expert_ffn == 7168);
}

TEST_CASE("a cut model keeps the first layers' choices of tokens") {
  Transformer sparse = *model_meant("DeepSeek-V3.2", known_models(), aliases());
  REQUIRE(sparse.indexer);
  sparse.indexer->layers = "o";  // each but every fourth takes over the one before
  for (int layer = 1; layer < sparse.layers; ++layer)
    sparse.indexer->layers += layer % 4 == 0 ? 'o' : 's';
  REQUIRE(flaws(sparse).empty());
  PartialModel partial;
  partial.name = sparse.id;
  partial.layers = 6;
  const auto cut = complete(partial, {sparse});
  REQUIRE(cut);
  CHECK(cut->indexer->layers == "osssos");
  partial.layers = sparse.layers + 1;  // nobody says what the one more would be
  CHECK_FALSE(complete(partial, {sparse}));
}

TEST_CASE("another hidden size is another model, whatever the name says") {
  PartialModel p = sized_partial("GPT-18B (BLOOM prequel)", 6, 14336);
  p.heads = 64;
  p.gated_mlp = false;
  const Transformer m = completed(p);
  CHECK(m.id == "GPT-18B (BLOOM prequel)");
  CHECK(m.vocab == 250880);  // as BLOOM
  CHECK(m.position == PositionKind::alibi);
}

TEST_CASE("an unknown GPT is built like GPT-3, an unknown gated model like Llama") {
  PartialModel p = sized_partial("GPT-h1024-l12", 12, 1024);
  p.heads = 16;
  p.gated_mlp = false;
  const Transformer gpt = completed(p);
  CHECK(gpt.ffn == 4096);
  CHECK(gpt.vocab == 51200);
  CHECK(gpt.kv_heads == 16);
  CHECK(gpt.norms.kind == NormKind::layer);
  CHECK(gpt.norms.bias);
  CHECK((gpt.biases.qkv && gpt.biases.o && gpt.biases.mlp));
  CHECK(gpt.position == PositionKind::learned);
  CHECK(gpt.tied_embeddings);
  CHECK((assumed(gpt, "ffn") && assumed(gpt, "vocab") && assumed(gpt, "kv_heads")));
  CHECK_FALSE(assumed(gpt, "heads"));

  PartialModel q = sized_partial("Aquila2-7B", 32, 4096);
  q.heads = 32;
  q.gated_mlp = true;
  q.vocab = 100008;
  const Transformer llama = completed(q);
  CHECK(llama.ffn == 11008);  // 8/3 x 4096 = 10922.7, up to a multiple of 256
  CHECK(llama.norms.kind == NormKind::rms);
  CHECK_FALSE(llama.biases.qkv);
  CHECK(llama.position == PositionKind::rope);
}

TEST_CASE("what a run tells of positions, norms and biases is none of GPT-3's") {
  PartialModel p = sized_partial("GPT-h1024-l12", 12, 1024);
  p.heads = 16;
  p.gated_mlp = false;
  p.vocab = 50304;
  const auto before = parameter_count(completed(p)).total;
  p.position = PositionKind::rope;
  p.qk_norm = QkNorm::head_dim;
  p.biases = false;
  const Transformer m = completed(p);
  CHECK(m.position == PositionKind::rope);
  CHECK((!m.biases.qkv && !m.biases.o && !m.biases.mlp && !m.norms.bias));
  // Gone: 2,048 rows of positions, in each layer 9 x 1,024 biases of linears (3 of q, k and v, o, 4
  // and 1 of the MLP) and 2 of norms, and the last norm's; come: a weight of 64 for q and for k.
  CHECK(before - parameter_count(m).total == 2048 * 1024 + 12 * (11 * 1024 - 2 * 64) + 1024);
  p.norm = NormKind::rms;
  p.biases = true;
  CHECK_FALSE(completed(p).norms.bias);  // an RMS norm has none
}

TEST_CASE("an unlisted size of a family is built like the family") {
  PartialModel p = sized_partial("MPT-13b", 40, 5120);
  p.heads = 40;
  p.ffn = 20480;
  p.vocab = 50368;
  p.gated_mlp = false;
  p.tied_embeddings = true;
  const Transformer m = completed(p);
  CHECK(m.position == PositionKind::alibi);
  CHECK_FALSE(m.biases.qkv);
  CHECK_FALSE(m.norms.bias);
  // 40 x (12 x 5120^2 + 2 x 5120) + 50368 x 5120 + 5120
  CHECK(parameter_count(m).total == 40 * (12LL * 5120 * 5120 + 10240) + 50368LL * 5120 + 5120);
}

TEST_CASE("heads that nobody states are 128 wide, or 64, where that divides") {
  PartialModel p = sized_partial("GPT-45B", 20, 13824);
  CHECK(completed(p).heads == 108);
  CHECK(assumed(completed(p), "heads"));
  p.hidden = 14400;  // not a multiple of 128
  CHECK(completed(p).heads == 225);
}

TEST_CASE("the size in a name decides whether the embeddings are tied") {
  PartialModel p = sized_partial("GPT-7.1B", 30, 4096);
  p.heads = 32;
  p.vocab = 131072;
  // 30 layers of 201,379,840 are 6.04e9; one table of 0.54e9 gives 6.59e9, two give 7.12e9
  CHECK_FALSE(completed(p).tied_embeddings);
  p.name = "GPT-6.6B";
  CHECK(completed(p).tied_embeddings);
  p.name = "GPT-unsized";
  CHECK(completed(p).tied_embeddings);
  p.name = "GPT-7.1B";
  p.tied_embeddings = true;
  CHECK(completed(p).tied_embeddings);

  PartialModel q = sized_partial("GPT-175B", 96, 12288);
  q.heads = 96;
  q.gated_mlp = false;
  CHECK(completed(q).tied_embeddings);  // 174.6e9 rounds to 175
}

TEST_CASE("layers follow from the size in the name") {
  // A GPT layer of hidden size h holds 12 h^2 + 13 h, and BLOOM's vocabulary of 250,880 is tied:
  // h = 14400 makes 2,488.5e6 a layer and 3,612.7e6 of embedding, so 195e9 need
  // (195 - 3.6127) / 2.4885 = 76.9 layers; 77 is also 11 stages of 7, as the run had.
  PartialModel p;
  p.name = "GPT-195B (BLOOM prequel)";
  p.hidden = 14400;
  p.vocab = 250880;
  p.gated_mlp = false;
  p.tied_embeddings = true;
  const Transformer m = completed(p);
  CHECK(m.layers == 77);
  CHECK(assumed(m, "layers"));
}

TEST_CASE("what cannot be completed says why") {
  PartialModel p;
  p.name = "GPT-205B (BLOOM prequel)";
  CHECK(problem(p) == "not a catalogued model, and its size is not told: missing layers, hidden");
  p.hidden = 14400;
  p.name = "GPT of the BLOOM prequel";
  CHECK(problem(p) == "not a catalogued model, and its size is not told: missing layers");
  p.hidden.reset();
  p.layers = 80;
  CHECK(problem(p) == "not a catalogued model, and its size is not told: missing hidden");

  PartialModel heads = sized_partial("some model", 2, 100);
  heads.heads = 3;
  CHECK(problem(heads).find("3 heads do not divide a hidden size of 100") != std::string::npos);
  heads.head_dim = 32;
  CHECK(completed(heads).head_dim == 32);
  heads.kv_heads = 2;
  CHECK(problem(heads).find("kv_heads") != std::string::npos);

  PartialModel absurd;
  absurd.name = "Mixtral-8x7B";
  absurd.layers = 2'000'000'000;
  CHECK(problem(absurd).find("layers") != std::string::npos);
  absurd.layers = 32;
  absurd.moe = PartialExperts{8, 2, 1'000'000, 2'000'000'000, 0};
  CHECK(problem(absurd).find("moe.shared_expert_ffn") != std::string::npos);

  CHECK(problem(sized_partial("some model", 0, 100)).find("layers") != std::string::npos);
  CHECK(problem(sized_partial("some model", 2, -5)).find("hidden") != std::string::npos);
  CHECK(problem(sized_partial("some model", 2, 2'000'000'000)).find("hidden") != std::string::npos);
}

}  // namespace shardwise
