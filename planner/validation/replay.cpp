#include "planner/validation/replay.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "catalog/denial.hpp"
#include "catalog/text_match.hpp"
#include "planner/choice/stage_balance.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/validation/replay_parts.hpp"
#include "simulator/graphs/recompute_policy.hpp"

namespace shardwise {
namespace {

std::vector<const PhraseReading*> phrases_of(const RunRecord& run, const Reading& reading) {
  std::vector<const PhraseReading*> out;
  for (const PhraseReading& phrase : reading.phrases) {
    const std::string_view text =
        phrase.where == PhraseReading::Where::notes    ? std::string_view(run.notes)
        : phrase.where == PhraseReading::Where::model  ? std::string_view(run.model.name)
        : phrase.where == PhraseReading::Where::script ? std::string_view(run.script)
        : run.training.framework_note ? std::string_view(*run.training.framework_note)
                                      : std::string_view();
    const bool noted = phrase.with_note.empty() ||
                       holds_words(run.training.framework_note.value_or(""), phrase.with_note);
    const bool on_it =
        phrase.with_gpu.empty() ||
        holds_words(hyphened(run.hardware.gpu.value_or("")), hyphened(phrase.with_gpu));
    if (noted && on_it && holds_words(text, phrase.text)) out.push_back(&phrase);
  }
  return out;
}

// Which of the three figures the record's reading is.
MemoryKind memory_kind(const ReplayContext& c, const Framework& framework) {
  const MemoryKindReading* row = longest_match(c.reading.memory_kinds, c.run.measured.mem_kind);
  const MemoryKind told = stated(c, &PhraseReading::memory_kind).value_or(framework.reports.memory);
  const MemoryKind kind = row == nullptr ? told : row->kind;
  const bool first = stated(c, &PhraseReading::memory_of_first_step).value_or(false);
  return first && kind == MemoryKind::allocated ? MemoryKind::allocated_first : kind;
}

// The parts of a block that are named after `phrase`, one word after the other, until a word names
// none: "=['layernorm', 'moe_act'], dispatcher" is modules-layernorm+moe_act.
std::optional<std::string> modules_after(const ReplayContext& c, std::string_view phrase) {
  const std::string_view text = c.run.notes;
  std::string list;
  const auto part_of_word = [](char ch) { return is_word_character(ch) || ch == '_'; };
  for (std::size_t at = text.find(phrase) + phrase.size(); at < text.size();) {
    if (!part_of_word(text[at])) {
      if (text[at] == '.' || text[at] == ';') break;
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && part_of_word(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    const auto& rows = c.reading.recompute_modules;
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const RecomputeReading& r) { return r.text == word; });
    if (row == rows.end()) break;
    list += (list.empty() ? "modules-" : "+") + row->recompute;
    at = end;
  }
  return list.empty() ? std::nullopt : std::optional(list);
}

std::optional<std::string> stated_recompute(const ReplayContext& c) {
  for (const PhraseReading* phrase : c.phrases) {
    if (phrase->recompute) return phrase->recompute;
    if (phrase->modules_follow)
      if (auto modules = modules_after(c, phrase->text)) return modules;
  }
  return c.run.training.recompute;
}

// The rows that `name` holds, without those that are a part of another: "selective" of
// "selective-op".
std::vector<const RecomputeReading*> policies_held(const Reading& reading, std::string_view name) {
  std::vector<const RecomputeReading*> held;
  for (const RecomputeReading& row : reading.recomputes)
    if (holds_words(name, row.text)) held.push_back(&row);
  std::vector<const RecomputeReading*> whole;
  for (const RecomputeReading* row : held)
    if (std::none_of(held.begin(), held.end(), [&](const RecomputeReading* other) {
          return other != row && holds_words(other->text, row->text);
        }))
      whole.push_back(row);
  return whole;
}

// A policy as it is named here, if it is one. What a row spells whole, it means; "checkpointing
// disabled" denies a full one; and rows that disagree mean nothing.
std::optional<std::string> policy_meant(const Reading& reading, std::string_view told) {
  const std::string name = lowered(trimmed(told));
  const RecomputeReading* longest = longest_match_spelled(reading.recomputes, name, '-');
  if (longest != nullptr && longest->text.size() == name.size()) return longest->recompute;
  if (recompute_policy(name)) return name;
  std::optional<std::string> meant;
  for (const RecomputeReading* row : policies_held(reading, name)) {
    const bool denied = said_of(name, row->text) == Said::denied;
    if (denied && row->recompute != "full") return std::nullopt;
    const std::string policy = denied ? "none" : row->recompute;
    if (meant && *meant != policy) return std::nullopt;
    meant = policy;
  }
  return meant;
}

// A frozen base in four bits is QLoRA whatever the publisher calls it.
MethodReading with_quantization(const ReplayContext& c, MethodReading method) {
  const auto& text = c.run.training.quantize;
  if (method.method == Method::lora && text && longest_match(c.reading.quantizations, *text))
    method.method = Method::qlora;
  return method;
}

double batch_scale(const ReplayContext& c, const ParallelPlan& plan) {
  if (!c.run.training.global_batch) return 1;
  return static_cast<double>(*c.run.training.global_batch) / plan.global_batch();
}

// A rate of tokens counts those of the samples; the step that it gives is one of `stated` tokens.
double token_scale(const RunRecord& run, int reached) {
  const RunMeasured& m = run.measured;
  const bool rate = m.tokens_per_s || m.tokens_per_s_per_gpu;
  if (!rate || m.step_time || m.samples_per_s || !run.training.sequence) return 1;
  return std::max(1.0, static_cast<double>(*run.training.sequence) / reached);
}

// Whoever says so of a run has built what the row of their framework does not have.
void can_do_what_it_did(const ParallelPlan& p, Method method, Framework& f) {
  f.supports.tensor = f.supports.tensor || p.tensor > 1;
  f.supports.pipeline = f.supports.pipeline || (p.pipeline > 1 && !p.layer_split);
  f.supports.context = f.supports.context || p.context > 1;
  f.supports.expert = f.supports.expert || p.expert > 1;
  f.supports.max_zero_stage = std::max(f.supports.max_zero_stage, p.zero_stage);
  if (!f.runs(method)) f.supports.methods.push_back(method);
}

// The row that is nearest may be of the other generation of FSDP.
void note_other_fsdp(const RunPlan& stated, const ShardedParameters& s, Notes& notes) {
  if (stated.fsdp_version == 1 && s.copy_out) notes.push_back("FSDP1 is replayed as FSDP2");
  if (stated.fsdp_version == 2 && s.joins_gradients) notes.push_back("FSDP2 is replayed as FSDP1");
}

ReplayResult assemble(const ReplayContext& c, const Gpu& gpu, const MethodReading& method,
                      Notes notes) {
  const Framework& row = replay_row(c, method.method, notes);
  const DType format = replay_compute(c, row, gpu, notes);
  auto plan = replay_plan(c, row, format, notes);
  if (const auto* skipped = std::get_if<Skipped>(&plan)) return *skipped;
  Replay out;
  out.question.plan = std::get<ParallelPlan>(std::move(plan));
  ParallelPlan& p = out.question.plan;
  const DType compute = unsharded_compute(c, row, p, format, notes);
  if (p.data * p.context == 1 && p.zero_stage == 0)
    for (const EngineStage& engine : row.with_zero_alone)
      if (engine.method == method.method) p.zero_stage = engine.stage;
  const int asked_stage = p.zero_stage;
  if (p.zero_stage == 0 && p.data * p.context > 1 && row.sharding.bf16_shards_at_stage_0 &&
      compute == DType::bf16) {
    notes.push_back("ZeRO stage 0 in bf16: its optimizer shards states all the same, as stage 1");
    p.zero_stage = 1;
  }
  Framework framework = replay_framework(c, row, method.method, compute, asked_stage);
  note_other_fsdp(c.run.plan, framework.sharding.parameters, notes);
  settle_on(gpu, compute, framework);
  can_do_what_it_did(p, method.method, framework);
  const bool pretrains = method.method == Method::pretrain;
  const std::string usual = pretrains ? framework.recompute.pretrain : framework.recompute.finetune;
  const std::optional<std::string> told = stated_recompute(c);
  p.recompute = policy_meant(c.reading, told.value_or(usual)).value_or(usual);
  if (told && !policy_meant(c.reading, *told))
    notes.push_back("recomputation \"" + *told + "\" is not understood: " + usual);
  auto workload = replay_workload(c, method, compute, framework, p, notes);
  if (const auto* skipped = std::get_if<Skipped>(&workload)) return *skipped;
  out.question.workload = std::get<Workload>(std::move(workload));
  settle_attention(gpu, out.question.workload);
  p.layers_per_stage = c.run.plan.layers_per_stage;
  if (!p.layer_split && p.layers_per_stage.empty())
    p.layers_per_stage = usual_layers_per_stage(out.question.workload, p.pipeline * p.chunks);
  auto cluster = replay_cluster(c, gpu, p.gpus(), notes);
  if (const auto* skipped = std::get_if<Skipped>(&cluster)) return *skipped;
  out.question.cluster = std::get<Cluster>(std::move(cluster));
  out.memory_kind = memory_kind(c, framework);
  out.memory_stage = framework.reports.stage;
  out.gpu_known = gpu_stated(c);
  out.step_scale = batch_scale(c, p) * token_scale(c.run, out.question.workload.sequence);
  out.batch_told = p.pipeline == 1 || c.run.training.global_batch || c.run.training.grad_accum;
  if (!out.batch_told) notes.push_back("number of microbatches not stated: no step time");
  out.notes = std::move(notes);
  return out;
}

}  // namespace

ReplayResult replay(const RunRecord& run, const Catalog& catalog, const Reading& reading) {
  if (run.malformed) return Skipped{"malformed record", *run.malformed};
  if (run.microbenchmark) return Skipped{"not a training run", ""};
  const ReplayContext c{run, catalog, reading, phrases_of(run, reading)};
  if (const auto why = stated(c, &PhraseReading::skip))
    return Skipped{"method is not one of ours", *why};
  Notes notes = run.unread;
  const auto method = replay_method(c, notes);
  if (const auto* skipped = std::get_if<Skipped>(&method)) return *skipped;
  const auto gpu = replay_gpu(c, notes);
  if (const auto* skipped = std::get_if<Skipped>(&gpu)) return *skipped;
  return assemble(c, std::get<Gpu>(gpu),
                  with_quantization(c, *std::get<const MethodReading*>(method)), std::move(notes));
}

}  // namespace shardwise
