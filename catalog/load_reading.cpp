#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "catalog/framework_names.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/model_words.hpp"
#include "catalog/names.hpp"
#include "catalog/reading.hpp"
#include "catalog/run_record.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr Spellings<IntraLink, 6> intra_link_names{{
    {"nvswitch", IntraLink::nvswitch},
    {"nvlink-mesh", IntraLink::nvlink_mesh},
    {"nvlink-pairs", IntraLink::nvlink_pairs},
    {"nvlink-fours", IntraLink::nvlink_fours},
    {"pcie-switch", IntraLink::pcie_switch},
    {"pcie-host", IntraLink::pcie_host},
}};
constexpr Spellings<PhraseReading::Where, 4> where_names{{
    {"notes", PhraseReading::Where::notes},
    {"framework_note", PhraseReading::Where::framework_note},
    {"model", PhraseReading::Where::model},
    {"script", PhraseReading::Where::script},
}};
constexpr Spellings<GraphScope, 6> graph_scope_names{{
    {"attn", GraphScope::attn},
    {"mlp", GraphScope::mlp},
    {"moe", GraphScope::moe},
    {"moe_router", GraphScope::moe_router},
    {"moe_preprocess", GraphScope::moe_preprocess},
    {"mamba", GraphScope::mamba},
}};
constexpr AdapterTargets no_targets{false, false, false, false, false, false, false, false, false};

// A row of a table of names (dtype_rows, method_rows, ...) by its name.
template <class Rows>
auto row_named(JsonReader& r, std::string_view key, const Rows& rows) {
  return rows[r.choice_index(key, names_in(rows), true).value_or(0)];
}

const OptimizerRow* optimizer(JsonReader& r) {
  const std::string name = r.text("optimizer");
  const OptimizerRow* row = optimizer_named(name);
  if (row == nullptr) r.problem("optimizer", "the name of an optimizer");
  return row;
}

const PreferenceRow* preference(JsonReader& r) {
  const std::string name = r.text("preference");
  const PreferenceRow* row = preference_named(name);
  if (row == nullptr) r.problem("preference", "the name of a kind of preference training");
  return row;
}

AdapterTargets targets(JsonReader& r) {
  AdapterTargets out = no_targets;
  for (const std::string& name : r.texts("targets")) {
    bool known = false;
    for (const auto& [spelled, member] : adapter_linears) {
      if (spelled != name) continue;
      out.*member = true;
      known = true;
    }
    if (!known) r.problem("targets", "names of linears");
  }
  return out;
}

GraphScopes scopes(JsonReader& r) {
  GraphScopes out;
  for (const std::string& name : r.texts("graph_scopes")) {
    const auto row = std::find_if(graph_scope_names.begin(), graph_scope_names.end(),
                                  [&](const auto& spelled) { return spelled.first == name; });
    if (row == graph_scope_names.end())
      r.problem("graph_scopes", "names of scopes of CUDA graphs");
    else
      out.add(row->second);
  }
  return out;
}

bool flag(JsonReader& r, std::string_view key) { return r.maybe_flag(key).value_or(false); }

NetworkReading read_network_reading(JsonReader& r) {
  NetworkReading n;
  n.text = r.text("text");
  n.network = r.text("network");
  n.nics = r.integer("nics", 1, 1024);
  n.nic_bandwidth = BytesPerSecond(r.number("nic_gbit_per_s", 0.001, 1e6) * 1e9 / 8);
  n.gpu = r.maybe_text("gpu").value_or("");
  n.assumed = r.maybe_text("assumed").value_or("");
  return n;
}

