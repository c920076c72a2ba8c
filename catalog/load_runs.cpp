#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>

#include "catalog/json_reader.hpp"
#include "catalog/run_record.hpp"
#include "catalog/source_date.hpp"
#include "catalog/text_file.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr int many = 100'000'000;  // more GPUs, layers or sequences than anything has

std::optional<int> maybe_count(JsonReader& r, std::string_view key) {
  return r.maybe_integer(key, 1, many);
}

// A measurement; zero means that there was none.
std::optional<double> measurement(JsonReader& r, std::string_view key) {
  const auto value = r.maybe_number(key, 0, 1e18);
  if (value && *value == 0) return std::nullopt;
  return value;
}

RunModel::Experts read_run_experts(JsonReader r) {
  RunModel::Experts moe;
  moe.experts = r.integer("experts", 1, many);
  moe.top_k = r.integer("top_k", 1, many);
  moe.expert_ffn = maybe_count(r, "expert_ffn");
  moe.shared_experts = r.maybe_integer("shared_experts", 0, many);
  moe.dense_layers = r.maybe_integer("dense_layers", 0, many);
  return moe;
}

RunModel read_run_model(JsonReader r) {
  RunModel m;
  m.name = r.maybe_text("name").value_or("");
  m.hf_id = r.maybe_text("hf_id").value_or("");
  m.layers = maybe_count(r, "layers");
  m.hidden = maybe_count(r, "hidden");
  m.heads = maybe_count(r, "heads");
  m.kv_heads = maybe_count(r, "kv_heads");
  m.head_dim = maybe_count(r, "head_dim");
  m.ffn = maybe_count(r, "ffn");
  m.vocab = maybe_count(r, "vocab");
  m.gated_mlp = r.maybe_flag("gated_mlp");
  m.tied_embeddings = r.maybe_flag("tied_embeddings");
  m.value_embeddings = maybe_count(r, "value_embeddings");
  m.narrow_tables = r.maybe_flag("narrow_tables").value_or(false);
  if (auto moe = r.maybe_object("moe")) m.moe = read_run_experts(*moe);
  return m;
}

RunHardware read_run_hardware(JsonReader r) {
  RunHardware h;
  h.gpu = r.maybe_text("gpu");
  h.intra_node = r.maybe_text("intra_node");
  h.inter_node = r.maybe_text("inter_node");
  h.gpus = maybe_count(r, "gpus");
  h.gpus_per_node = maybe_count(r, "gpus_per_node");
  if (const auto gib_of_ram = r.maybe_number("host_ram_gib", 1e-3, 1e9))
    h.host_ram = ceil_bytes(*gib_of_ram * 1024 * 1024 * 1024);
  h.power_limit_w = maybe_count(r, "power_limit_w");
  h.peer_access = r.maybe_flag("peer_access");
  return h;
}

