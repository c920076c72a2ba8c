#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/denial.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/model_words.hpp"
#include "catalog/names.hpp"
#include "catalog/run_fields.hpp"
#include "catalog/run_record.hpp"
#include "catalog/source_date.hpp"
#include "catalog/text_file.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr int many = 100'000'000;  // more experts or layers than anything has

RunModel::Experts read_run_experts(RunFields r) {
  RunModel::Experts moe;
  moe.experts = r.count("experts");
  moe.top_k = r.count("top_k");
  moe.expert_ffn = r.count("expert_ffn");
  moe.shared_experts = r.integer("shared_experts", 0, many);
  moe.dense_layers = r.integer("dense_layers", 0, many);
  return moe;
}

// All widths are needed but that of queries, which may be projected plainly: the first that is
// missing is a problem of the record.
std::optional<LatentAttention> read_run_latent(RunFields r) {
  LatentAttention mla;
  mla.q_lora_rank = r.count("q_lora_rank");
  const char* missing = nullptr;
  const auto width = [&](const char* key) {
    const auto told = r.count(key);
    if (!told && missing == nullptr) missing = key;
    return told.value_or(0);
  };
  mla.kv_lora_rank = width("kv_lora_rank");
  mla.qk_nope_head_dim = width("qk_nope_head_dim");
  mla.qk_rope_head_dim = width("qk_rope_head_dim");
  mla.v_head_dim = width("v_head_dim");
  if (missing == nullptr) return mla;
  r.reader().problem(missing, "a whole number from 1, as latent attention has one");
  return std::nullopt;
}

// Where a record is being read: its problems make it malformed, its notes tell what was not read.
struct RecordPlace {
  Problems& problems;
  std::vector<std::string>& notes;
  RunFields fields(JsonReader& r, const char* object) const { return {r, problems, notes, object}; }
};

// Nothing, with a note, where it is none of `words`.
template <class E, std::size_t n>
std::optional<E> read_word(RunFields& r, std::string_view key, const Choices<E, n>& words) {
  const auto text = r.text(key);
  if (!text) return std::nullopt;
  std::vector<std::string_view> expected;
  for (const auto& [word, meaning] : words) {
    if (lowered(*text) == word) return meaning;
    expected.push_back(word);
  }
  r.unclear(key, joined(expected));
  return std::nullopt;
}

RunModel read_run_model(RunFields r, const RecordPlace& place) {
  RunModel m;
  m.name = r.text("name").value_or("");
  m.hf_id = r.text("hf_id").value_or("");
  m.layers = r.count("layers");
  m.hidden = r.count("hidden");
  m.heads = r.count("heads");
  m.kv_heads = r.count("kv_heads");
  m.head_dim = r.count("head_dim");
  m.ffn = r.count("ffn");
  m.vocab = r.count("vocab");
  m.gated_mlp = r.flag("gated_mlp");
  m.tied_embeddings = r.flag("tied_embeddings");
  m.value_embeddings = r.count("value_embeddings");
  m.narrow_tables = r.flag("narrow_tables").value_or(false);
  m.caps_logits = r.flag("caps_logits").value_or(false);
  m.position = read_word(r, "position", position_kinds);
  m.norm = read_word(r, "norm", norm_kinds);
  m.qk_norm = read_word(r, "qk_norm", qk_norms);
  m.norms_per_layer = r.integer("norms_per_layer", 2, 4);
  m.biases = r.flag("biases");
  if (auto moe = r.object("moe")) {
    const RunModel::Experts told = read_run_experts(place.fields(*moe, "model.moe"));
    if (told.experts || told.top_k || told.expert_ffn) m.moe = told;
  }
  if (auto mla = r.object("mla")) m.mla = read_run_latent(place.fields(*mla, "model.mla"));
  return m;
}

RunHardware read_run_hardware(RunFields r) {
  RunHardware h;
  h.gpu = r.text("gpu");
  h.intra_node = r.text("intra_node");
  h.inter_node = r.text("inter_node");
  h.gpus = r.count("gpus");
  h.gpus_per_node = r.count("gpus_per_node");
  const auto nodes = r.count("nodes");
  if (!h.gpus && nodes && h.gpus_per_node && *nodes <= many_of_them / *h.gpus_per_node)
    h.gpus = *nodes * *h.gpus_per_node;
  if (const auto gib_of_ram = r.number("host_ram_gib", 1e-3, 1e9))
    h.host_ram = ceil_bytes(*gib_of_ram * 1024 * 1024 * 1024);
  h.power_limit_w = r.count("power_limit_w");
  h.peer_access = r.flag("peer_access");
  if (const auto gib = r.number("usable_gib", 1e-3, 1e6))
    h.usable = ceil_bytes(*gib * 1024 * 1024 * 1024);
  return h;
}