// What stands in the place of a framework row's own member.
void read_practices(JsonReader& r, PhraseReading& p) {
  for (const auto& [key, member] : stated_flags)
    if (const auto says = r.maybe_flag(key)) p.flags.emplace_back(member, *says);
  p.overlaps_reduction = r.maybe_flag("overlaps_reduction");
  p.overlaps_below_stage_3 = r.maybe_flag("overlaps_below_stage_3");
  p.clips = r.maybe_flag("clips");
  p.checks_gradients = r.maybe_flag("checks_gradients");
  p.checks_partition = r.maybe_flag("checks_partition");
  p.steps_one_by_one = r.maybe_flag("steps_one_by_one");
  p.bucket_elements = r.maybe_integer("bucket_elements", 1, 2'000'000'000);
  p.weight_cast = r.maybe_choice("weight_cast", weight_cast_names);
  p.narrow_weights = r.maybe_choice("narrow_weights", narrow_weights_names);
  p.dispatches_once = r.maybe_flag("dispatches_once");
  p.checkpoints_in_units = r.maybe_flag("checkpoints_in_units");
  p.compiles_sharding = r.maybe_flag("compiles_sharding");
  p.cudnn = maybe_release(r, "cudnn");
  p.four_bit_unpacking = r.maybe_choice("four_bit_unpacking", four_bit_unpacking_names);
  p.writes_grouped_attention_out = r.maybe_flag("writes_grouped_attention_out");
  p.reduces_every_microbatch = r.maybe_flag("reduces_every_microbatch");
  p.expandable_segments = r.maybe_flag("expandable_segments");
  p.whole_tables = r.maybe_flag("whole_tables");
  p.steps_in_backward = r.maybe_flag("steps_in_backward");
  p.attention = r.maybe_choice("attention", attention_kernel_names);
  p.delta_rule = r.maybe_choice("delta_rule", delta_rule_names);
  p.saved_for_backward = r.maybe_flag("saved_for_backward");
}

PhraseReading read_phrase(JsonReader& r) {
  PhraseReading p;
  p.where = r.choice("in", where_names);
  p.text = r.text("text");
  p.with_note = r.maybe_text("with_note").value_or("");
  p.with_gpu = r.maybe_text("with_gpu").value_or("");
  read_practices(r, p);
  p.vocab = r.maybe_integer("vocab", 1, 100'000'000);
  p.longest_sample = r.maybe_integer("longest_sample", 1, 100'000'000);
  p.dropout = r.maybe_flag("dropout");
  p.offload_activations = r.maybe_flag("offload_activations");
  p.memory_of_first_step = r.maybe_flag("memory_of_first_step");
  p.blocking_launches = r.maybe_flag("blocking_launches");
  p.shares_orthogonalization = r.maybe_flag("shares_orthogonalization");
  p.overlaps_experts = r.maybe_flag("overlaps_experts");
  p.pads_experts = r.maybe_flag("pads_experts");
  p.step_is_graph = r.maybe_flag("step_is_graph");
  p.zero_stage = r.maybe_integer("zero_stage", 0, 3);
  p.prediction_depths = r.maybe_integer("prediction_depths", 0, 64);
  p.memory_kind = r.maybe_choice("memory_kind", memory_kind_names);
  p.expert_ranks = r.maybe_integer("expert_ranks", 1, 100'000);
  p.expert_imbalance = r.maybe_number("expert_imbalance", 1, 1000);
  p.expert_spread = r.maybe_number("expert_spread", 0, 10);
  p.trained_router = r.maybe_flag("trained_router");
  p.precision = r.maybe_text("precision");
  if (r.has("graph_scopes")) p.graph_scopes = scopes(r);
  p.graph_scopes_follow = flag(r, "graph_scopes_follow");
  p.modules_follow = flag(r, "modules_follow");
  p.share_follows = flag(r, "share_follows");
  p.offloaded_layers_follow = flag(r, "offloaded_layers_follow");
  p.recompute = r.maybe_text("recompute");
  p.framework = r.maybe_text("framework");
  p.gpu = r.maybe_text("gpu");
  p.inter_node = r.maybe_text("inter_node");
  p.position = r.maybe_choice("position", position_kinds);
  p.context_kind = r.maybe_choice("context_kind", context_kind_names);
  p.fused_activation = r.maybe_flag("fused_activation");
  p.writes_activation_out = r.maybe_flag("writes_activation_out");
  p.writes_norms_out = r.maybe_flag("writes_norms_out");
  p.half_softmax = r.maybe_flag("half_softmax");
  p.clamps_scores = r.maybe_flag("clamps_scores");
  p.heads_apart = r.maybe_flag("heads_apart");
  p.liger_kernel = r.maybe_flag("liger_kernel");
  if (r.has("optimizer")) p.optimizer = optimizer(r);
  p.skip = r.maybe_text("skip");
  return p;
}

// Every object of the array `key`, each read by `read` and finished.
template <class Row, class Read>
void read_rows(JsonReader& r, std::string_view key, std::vector<Row>& rows, Read read) {
  for (JsonReader& each : r.objects(key)) {
    rows.push_back(read(each));
    each.finish();
  }
}

void read_hardware(JsonReader& r, Reading& out) {
  read_rows(r, "gpus", out.gpus, [](JsonReader& e) {
    return GpuReading{e.text("text"), e.text("gpu"), e.maybe_text("assumed").value_or(""),
                      e.maybe_integer("power_limit_w", 1, 10'000)};
  });
  read_rows(r, "networks", out.networks, read_network_reading);
  read_rows(r, "links", out.links, [](JsonReader& e) {
    return LinkReading{e.text("text"), e.choice("link", intra_link_names),
                       e.maybe_flag("where_unlinked").value_or(false)};
  });
  read_rows(r, "lanes", out.lanes, [](JsonReader& e) {
    return LaneReading{e.text("text"), e.integer("lanes", 1, 16)};
  });
  out.missing_gpu = r.text("missing_gpu");
}

void read_numbers(JsonReader& r, Reading& out) {
  read_rows(r, "methods", out.methods, [](JsonReader& e) {
    return MethodReading{
        e.text("text"), row_named(e, "method", method_rows).method, flag(e, "equivalent"),
        e.maybe_choice("input", adapter_input_names).value_or(AdapterInput::copied)};
  });
  read_rows(r, "precisions", out.precisions, [](JsonReader& e) {
    PrecisionReading row{e.text("text"), row_named(e, "compute", dtype_rows).dtype,
                         e.maybe_choice("weights", weight_recipe_names), std::nullopt};
    if (e.has("frozen")) row.frozen = row_named(e, "frozen", dtype_rows).dtype;
    return row;
  });
  read_rows(r, "fallbacks", out.fallbacks, [](JsonReader& e) {
    return FormatFallback{row_named(e, "format", dtype_rows).dtype,
                          row_named(e, "instead", dtype_rows).dtype, flag(e, "unstated")};
  });
  read_rows(r, "quantizations", out.quantizations, [](JsonReader& e) {
    QuantizationReading row{e.text("text"), std::nullopt};
    if (e.has("quantization"))
      row.quantization = row_named(e, "quantization", quantization_rows).quantization;
    return row;
  });
  read_rows(r, "memory_kinds", out.memory_kinds, [](JsonReader& e) {
    return MemoryKindReading{e.text("text"), e.choice("kind", memory_kind_names)};
  });
}

void read_training(JsonReader& r, Reading& out) {
  read_numbers(r, out);
  read_rows(r, "optimizers", out.optimizers, [](JsonReader& e) {
    return OptimizerReading{e.text("text"), optimizer(e)};
  });
  read_rows(r, "schedules", out.schedules, [](JsonReader& e) {
    return ScheduleReading{e.text("text"), e.text("schedule"), e.maybe_text("chunked").value_or(""),
                           flag(e, "layer_split")};
  });
  read_rows(r, "offloads", out.offloads, [](JsonReader& e) {
    return OffloadReading{e.text("text"), flag(e, "optimizer"), flag(e, "parameters"),
                          flag(e, "activations"), flag(e, "parameters_if_sharded")};
  });
  read_rows(r, "preferences", out.preferences, [](JsonReader& e) {
    return PreferenceReading{e.text("text"), preference(e)};
  });
  read_rows(r, "target_words", out.targets, [](JsonReader& e) {
    return TargetReading{e.text("word"), targets(e)};
  });
  read_rows(r, "recomputes", out.recomputes, [](JsonReader& e) {
    return RecomputeReading{e.text("text"), e.text("recompute")};
  });
  read_rows(r, "recompute_modules", out.recompute_modules, [](JsonReader& e) {
    return RecomputeReading{e.text("text"), e.text("module")};
  });
  read_rows(r, "graph_scopes", out.graph_scopes, [](JsonReader& e) {
    return GraphScopeReading{e.text("text"), e.maybe_choice("scope", graph_scope_names)};
  });
  read_rows(r, "plugins", out.plugins, [](JsonReader& e) {
    PluginReading row;
    row.text = e.text("text");
    row.loss = e.maybe_choice("loss", loss_kind_names);
    row.fuses_loss = e.maybe_flag("fuses_loss").value_or(false);
    row.kernels = e.maybe_choice("kernels", kernel_style_names);
    row.upcasts_unquantized = e.maybe_flag("upcasts_unquantized");
    row.masks_padding = e.maybe_flag("masks_padding");
    row.adds_head_slices_apart = e.maybe_flag("adds_head_slices_apart");
    row.overwrites_gate_and_up = e.maybe_flag("overwrites_gate_and_up");
    row.eager_activation = e.maybe_flag("eager_activation");
    return row;
  });
  JsonReader missing = r.object("missing_framework");
  out.pretrain_framework = missing.text("pretrain");
  out.finetune_framework = missing.text("finetune");
  missing.finish();
}

// "since": "2023-05", "first": the first number of that month and of each that follows.
DatedThreads read_threads(JsonReader& e) {
  DatedThreads threads;
  threads.repositories = e.texts("repos");
  const std::string since = e.text("since");
  const bool digits = since.size() == 7 && since[4] == '-' &&
                      std::count_if(since.begin(), since.end(), is_digit) == 6;
  if (digits) {
    threads.year = std::stoi(since.substr(0, 4));
    threads.month = std::stoi(since.substr(5));
  }
  if (!digits || threads.month < 1 || threads.month > 12) {
    e.problem("since", "a month, as 2023-05");
    return {};
  }
  for (const double number : e.numbers("first")) {
    if (!(number >= 1 && number <= 100'000'000)) {
      e.problem("first", "whole numbers from 1 to 100000000");
      return {};
    }
    threads.first.push_back(static_cast<int>(number));
  }
  if (!std::is_sorted(threads.first.begin(), threads.first.end()))
    e.problem("first", "numbers that never fall");
  return threads;
}

void read_sources(JsonReader& r, Reading& out) {
  read_rows(r, "documents", out.documents, [](JsonReader& e) {
    return DatedDocument{e.text("repo"), e.text("file"), e.text("date")};
  });
  read_rows(r, "threads", out.threads, read_threads);
}

template <class Read>
void read_tables(const std::filesystem::path& root, const std::string& name, Problems& problems,
                 Read read) {
  const auto document = parse_json_file(root / "reading" / name, "reading/" + name);
  if (!document) {
    add_problems(problems, document.error());
    return;
  }
  JsonReader r(*document, problems);
  read(r);
  r.provenance();
  r.finish();
}

// "q,k (train.py "all")" is "q,k": a remark stands in parentheses after a space.
std::string without_remarks(std::string_view text) {
  std::string out(text);
  for (auto open = out.find(" ("); open != std::string::npos; open = out.find(" (")) {
    const auto close = out.find(')', open);
    out.erase(open, close == std::string::npos ? close : close + 1 - open);
  }
  return out;
}

}  // namespace

Result<Reading> load_reading(const std::filesystem::path& root) {
  Reading out;
  Problems problems;
  read_tables(root, "hardware.json", problems, [&](JsonReader& r) { read_hardware(r, out); });
  read_tables(root, "training.json", problems, [&](JsonReader& r) { read_training(r, out); });
  read_tables(root, "phrases.json", problems,
              [&](JsonReader& r) { read_rows(r, "phrases", out.phrases, read_phrase); });
  read_tables(root, "sources.json", problems, [&](JsonReader& r) { read_sources(r, out); });
  auto unsupported = load_unsupported_frameworks(root);
  if (unsupported)
    out.unsupported = std::move(*unsupported);
  else
    add_problems(problems, unsupported.error());
  if (!problems.empty()) return problems;
  return out;
}

Result<Reading> load_training_words(const std::filesystem::path& root) {
  Reading out;
  Problems problems;
  read_tables(root, "training.json", problems, [&](JsonReader& r) { read_training(r, out); });
  if (!problems.empty()) return problems;
  return out;
}

void date_by_sources(const Reading& reading, std::vector<RunRecord>& runs) {
  for (RunRecord& run : runs)
    date_framework(run, date_of_source(reading.documents, reading.threads, run.read_in));
}

AdapterTargets targets_meant(const Reading& reading, std::string_view spoken) {
  const std::string text = without_remarks(spoken);
  AdapterTargets out = no_targets;
  const auto part_of_word = [](char c) { return is_word_character(c) || c == '_' || c == '-'; };
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if_not(at, text.end(), part_of_word);
    const std::string word(at, end);
    for (const TargetReading& row : reading.targets) {
      if (row.text.size() != word.size() || !holds_words(word, row.text)) continue;
      for (const auto& [name, member] : adapter_linears) out.*member |= row.targets.*member;
    }
    at = std::find_if(end, text.end(), part_of_word);
  }
  return out;
}

}  // namespace shardwise