void read_method(JsonReader& r, RunTraining& t) {
  t.method = r.maybe_text("method").value_or("");
  t.lora_rank = maybe_count(r, "lora_rank");
  t.lora_dropout = r.maybe_number("lora_dropout", 0, 1);
  t.lora_targets = r.maybe_text("lora_targets");
  t.trainable_params = r.maybe_integer64("trainable_params", 0, 1'000'000'000'000'000);
  t.quantize = r.maybe_text("quantize");
  if (!t.quantize) t.quantize = r.maybe_text("base_quant");
  t.double_quant = r.maybe_flag("double_quant");
}

RunTraining read_run_training(JsonReader& r) {
  RunTraining t;
  read_method(r, t);
  t.sequence = maybe_count(r, "seq_len");
  t.micro_batch = maybe_count(r, "micro_batch");
  t.global_batch = maybe_count(r, "global_batch");
  t.grad_accum = maybe_count(r, "grad_accum");
  t.precision = r.maybe_text("precision");
  t.compute_dtype = r.maybe_text("compute_dtype");
  t.grad_dtype = r.maybe_text("grad_dtype");
  t.reduce_dtype = r.maybe_text("reduce_dtype");
  t.fused_optimizer = r.maybe_flag("fused_optimizer");
  t.dropout = r.maybe_flag("dropout");
  t.optimizer = r.maybe_text("optimizer");
  t.recompute = r.maybe_text("recompute");
  t.framework = r.maybe_text("framework");
  t.objective = r.maybe_text("objective");
  t.framework_note = r.maybe_text("framework_note");
  t.flash_attention = r.maybe_flag("flash_attention");
  t.compile = r.maybe_flag("compile");
  t.compile_loss = r.maybe_flag("compile_loss");
  t.liger_kernel = r.maybe_flag("liger_kernel");
  t.activation_offloading = r.maybe_flag("activation_offloading");
  t.packing = r.maybe_flag("packing");
  t.plugins = r.texts("plugins");
  return t;
}

RunPlan read_plan(JsonReader& r) {
  RunPlan p;
  p.dp = maybe_count(r, "dp");
  p.tp = maybe_count(r, "tp");
  p.pp = maybe_count(r, "pp");
  p.vpp = maybe_count(r, "vpp");
  p.cp = maybe_count(r, "cp");
  p.ep = maybe_count(r, "ep");
  p.etp = maybe_count(r, "etp");
  p.zero = r.maybe_integer("zero", 0, 3);
  p.hsdp_shard = maybe_count(r, "hsdp_shard");
  p.fsdp_version = r.maybe_integer("fsdp_version", 1, 2);
  p.fsdp_units_per_block = r.maybe_integer("fsdp_units_per_block", 1, 1000);
  p.sp = r.maybe_flag("sp");
  p.async_tp = r.maybe_flag("async_tp");
  p.schedule = r.maybe_text("schedule");
  p.offload = r.maybe_text("offload");
  for (const double n : r.numbers("layers_per_stage")) {
    p.layers_per_stage.push_back(static_cast<int>(n));
    if (n < 0 || n != p.layers_per_stage.back()) r.problem("layers_per_stage", "whole numbers");
  }
  return p;
}

// Bytes by category, in GiB; absent: nothing.
std::map<std::string, double> categories(JsonReader& r, std::string_view key) {
  std::map<std::string, double> out;
  auto part = r.maybe_object(key);
  if (!part) return out;
  for (const std::string& name : part->keys())
    if (const auto value = part->maybe_number(name, 0, 1e9)) out[name] = *value;
  return out;
}

RunMeasured read_measured(JsonReader r) {
  RunMeasured m;
  if (const auto seconds = measurement(r, "step_time_s")) m.step_time = Seconds(*seconds);
  m.samples_per_s = measurement(r, "samples_per_s");
  m.tokens_per_s = measurement(r, "tokens_per_s");
  m.tokens_per_s_per_gpu = measurement(r, "tokens_per_s_per_gpu");
  m.peak_mem_gib = measurement(r, "peak_mem_gib");
  m.breakdown_gib = categories(r, "breakdown_gib");
  m.after_forward_gib = categories(r, "after_forward_gib");
  m.mem_kind = r.maybe_text("mem_kind").value_or("");
  m.outcome = r.maybe_text("outcome").value_or("");
  m.time_suspect = r.has("time_suspect");
  m.mem_suspect = r.has("mem_suspect");
  m.oom_suspect = r.has("oom_suspect");
  return m;
}

// A framework of which a record tells neither release nor year is as old as its source says.
void date_by_source(JsonReader& source, RunTraining& t) {
  const std::string note = t.framework_note.value_or("");
  if (std::any_of(note.begin(), note.end(), is_digit)) return;
  for (const char* key : {"url_title", "where", "file", "url"})
    if (const auto date = date_told(source.maybe_text(key).value_or(""))) {
      t.framework_note = note.empty() ? *date : note + ", " + *date;
      return;
    }
}

// Kernel and network sweeps share the files' shape but have no model.
bool is_microbenchmark(const JsonReader& r) { return !r.has("model") && r.has("kind"); }

RunRecord read_record(JsonReader& r) {
  RunRecord run;
  run.id = r.text("id");
  run.notes = r.maybe_text("notes").value_or("");
  if (auto source = r.maybe_object("source")) run.script = source->maybe_text("file").value_or("");
  run.microbenchmark = is_microbenchmark(r);
  if (run.microbenchmark) return run;
  run.model = read_run_model(r.object("model"));
  if (auto part = r.maybe_object("hardware")) run.hardware = read_run_hardware(*part);
  const auto keep_unread = [&run](const char* object, const JsonReader& part) {
    for (const std::string& words : part.unread())
      run.unread.push_back(std::string(object) + '.' + words);
  };
  if (auto part = r.maybe_object("training")) {
    run.training = read_run_training(*part);
    keep_unread("training", *part);
  }
  if (auto source = r.maybe_object("source")) date_by_source(*source, run.training);
  if (auto part = r.maybe_object("plan")) {
    run.plan = read_plan(*part);
    keep_unread("plan", *part);
  }
  if (auto part = r.maybe_object("measured")) run.measured = read_measured(*part);
  return run;
}

}  // namespace

Result<Runs> load_runs(const std::filesystem::path& file, const std::string& called) {
  const auto document = parse_json_file(file, called);
  if (!document) return document.error();
  if (document->at(0).kind != JsonKind::array)
    return Problem{ProblemKind::file, document->name,
                   "expected an array of records, found " + document->shown(0)};
  Runs runs;
  for (const JsonIndex node : document->children(0)) {
    Problems problems;
    JsonReader r(*document, node, problems);
    RunRecord run;
    if (document->at(node).kind == JsonKind::object) run = read_record(r);
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
      problems.insert(problems.end(), runs.error().begin(), runs.error().end());
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