void read_method(RunFields& r, RunTraining& t) {
  t.method = r.text("method").value_or("");
  t.lora_rank = r.count("lora_rank");
  t.lora_dropout = r.number("lora_dropout", 0, 1);
  t.lora_targets = r.text("lora_targets");
  t.trainable_params = r.integer64("trainable_params", 0, 1'000'000'000'000'000);
  t.quantize = r.text("quantize");
  if (!t.quantize) t.quantize = r.text("base_quant");
  t.double_quant = r.flag("double_quant");
}

// "flash", "flashattention2", "fa", "fa2", in lower case.
bool names_flash(std::string_view word) {
  return word.rfind("flash", 0) == 0 || word == "fa" ||
         (word.size() > 2 && word.rfind("fa", 0) == 0 && is_digit(word[2]));
}

// What `text`, in lower case, says of the kernels of FlashAttention, whatever they are called.
Said said_of_flash(std::string_view text) {
  Said said = Said::nothing;
  for (auto at = text.begin(); at != text.end() && said != Said::affirmed;) {
    const auto end = std::find_if_not(at, text.end(), is_word_character);
    const std::string_view word(at, end);
    if (names_flash(word)) said = said_of(text, word);
    at = end == text.end() ? end : end + 1;
  }
  return said;
}

// A flag that may name the kernel instead: "fa2", "eager". One that names both says neither.
std::optional<bool> read_flash_attention(RunFields& r) {
  constexpr const char* key = "flash_attention";
  if (r.reader().kind(key) != JsonKind::text) return r.flag(key);
  const std::string kernel = lowered(r.text(key).value_or(""));
  const Said flash = said_of_flash(kernel);
  const bool eager = said_of(kernel, "eager") == Said::affirmed;
  if (flash == Said::affirmed && !eager) return true;
  if (flash == Said::denied || (flash == Said::nothing && eager)) return false;
  return r.flag(key);
}

// A flag that may be the rate instead, which may be zero.
std::optional<bool> read_dropout(RunFields& r) {
  if (const auto rate = r.reader().kind("dropout") == JsonKind::text
                            ? number_told(r.text("dropout").value_or(""))
                            : std::nullopt)
    return *rate > 0;
  return r.flag("dropout");
}

// A count of tokens, which is spoken of in units of 1,024: "8k", "128K tokens".
std::optional<int> read_length(RunFields& r) {
  if (r.kind("seq_len") != JsonKind::text) return r.count("seq_len");
  const std::string text = lowered(r.text("seq_len").value_or(""));
  const std::size_t k = text.find_first_not_of("0123456789 ");
  const bool spoken = k != std::string::npos && k > 0 && k <= 4 && text[k] == 'k' &&
                      (k + 1 == text.size() || !is_word_character(text[k + 1])) &&
                      text.find_first_of("0123456789", k) == std::string::npos;
  const auto thousands = spoken ? number_told(text.substr(0, k)) : std::nullopt;
  if (!thousands || *thousands < 1) return r.count("seq_len");
  return static_cast<int>(*thousands) * 1024;
}

RunTraining read_run_training(RunFields& r) {
  RunTraining t;
  read_method(r, t);
  t.sequence = read_length(r);
  t.micro_batch = r.count("micro_batch");
  t.global_batch = r.count("global_batch");
  t.grad_accum = r.count("grad_accum");
  t.precision = r.text("precision");
  t.compute_dtype = r.text("compute_dtype");
  t.grad_dtype = r.text("grad_dtype");
  t.reduce_dtype = r.text("reduce_dtype");
  t.fused_optimizer = r.flag("fused_optimizer");
  t.dropout = read_dropout(r);
  t.optimizer = r.text("optimizer");
  t.recompute = r.text("recompute");
  t.framework = r.text("framework");
  t.objective = r.text("objective");
  t.framework_note = r.text("framework_note");
  t.flash_attention = read_flash_attention(r);
  t.compile = r.flag("compile");
  t.compile_loss = r.flag("compile_loss");
  t.liger_kernel = r.flag("liger_kernel");
  t.activation_offloading = r.flag("activation_offloading");
  t.packing = r.flag("packing");
  t.plugins = r.texts("plugins");
  t.loss_slice_tokens = r.count("loss_slice_tokens");
  return t;
}

// What FSDP and DDP call ZeRO's stages (PyTorch torch/distributed/fsdp/api.py, ShardingStrategy),
// with blanks and hyphens as underscores.
struct ShardingWord {
  std::string_view text;
  int stage;
  std::optional<int> fsdp_version = std::nullopt;
};
constexpr std::array<ShardingWord, 12> sharding_words{{
    {"ddp", 0},
    {"no_shard", 0},
    {"distributed_optimizer", 1},
    {"shard_grad_op", 2},
    {"fsdp", 3},
    {"fsdp1", 3, 1},
    {"fsdp2", 3, 2},
    {"fsdpv2", 3, 2},
    {"full_shard", 3},
    {"fully_shard", 3, 2},
    {"hybrid_shard", 3},
    {"hsdp", 3},
}};

// "ZeRO-3", "stage 2" and "3" are numbers, "FSDP2" is a name.
void read_sharding(RunFields& r, RunPlan& p) {
  if (r.kind("zero") == JsonKind::text) {
    std::string text = lowered(r.text("zero").value_or(""));
    for (char& c : text)
      if (c == ' ' || c == '-') c = '_';
    const bool numbered = text.find("zero") != std::string::npos && number_told(text);
    const ShardingWord* word = numbered ? nullptr : longest_match(sharding_words, text);
    if (word != nullptr && said_of(text, word->text) == Said::affirmed) {
      p.zero = word->stage;
      if (!p.fsdp_version) p.fsdp_version = word->fsdp_version;
      return;
    }
  }
  p.zero = r.integer("zero", 0, 3);
}

RunPlan read_plan(RunFields& r) {
  RunPlan p;
  p.dp = r.count("dp");
  p.tp = r.count("tp");
  p.pp = r.count("pp");
  p.vpp = r.count("vpp");
  p.cp = r.count("cp");
  p.ep = r.count("ep");
  p.etp = r.count("etp");
  p.hsdp_shard = r.count("hsdp_shard");
  p.fsdp_version = r.integer("fsdp_version", 1, 2);
  read_sharding(r, p);
  p.fsdp_units_per_block = r.integer("fsdp_units_per_block", 1, 1000);
  p.sp = r.flag("sp");
  p.async_tp = r.flag("async_tp");
  p.schedule = r.text("schedule");
  p.offload = r.text("offload");
  for (const double n : r.reader().numbers("layers_per_stage")) {
    p.layers_per_stage.push_back(static_cast<int>(n));
    if (n < 0 || n != p.layers_per_stage.back())
      r.reader().problem("layers_per_stage", "whole numbers");
  }
  return p;
}

// Bytes by category, in GiB; absent: nothing.
std::map<std::string, double> categories(RunFields& r, const char* key, const RecordPlace& place) {
  std::map<std::string, double> out;
  auto part = r.object(key);
  if (!part) return out;
  RunFields fields = place.fields(*part, key);
  for (const std::string& name : part->keys())
    if (const auto value = fields.number(name, 0, 1e9)) out[name] = *value;
  return out;
}

// A mark is a reason in words, and there is none where it is empty or false.
bool marked(RunFields& r, const char* key) {
  if (r.reader().kind(key) == JsonKind::boolean) return r.flag(key).value_or(false);
  return !r.text(key).value_or("").empty();
}

RunMeasured read_measured(RunFields r, const RecordPlace& place) {
  RunMeasured m;
  if (const auto seconds = r.measurement("step_time_s")) m.step_time = Seconds(*seconds);
  m.samples_per_s = r.measurement("samples_per_s");
  m.tokens_per_s = r.measurement("tokens_per_s");
  m.tokens_per_s_per_gpu = r.measurement("tokens_per_s_per_gpu");
  m.peak_mem_gib = r.measurement("peak_mem_gib");
  m.breakdown_gib = categories(r, "breakdown_gib", place);
  m.after_forward_gib = categories(r, "after_forward_gib", place);
  m.mem_kind = r.text("mem_kind").value_or("");
  m.outcome = r.text("outcome").value_or("");
  m.time_suspect = marked(r, "time_suspect");
  m.mem_suspect = marked(r, "mem_suspect");
  m.oom_suspect = marked(r, "oom_suspect");
  return m;
}

// Its words come before the document or the thread (Reading::documents, threads).
void date_by_words(RunFields source, RunRecord& run) {
  for (const char* key : {"url_title", "where", "file", "url"})
    if (const auto date = date_told(source.text(key).value_or("")))
      return date_framework(run, date);
}

RunSource read_source(RunFields r) {
  const auto told = [&](const char* key) { return r.text(key).value_or(""); };
  return {told("repo"), told("file"), told("where"), told("url")};
}

// Kernel and network sweeps share the files' shape but have no model.
bool is_microbenchmark(const JsonReader& r) { return !r.has("model") && r.has("kind"); }

// The model's name may stand for the object.
RunModel read_named_model(RunFields& r, const RecordPlace& place) {
  if (r.reader().kind("model") != JsonKind::text) {
    JsonReader model = r.reader().object("model");
    return read_run_model(place.fields(model, "model"), place);
  }
  RunModel m;
  m.name = r.text("model").value_or("");
  return m;
}

RunRecord read_record(JsonReader& reader, Problems& problems) {
  RunRecord run;
  const RecordPlace place{problems, run.unread};
  RunFields r = place.fields(reader, "");
  run.id = reader.kind("id") == JsonKind::integer ? r.text("id").value_or("") : reader.text("id");
  run.notes = r.text("notes").value_or("");
  auto source = reader.kind("source") == JsonKind::object ? r.object("source") : std::nullopt;
  if (source) run.read_in = read_source(place.fields(*source, "source"));
  run.script = run.read_in.file;
  run.microbenchmark = is_microbenchmark(reader);
  if (run.microbenchmark) return run;
  run.model = read_named_model(r, place);
  if (auto part = r.object("hardware"))
    run.hardware = read_run_hardware(place.fields(*part, "hardware"));
  if (auto part = r.object("training")) {
    RunFields fields = place.fields(*part, "training");
    run.training = read_run_training(fields);
    fields.keep_unread();
  }
  if (source) date_by_words(place.fields(*source, "source"), run);
  if (auto part = r.object("plan")) {
    RunFields fields = place.fields(*part, "plan");
    run.plan = read_plan(fields);
    fields.keep_unread();
  }
  if (auto part = r.object("measured"))
    run.measured = read_measured(place.fields(*part, "measured"), place);
  return run;
}

// NaN and infinities, which Python writes where there is no number and JSON does not have, as null.
std::string without_missing_numbers(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\' && at + 1 < text.size()) {
      out += {c, text[++at]};
      continue;
    }
    const auto begins = [&](std::string_view word) { return text.substr(at, word.size()) == word; };
    const std::size_t length = quoted                ? 0
                               : begins("NaN")       ? 3
                               : begins("Infinity")  ? 8
                               : begins("-Infinity") ? 9
                                                     : 0;
    if (length == 0) {
      out += c;
      continue;
    }
    out += "null";
    at += length - 1;
  }
  return out;
}

