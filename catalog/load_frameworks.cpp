#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catalog/framework.hpp"
#include "catalog/framework_groups.hpp"
#include "catalog/framework_names.hpp"
#include "catalog/framework_row.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/names.hpp"
#include "catalog/optimizer.hpp"

namespace shardwise {
namespace framework_groups {

constexpr std::int64_t most_bytes = 10'000'000'000'000;

std::optional<DType> maybe_dtype(JsonReader& r, std::string_view key) {
  const auto found = r.choice_index(key, names_in(dtype_rows), false);
  if (!found) return std::nullopt;
  return dtype_rows[*found].dtype;
}

DType read_dtype(JsonReader& r, std::string_view key) {
  if (!r.has(key)) r.problem(key, "a number format");
  return maybe_dtype(r, key).value_or(DType::bf16);
}

Bytes read_bytes(JsonReader& r, std::string_view key) {
  return Bytes(r.integer64(key, 0, most_bytes));
}

}  // namespace framework_groups

namespace {

Method method_of(JsonReader& r) {
  const auto method = method_named(r.text("method"));
  if (!method) r.problem("method", "name of a method");
  return method.value_or(Method::full);
}

void read_names(JsonReader& r, Framework& f) {
  f.id = r.text("id");
  f.name = r.text("name");
  f.family = r.maybe_text("family").value_or(f.id);
  f.match = r.texts("match");
  f.is_engine = r.maybe_flag("is_engine").value_or(false);
  f.match_trainer = r.texts("match_trainer");
  f.refines = r.maybe_text("refines").value_or("");
  f.match_note = r.texts("match_note");
  f.with_zero = r.maybe_text("with_zero").value_or("");
  for (JsonReader& alone : r.objects("with_zero_alone")) {
    f.with_zero_alone.push_back({method_of(alone), alone.integer("stage", 1, 3)});
    alone.finish();
  }
  f.in_fp32 = r.maybe_text("in_fp32").value_or("");
  if (r.has("version")) f.version = r.maybe_text("version").value_or("");
  for (const std::string& word : f.match_trainer)
    if (!f.is_engine || std::find(f.match.begin(), f.match.end(), word) == f.match.end())
      r.problem("match_trainer", "words of an engine's match");
  for (const std::string& word : f.match)
    if (std::any_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      r.problem("match", "lower-case words");
}

FrameworkDefaults read_defaults(JsonReader& r) {
  FrameworkDefaults defaults;
  defaults.compute = framework_groups::read_dtype(r, "compute");
  defaults.compute_unsharded = framework_groups::maybe_dtype(r, "compute_unsharded");
  defaults.optimizer = r.text("optimizer");
  if (optimizer_named(defaults.optimizer) == nullptr)
    r.problem("optimizer", "the name of an optimizer");
  defaults.zero_stage = r.integer("default_zero_stage", 0, 3);
  defaults.microbatch = r.maybe_integer("default_microbatch", 1, 1'000'000);
  defaults.sequence = r.maybe_integer("default_sequence", 1, 100'000'000);
  defaults.vocabulary = r.maybe_integer("default_vocabulary", 1, 100'000'000);
  defaults.dropout = r.flag("default_dropout");
  defaults.lengths_vary = r.maybe_flag("lengths_vary").value_or(false);
  defaults.cuts_samples = r.maybe_flag("cuts_samples").value_or(false);
  return defaults;
}

FrameworkReports read_reports(JsonReader& r) {
  FrameworkReports reports;
  reports.memory = r.choice("memory_reported_as", memory_kind_names);
  reports.stage = r.choice("memory_of_stage", memory_stage_names);
  return reports;
}

FrameworkSupport read_supports(JsonReader& r) {
  FrameworkSupport supports;
  std::vector<Method>& methods = supports.methods;
  for (const std::string& text : r.texts("methods")) {
    const auto method = method_named(text);
    if (!method || std::find(methods.begin(), methods.end(), *method) != methods.end())
      r.problem("methods", "names of methods, each once");
    else
      methods.push_back(*method);
  }
  supports.tensor = r.flag("supports_tensor");
  supports.pipeline = r.flag("supports_pipeline");
  supports.context = r.flag("supports_context");
  supports.expert = r.flag("supports_expert");
  supports.max_zero_stage = r.integer("max_zero_stage", 0, 3);
  supports.least_zero_stage = r.maybe_integer("least_zero_stage", 1, 3).value_or(1);
  supports.schedules = r.texts("schedules");
  return supports;
}

}  // namespace

Framework read_framework(JsonReader& r) {
  Framework f;
  read_names(r, f);
  f.formats = framework_groups::read_formats(r);
  f.gradients = framework_groups::read_gradients(r);
  f.sharding = framework_groups::read_sharding(r);
  f.update = framework_groups::read_update(r);
  f.parallel = framework_groups::read_parallel(r);
  f.layers = framework_groups::read_layers(r);
  f.attention = framework_groups::read_attention(r);
  f.experts = framework_groups::read_experts(r);
  f.narrow = framework_groups::read_narrow(r);
  f.recompute = framework_groups::read_recompute(r);
  f.loss = framework_groups::read_loss(r);
  f.adapters = framework_groups::read_adapters(r);
  f.quantized = framework_groups::read_quantized(r);
  f.loading = framework_groups::read_loading(r);
  f.process = framework_groups::read_process(r);
  f.host = framework_groups::read_host(r);
  f.defaults = read_defaults(r);
  f.reports = read_reports(r);
  f.supports = read_supports(r);
  f.fitted = fitted_fields(r);
  f.provenance = r.provenance();
  r.ignore("notes");
  r.ignore("like");  // what it has from another row is there already
  return f;
}

}  // namespace shardwise
