// models/*.json: one model each; models/aliases.json: what people mean by "70b". What the members
// mean is said in transformer.hpp.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/huggingface_family.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/load.hpp"
#include "catalog/model_words.hpp"
#include "catalog/names.hpp"
#include "catalog/transformer_flaws.hpp"

namespace shardwise {
namespace {

constexpr std::string_view aliases_file = "aliases.json";
constexpr std::string_view unsupported_file = "unsupported.json";  // unsupported_model.hpp

constexpr Choices<MlpFunction, 4> mlp_functions{{{"keeps_input", MlpFunction::keeps_input},
                                                 {"keeps_result", MlpFunction::keeps_result},
                                                 {"written_out", MlpFunction::written_out},
                                                 {"computes_again", MlpFunction::computes_again}}};
constexpr Choices<bool Biases::*, 6> bias_names{{{"qkv", &Biases::qkv},
                                                 {"o", &Biases::o},
                                                 {"mlp", &Biases::mlp},
                                                 {"experts", &Biases::experts},
                                                 {"router", &Biases::router},
                                                 {"lm_head", &Biases::lm_head}}};

Norms read_norms(JsonReader r) {
  Norms norms;
  norms.kind = r.choice("kind", norm_kinds);
  norms.per_layer = r.integer("per_layer", 0, 8);
  norms.bias = r.maybe_flag("bias").value_or(false);
  norms.final = r.maybe_flag("final").value_or(true);
  norms.embedding = r.maybe_flag("embedding").value_or(false);
  norms.feed_residual = r.maybe_flag("feed_residual").value_or(false);
  r.finish();
  return norms;
}

Biases read_biases(JsonReader& r) {
  Biases biases;
  for (const std::string& name : r.texts("biases")) {
    const auto row = std::find_if(bias_names.begin(), bias_names.end(),
                                  [&](const auto& b) { return b.first == name; });
    if (row == bias_names.end())
      r.problem("biases", "names out of qkv, o, mlp, experts, router, lm_head");
    else
      biases.*row->second = true;
  }
  return biases;
}

MixtureOfExperts read_experts(JsonReader r) {
  MixtureOfExperts moe;
  moe.experts = r.integer("experts", 1, most_experts);
  moe.top_k = r.integer("top_k", 1, most_experts);
  moe.expert_ffn = r.integer("expert_ffn", 1, most_width);
  moe.shared_expert_ffn = r.maybe_integer("shared_expert_ffn", 1, most_width).value_or(0);
  moe.shared_gate = r.maybe_flag("shared_gate").value_or(false);
  moe.dense_layers = r.maybe_integer("dense_layers", 0, most_layers).value_or(0);
  moe.every = r.maybe_integer("every", 1, most_layers).value_or(1);
  moe.latent = r.maybe_integer("latent", 1, most_width);
  moe.scaled_router = r.maybe_flag("scaled_router").value_or(false);
  moe.normed_branches = r.maybe_flag("normed_branches").value_or(false);
  moe.groups = r.maybe_integer("groups", 1, most_experts).value_or(1);
  moe.chosen_groups = r.maybe_integer("chosen_groups", 1, most_experts).value_or(moe.groups);
  r.finish();
  return moe;
}

GlobalAttention read_global_attention(JsonReader r) {
  GlobalAttention global;
  global.kv_heads = r.integer("kv_heads", 1, most_heads);
  global.head_dim = r.integer("head_dim", 1, most_width);
  global.values_are_keys = r.maybe_flag("values_are_keys").value_or(false);
  r.finish();
  return global;
}

SharedKeys read_shared_keys(JsonReader r) {
  SharedKeys shared;
  shared.layers = r.integer("layers", 1, most_layers);
  shared.double_wide_mlp = r.maybe_flag("double_wide_mlp").value_or(false);
  r.finish();
  return shared;
}

LayerEmbeddings read_layer_embeddings(JsonReader r) {
  LayerEmbeddings own;
  own.vocab = r.integer("vocab", 1, most_vocab);
  own.width = r.integer("width", 1, most_width);
  r.finish();
  return own;
}

AlternatingUpdates read_altup(JsonReader r) {
  AlternatingUpdates altup;
  altup.streams = r.integer("streams", 2, 64);
  altup.residual_rank = r.integer("residual_rank", 1, most_width);
  altup.cut_gates = r.maybe_integer("cut_gates", 0, most_layers).value_or(0);
  r.finish();
  return altup;
}

ValueEmbeddings read_value_embeddings(JsonReader r) {
  ValueEmbeddings own;
  own.tables = r.integer("tables", 1, most_layers);
  r.finish();
  return own;
}

LatentAttention read_latent_attention(JsonReader r) {
  LatentAttention mla;
  mla.q_lora_rank = r.maybe_integer("q_lora_rank", 1, most_width);
  mla.kv_lora_rank = r.integer("kv_lora_rank", 1, most_width);
  mla.qk_nope_head_dim = r.integer("qk_nope_head_dim", 1, most_width);
  mla.qk_rope_head_dim = r.integer("qk_rope_head_dim", 1, most_width);
  mla.v_head_dim = r.integer("v_head_dim", 1, most_width);
  r.finish();
  return mla;
}

WideProducts read_wide_products(JsonReader r) {
  WideProducts wide;
  wide.last_layers = r.maybe_integer("last_layers", 0, most_layers).value_or(0);
  wide.attention = r.maybe_flag("attention").value_or(false);
  wide.latents = r.maybe_flag("latents").value_or(false);
  r.finish();
  return wide;
}

TokenIndexer read_indexer(JsonReader r) {
  TokenIndexer indexer;
  indexer.heads = r.integer("heads", 1, most_heads);
  indexer.head_dim = r.integer("head_dim", 1, most_width);
  indexer.top_k = r.integer("top_k", 1, most_positions);
  indexer.layers = r.maybe_text("layers").value_or("");
  r.finish();
  return indexer;
}

StateSpace read_state_space(JsonReader r) {
  StateSpace mamba;
  mamba.heads = r.integer("heads", 1, most_heads);
  mamba.head_dim = r.integer("head_dim", 1, most_width);
  mamba.groups = r.integer("groups", 1, most_heads);
  mamba.state = r.integer("state", 1, most_width);
  mamba.convolution = r.integer("convolution", 1, most_width);
  mamba.chunk = r.integer("chunk", 1, most_width);
  mamba.normed = r.maybe_flag("normed").value_or(true);
  mamba.step_rank = r.maybe_integer("step_rank", 1, most_width);
  r.finish();
  return mamba;
}

DeltaNet read_delta_net(JsonReader r) {
  DeltaNet delta;
  delta.key_heads = r.integer("key_heads", 1, most_heads);
  delta.value_heads = r.integer("value_heads", 1, most_heads);
  delta.key_dim = r.integer("key_dim", 1, most_width);
  delta.value_dim = r.integer("value_dim", 1, most_width);
  delta.convolution = r.integer("convolution", 1, most_width);
  delta.chunk = r.integer("chunk", 1, most_width);
  delta.gate_rank = r.maybe_integer("gate_rank", 1, most_width);
  r.finish();
  return delta;
}

LightningAttention read_lightning(JsonReader r) {
  LightningAttention lightning;
  lightning.heads = r.integer("heads", 1, most_heads);
  lightning.head_dim = r.integer("head_dim", 1, most_width);
  lightning.block = r.integer("block", 1, most_width);
  r.finish();
  return lightning;
}

GatedConvolution read_convolution(JsonReader r) {
  GatedConvolution convolution;
  convolution.taps = r.integer("taps", 1, most_width);
  r.finish();
  return convolution;
}

VisionTower read_vision(JsonReader r, int text_hidden) {
  VisionTower v;
  v.layers = r.integer("layers", 1, most_layers);
  v.hidden = r.integer("hidden", 1, most_width);
  v.heads = r.integer("heads", 1, most_heads);
  v.ffn = r.integer("ffn", 1, most_width);
  v.gated_mlp = r.maybe_flag("gated_mlp").value_or(false);
  v.rms_norms = r.maybe_flag("rms_norms").value_or(false);
  v.patch_values = r.integer("patch_values", 1, most_width);
  v.patch_bias = r.maybe_flag("patch_bias").value_or(false);
  v.position_rows = r.maybe_integer("position_rows", 1, most_positions).value_or(0);
  v.final_norm = r.maybe_flag("final_norm").value_or(false);
  v.patches_per_token = r.integer("patches_per_token", 1, 1024);
  v.deeper_mergers = r.maybe_integer("deeper_mergers", 1, v.layers).value_or(0);
  v.pools = r.maybe_flag("pools").value_or(false);
  v.window_patches = r.maybe_integer("window_patches", 1, most_positions).value_or(0);
  v.global_layers = r.maybe_integer("global_layers", 0, v.layers).value_or(0);
  v.image_tokens = r.maybe_integer("image_tokens", 1, most_positions).value_or(0);
  v.text_first = r.maybe_flag("text_first").value_or(false);
  v.text_hidden = text_hidden;
  r.finish();
  return v;
}

void read_published(JsonReader& r, Transformer& model) {
  auto published = r.maybe_object("published");
  auto excess = r.maybe_object("published_excess");
  if (published) {
    PublishedCount count;
    count.total = published->integer64("total", 1, 1'000'000'000'000'000);
    count.exact = published->flag("exact");
    count.source = published->text("source");
    published->finish();
    model.published = count;
  }
  if (!excess) return;
  PublishedExcess more;
  more.values = excess->integer64("values", 1, 1'000'000'000'000'000);
  more.reason = excess->text("reason");
  excess->finish();
  if (model.published)
    model.published->excess = more;
  else
    r.problem_here("published_excess without published");
}

// As the classes of its model_type are written, but for the MLP's function where the file names it.
ModelCode read_code(JsonReader& r, const std::string& model_type) {
  const ConfigFamily* family = config_family(model_type);
  ModelCode code = family ? family->code : ModelCode{};
  code.mlp = r.maybe_choice("mlp_function", mlp_functions).value_or(code.mlp);
  return code;
}

void read_dimensions(JsonReader& r, Transformer& model) {
  model.layers = r.integer("layers", 1, most_layers);
  model.hidden = r.integer("hidden", 1, most_width);
  model.heads = r.integer("heads", 1, most_heads);
  model.kv_heads = r.integer("kv_heads", 1, most_heads);
  model.head_dim = r.integer("head_dim", 1, most_width);
  model.ffn = r.integer("ffn", 1, most_width);
  model.gated_mlp = r.flag("gated_mlp");
  model.vocab = r.integer("vocab", 1, most_vocab);
  model.tied_embeddings = r.flag("tied_embeddings");
  model.embed_dim = r.maybe_integer("embed_dim", 1, most_width);
}

void read_attention(JsonReader& r, Transformer& model) {
  model.qk_norm = r.maybe_choice("qk_norm", qk_norms).value_or(QkNorm::none);
  model.position = r.choice("position", position_kinds);
  if (model.position == PositionKind::learned)
    model.position_rows = r.integer("position_rows", 1, most_positions);
  model.causal_mask_rows = r.maybe_integer("causal_mask_rows", 0, most_positions).value_or(0);
  model.max_positions = r.maybe_integer("max_positions", 1, most_positions).value_or(0);
  model.sliding_window = r.maybe_integer("sliding_window", 1, most_positions);
  model.sliding_window_every = r.maybe_integer("sliding_window_every", 1, most_layers).value_or(1);
  model.windows = r.maybe_text("windows").value_or("");
  model.window_restarts = r.maybe_flag("window_restarts").value_or(false);
  if (auto global = r.maybe_object("global_attention"))
    model.global_attention = read_global_attention(*global);
  if (auto shared = r.maybe_object("shared_keys")) model.shared_keys = read_shared_keys(*shared);
  if (auto own = r.maybe_object("layer_embeddings"))
    model.layer_embeddings = read_layer_embeddings(*own);
  if (auto altup = r.maybe_object("altup")) model.altup = read_altup(*altup);
  if (auto own = r.maybe_object("value_embeddings"))
    model.value_embeddings = read_value_embeddings(*own);
  model.narrow_tables = r.maybe_flag("narrow_tables").value_or(false);
  model.caps_logits = r.maybe_flag("caps_logits").value_or(false);
  model.value_norm = r.maybe_flag("value_norm").value_or(false);
  model.attention_extra_per_layer =
      r.maybe_integer("attention_extra_per_layer", 0, most_width).value_or(0);
  if (auto mla = r.maybe_object("mla")) model.mla = read_latent_attention(*mla);
  if (auto indexer = r.maybe_object("indexer")) model.indexer = read_indexer(*indexer);
  if (auto mamba = r.maybe_object("mamba")) model.mamba = read_state_space(*mamba);
  if (auto delta = r.maybe_object("delta")) model.delta = read_delta_net(*delta);
  if (auto linear = r.maybe_object("lightning")) model.lightning = read_lightning(*linear);
  if (auto short_one = r.maybe_object("convolution"))
    model.convolution = read_convolution(*short_one);
  model.head_gate = r.maybe_flag("head_gate").value_or(false);
  model.attention_gate = r.maybe_flag("attention_gate").value_or(false);
  model.mixers = r.maybe_text("mixers").value_or("");
  model.prediction_mixers = r.maybe_text("prediction_mixers").value_or("");
  if (auto wide = r.maybe_object("wide_beside_nvfp4"))
    model.beside_nvfp4 = read_wide_products(*wide);
}

Transformer read_model(JsonReader& r, const std::string& file_id) {
  Transformer model;
  model.id = r.text("id");
  if (!model.id.empty() && model.id != file_id)
    r.problem("id", "the name of the file without .json");
  model.aliases = r.texts("aliases");
  model.hf_id = r.maybe_text("hf_id").value_or("");
  model.model_type = r.text("model_type");
  read_dimensions(r, model);
  model.norms = read_norms(r.object("norm"));
  model.code = read_code(r, model.model_type);
  model.biases = read_biases(r);
  read_attention(r, model);
  if (auto moe = r.maybe_object("moe")) model.moe = read_experts(*moe);
  if (auto vision = r.maybe_object("vision")) model.vision = read_vision(*vision, model.hidden);
  read_published(r, model);
  model.notes = r.maybe_text("notes").value_or("");
  model.provenance = r.provenance();
  r.finish();
  if (r.clean())
    for (const TransformerFlaw& flaw : flaws(model)) r.problem_here(flaw.field + ": " + flaw.what);
  return model;
}

Result<Transformer> load_model_file(const std::filesystem::path& file) {
  const Result<JsonDocument> document = parse_json_file(file, "models/" + file.filename().string());
  if (!document) return document.error();
  Problems problems;
  JsonReader reader(*document, problems);
  Transformer model = read_model(reader, file.stem().string());
  if (!problems.empty()) return problems;
  return model;
}

std::vector<std::filesystem::path> model_files(const std::filesystem::path& root,
                                               Problems& problems) {
  std::vector<std::filesystem::path> files = json_files(root / "models", problems);
  std::erase_if(files, [](const auto& file) {
    return file.filename() == aliases_file || file.filename() == unsupported_file;
  });
  return files;
}

}  // namespace

Result<std::vector<Transformer>> load_models(const std::filesystem::path& root) {
  Problems problems;
  std::vector<Transformer> models;
  for (const std::filesystem::path& file : model_files(root, problems)) {
    if (auto model = load_model_file(file))
      models.push_back(*std::move(model));
    else
      add_problems(problems, model.error());
  }
  if (!problems.empty()) return problems;
  std::sort(models.begin(), models.end(),
            [](const Transformer& a, const Transformer& b) { return a.id < b.id; });
  return models;
}

Result<Transformer> load_model(const std::filesystem::path& root, const std::string& id) {
  return load_model_file(root / "models" / (id + ".json"));
}

std::optional<std::string> find_model_file(const std::filesystem::path& root, std::string_view name,
                                           const ModelAliases& aliases) {
  Problems unlisted;
  std::vector<std::string> ids;
  for (const std::filesystem::path& file : model_files(root, unlisted))
    ids.push_back(file.stem().string());
  return model_id_meant(name, ids, aliases);
}

Result<ModelAliases> load_model_aliases(const std::filesystem::path& root) {
  const std::string name = "models/" + std::string(aliases_file);
  const Result<JsonDocument> document = parse_json_file(root / "models" / aliases_file, name);
  if (!document) return document.error();
  Problems problems;
  JsonReader reader(*document, problems);
  JsonReader aliases = reader.object("aliases");
  ModelAliases out;
  for (const std::string& alias : aliases.keys()) out[alias] = aliases.text(alias);
  reader.provenance();
  reader.finish();
  if (!problems.empty()) return problems;
  return out;
}

}  // namespace shardwise