Result<JsonDocument> parse_records(const std::filesystem::path& file, const std::string& called) {
  auto document = parse_json_file(file, called);
  if (document) return document;
  const auto text = read_text_file(file, called, json_max_bytes);
  if (!text ||
      (text->find("NaN") == std::string::npos && text->find("Infinity") == std::string::npos))
    return document;
  return parse_json(without_missing_numbers(*text), called);
}

}  // namespace

Result<Runs> load_runs(const std::filesystem::path& file, const std::string& called) {
  const auto document = parse_records(file, called);
  if (!document) return document.error();
  if (document->at(0).kind != JsonKind::array)
    return Problem{ProblemKind::file, document->name,
                   "expected an array of records, found " + document->shown(0)};
  Runs runs;
  for (const JsonIndex node : document->children(0)) {
    Problems problems;
    JsonReader r(*document, node, problems);
    RunRecord run;
    if (document->at(node).kind == JsonKind::object) run = read_record(r, problems);
    run.source = file.stem().string();
    if (!problems.empty()) run.malformed = problems.front().where + ": " + problems.front().what;
    runs.records.push_back(std::move(run));
    runs.problems.insert(runs.problems.end(), problems.begin(), problems.end());
  }
  return runs;
}

Result<Runs> load_runs(const std::filesystem::path& file) { return load_runs(file, file.string()); }

Result<Runs> load_all_runs(const std::filesystem::path& root) {
  Runs all;
  Problems problems;
  for (const auto& path : json_files(root / "runs", problems)) {
    auto runs = load_runs(path, "runs/" + path.filename().string());
    if (!runs) {
      add_problems(problems, runs.error());
      continue;
    }
    std::copy_if(std::make_move_iterator(runs->records.begin()),
                 std::make_move_iterator(runs->records.end()), std::back_inserter(all.records),
                 [](const RunRecord& r) { return !r.microbenchmark; });
    all.problems.insert(all.problems.end(), runs->problems.begin(), runs->problems.end());
  }
  if (!problems.empty()) return problems;
  return all;
}

}  // namespace shardwise
