#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>

#include "catalog/model_name.hpp"
#include "catalog/partial_model.hpp"
#include "catalog/text_match.hpp"
#include "planner/validation/replay_parts.hpp"

namespace shardwise {
namespace {

std::optional<PartialExperts> experts(const std::optional<RunModel::Experts>& moe) {
  if (!moe) return std::nullopt;
  PartialExperts e;
  e.experts = moe->experts;
  e.top_k = moe->top_k;
  e.expert_ffn = moe->expert_ffn;
  e.shared_experts = moe->shared_experts;
  e.dense_layers = moe->dense_layers;
  return e;
}

// Where a table leaves the heads out: as many as `divisor` divides (TP, and the heads of keys where
// these are told), as near to 128 wide as the hidden size allows. Nothing where no such number
// divides it.
std::optional<int> usual_heads(int hidden, std::int64_t divisor) {
  constexpr int usual_width = 128;
  std::optional<int> best;
  for (std::int64_t each = divisor; each <= hidden; each += divisor) {
    const int heads = static_cast<int>(each);
    if (hidden % heads != 0) continue;
    const auto distance = [&](int n) { return std::abs(hidden / n - usual_width); };
    if (!best || distance(heads) < distance(*best)) best = heads;
  }
  return best;
}

PartialModel partial_model(const ReplayContext& c, const Framework& framework, int tensor,
                           Notes& notes) {
  const RunModel& m = c.run.model;
  PartialModel p;
  p.name = m.name;
  if (!m.hf_id.empty()) p.hf_id = m.hf_id;
  p.layers = m.layers;
  p.hidden = m.hidden;
  p.heads = m.heads;
  p.kv_heads = m.kv_heads;
  p.head_dim = m.head_dim;
  p.ffn = m.ffn;
  p.vocab = m.vocab ? m.vocab : stated(c, &PhraseReading::vocab);
  const bool known = model_meant(m.name, c.catalog.models, c.catalog.model_aliases) != nullptr;
  if (!p.vocab && !known) p.vocab = framework.defaults.vocabulary;
  if (!p.heads && !known && m.hidden) {
    p.heads = usual_heads(*m.hidden,
                          std::lcm(std::int64_t{tensor}, std::int64_t{m.kv_heads.value_or(1)}));
    if (p.heads) notes.push_back("model heads: assumed: " + std::to_string(*p.heads));
  }
  p.gated_mlp = m.gated_mlp;
  p.tied_embeddings = m.tied_embeddings;
  p.position = m.position;
  p.norm = m.norm;
  p.qk_norm = m.qk_norm;
  p.norms_per_layer = m.norms_per_layer;
  p.biases = m.biases;
  p.moe = experts(m.moe);
  p.mla = m.mla;
  return p;
}

// How a model of one's own is written, where its record tells it.
void write_as_stated(const ReplayContext& c, const Framework& framework, ModelCode& code) {
  const auto says = [&](auto member) { return stated(c, member).value_or(false); };
  const bool activation = says(&PhraseReading::writes_activation_out);
  const bool norms = says(&PhraseReading::writes_norms_out);
  const bool softmax = says(&PhraseReading::half_softmax);
  const bool heads = says(&PhraseReading::heads_apart);
  if (says(&PhraseReading::clamps_scores) && framework.layers.runs_transformers)
    code.clamps_scores = true;
  if (!activation && !norms && !softmax && !heads) return;
  if (!framework.layers.runs_transformers) code = ModelCode{};
  code.stated = true;
  if (activation) code.mlp = MlpFunction::written_out;
  if (norms) code.layer_norm_operators = true;
  if (softmax) code.half_softmax = true;
  if (heads) code.heads_apart = true;
}

Part<Transformer> replay_model(const ReplayContext& c, const Framework& framework, int tensor,
                               Notes& notes) {
  auto model = complete(partial_model(c, framework, tensor, notes), c.catalog.models,
                        c.catalog.model_aliases);
  if (!model) return Skipped{"model dimensions not stated", c.run.model.name};
  for (const FieldSource& field : model->provenance.fields)
    if (field.source.find("assumed") != std::string::npos)
      notes.push_back("model " + field.field + ": " + field.source);
  if (const auto position = stated(c, &PhraseReading::position)) model->position = *position;
  if (c.run.model.value_embeddings)
    model->value_embeddings =
        ValueEmbeddings{std::min(*c.run.model.value_embeddings, model->layers)};
  model->narrow_tables = model->narrow_tables || c.run.model.narrow_tables;
  model->caps_logits = model->caps_logits || c.run.model.caps_logits;
  if (stated(c, &PhraseReading::fused_activation).value_or(false))
    model->code.mlp = MlpFunction::keeps_input;
  write_as_stated(c, framework, model->code);
  if (model->position == PositionKind::learned)
    model->position_rows = std::max(model->position_rows, c.run.training.sequence.value_or(0));
  return *std::move(model);
}

// Elements of one rank of adapters on the targets of every layer.
double elements_per_rank(const Transformer& m, const AdapterTargets& t) {
  const double h = m.hidden, q = 1.0 * m.heads * m.head_dim, kv = 1.0 * m.kv_heads * m.head_dim;
  const double f = m.ffn;
  const double gate = m.gated_mlp ? h + f : 0;
  return m.layers * (t.q * (h + q) + t.k * (h + kv) + t.v * (h + kv) + t.o * (q + h) +
                     t.gate * gate + t.up * (h + f) + t.down * (f + h));
}

Quantization read_quantization(const ReplayContext& c, const Framework& framework) {
  const RunTraining& t = c.run.training;
  Quantization q = framework.quantized.kind;
  if (t.quantize)
    if (const QuantizationReading* row = longest_match(c.reading.quantizations, *t.quantize))
      q = row->quantization.value_or(q);
  if (q == Quantization::nf4 && t.double_quant.value_or(false)) q = Quantization::nf4_double;
  return q;
}

Adapter replay_adapter(const ReplayContext& c, const MethodReading& method, const Workload& w,
                       Notes& notes) {
  const RunTraining& t = c.run.training;
  Adapter a;
  a.dropout = t.lora_dropout.value_or(w.framework.adapters.dropout);
  a.input = method.input;
  a.targets = targets_meant(c.reading, t.lora_targets.value_or(w.framework.adapters.targets));
  if (elements_per_rank(w.model, a.targets) == 0)
    a.targets = targets_meant(c.reading, w.framework.adapters.targets);
  // Every linear's result is scaled, the logits too.
  if (a.input == AdapterInput::scaled && !t.lora_targets) {
    a.targets = AdapterTargets{};
    a.targets.lm_head = true;
  }
  a.rank = t.lora_rank.value_or(w.framework.adapters.rank);
  if (!t.lora_rank) notes.push_back("adapter rank not stated: " + std::to_string(a.rank));
  if (method.equivalent && t.trainable_params) {
    const double rank = static_cast<double>(*t.trainable_params) /
                        std::max(1.0, elements_per_rank(w.model, a.targets));
    a.rank = std::max(1, static_cast<int>(rank + 0.5));
    notes.push_back(t.method + " stands as low-rank adapters with as many parameters: rank " +
                    std::to_string(a.rank));
  } else if (method.equivalent) {
    notes.push_back(t.method + " stands as low-rank adapters: its parameters are not stated");
  }
  if (w.method == Method::qlora) a.base = read_quantization(c, w.framework);
  return a;
}

// A limit that no sample reaches is no length, unless samples are packed up to it.
int sequence_reached(const ReplayContext& c, const Framework& framework, int limit, Notes& notes) {
  if (c.run.training.packing.value_or(!framework.defaults.lengths_vary)) return limit;
  const int longest = stated(c, &PhraseReading::longest_sample).value_or(limit);
  if (longest >= limit) return limit;
  notes.push_back("the longest sample is taken to have " + std::to_string(longest) +
                  " of at most " + std::to_string(limit) + " tokens");
  return longest;
}

// Sequences are padded so that context parallelism cuts them into equal pairs of chunks, and
// sequence parallelism into equal parts.
int padded_sequence(int sequence, const ParallelPlan& plan, Notes& notes) {
  const int context = plan.context > 1 ? 2 * plan.context : 1;
  const int chunks = context * (plan.sequence_parallel ? plan.tensor : 1);
  const int padded = (sequence + chunks - 1) / chunks * chunks;
  if (padded != sequence)
    notes.push_back("sequences of " + std::to_string(sequence) + " are padded to " +
                    std::to_string(padded) + " for context and sequence parallelism");
  return padded;
}

// "8-bit" and "8 bit" as "8bit".
std::string bits_joined(std::string_view spoken) {
  std::string out;
  const std::string text = lowered(spoken);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool parts = text[at] == ' ' || text[at] == '-' || text[at] == '_';
    if (parts && at > 0 && is_digit(text[at - 1]) && text.compare(at + 1, 3, "bit") == 0) continue;
    out += text[at];
  }
  return out;
}

// What a script is called tells of no other optimizer than the record does, only which AdamW.
const OptimizerRow* replay_optimizer(const ReplayContext& c, const Framework& framework,
                                     Notes& notes) {
  const OptimizerRow* usual = optimizer_named(framework.defaults.optimizer);
  const auto& text = c.run.training.optimizer;
  const OptimizerReading* told =
      text ? longest_match_spelled(c.reading.optimizers, bits_joined(*text), '_') : nullptr;
  const bool plain = told == nullptr || told->optimizer == usual;
  for (const PhraseReading* phrase : c.phrases)
    if (phrase->optimizer != nullptr && (plain || phrase->where != PhraseReading::Where::script))
      return phrase->optimizer;
  if (told != nullptr) return told->optimizer;
  if (text)
    notes.push_back("optimizer \"" + *text + "\" is not understood: " + std::string(usual->name));
  return usual;
}

// The scopes of CUDA graphs that are named after `phrase`, until a word names none.
GraphScopes scopes_after(const ReplayContext& c, std::string_view phrase) {
  const std::string_view text = c.run.notes;
  const auto part_of_word = [](char ch) { return is_word_character(ch) || ch == '_'; };
  GraphScopes out;
  const std::size_t start = text.find(phrase);
  if (start == std::string_view::npos) return out;
  for (std::size_t at = start + phrase.size(); at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && part_of_word(text[end])) ++end;
    if (end == at) {
      if (text[at] == '.' || text[at] == ';' || text[at] == ']') break;
      ++at;
      continue;
    }
    const auto& rows = c.reading.graph_scopes;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const GraphScopeReading& r) {
      return r.text == text.substr(at, end - at);
    });
    if (row == rows.end()) break;
    if (row->scope) out.add(*row->scope);
    at = end;
  }
  return out;
}

GraphScopes stated_scopes(const ReplayContext& c) {
  for (const PhraseReading* phrase : c.phrases) {
    if (phrase->graph_scopes) return *phrase->graph_scopes;
    if (!phrase->graph_scopes_follow) continue;
    if (const GraphScopes named = scopes_after(c, phrase->text); named.any()) return named;
  }
  return {};
}

// Whether a part of the path, between slashes and full stops, is `word`.
bool has_path_word(std::string_view path, std::string_view word) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find_first_of("/."), path.size());
    if (path.substr(0, end) == word) return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

// As the record says, or else as its script is called: ".../rlhf/dpo/full.sh".
const PreferenceRow* preference_meant(const ReplayContext& c) {
  const auto& stated = c.run.training.objective;
  for (const PreferenceReading& r : c.reading.preferences)
    if (stated ? *stated == r.text : has_path_word(c.run.script, r.text)) return r.preference;
  return nullptr;
}

double expert_spread(const ReplayContext& c, Method method) {
  if (const auto told = stated(c, &PhraseReading::expert_spread)) return *told;
  const auto trained = stated(c, &PhraseReading::trained_router);
  return trained.value_or(method != Method::pretrain) ? trained_expert_spread : 0;
}

// What phrases say of kernels, casts and experts, in the place of what the row has.
void state_kernels(const ReplayContext& c, Framework& f) {
  for (auto phrase = c.phrases.rbegin(); phrase != c.phrases.rend(); ++phrase)
    for (const auto& [flag, says] : (*phrase)->flags) flag(f) = says;  // the first one's stays
  take_stated(c, &PhraseReading::dispatches_once, f.experts.dispatches_once);
  f.attention.writes_grouped_out =
      f.attention.writes_grouped_out &&
      stated(c, &PhraseReading::writes_grouped_attention_out).value_or(true);
  if (const auto release = stated(c, &PhraseReading::cudnn)) f.attention.cudnn = release;
  take_stated(c, &PhraseReading::delta_rule, f.layers.delta_rule);
  take_stated(c, &PhraseReading::weight_cast, f.narrow.weight_cast);
  take_stated(c, &PhraseReading::narrow_weights, f.narrow.weights);
  take_stated(c, &PhraseReading::four_bit_unpacking, f.quantized.four_bit_unpacking);
  take_stated(c, &PhraseReading::saved_for_backward, f.sharding.parameters.saved_for_backward);
}

}  // namespace

Part<Workload> replay_workload(const ReplayContext& c, const MethodReading& method, DType compute,
                               const Framework& framework, const ParallelPlan& plan, Notes& notes) {
  const auto sequence =
      c.run.training.sequence ? c.run.training.sequence : framework.defaults.sequence;
  if (!sequence) return Skipped{"no sequence length", ""};
  if (!c.run.training.sequence)
    notes.push_back("sequence length not stated: " + std::to_string(*sequence));
  auto model = replay_model(c, framework, plan.tensor, notes);
  if (const auto* skipped = std::get_if<Skipped>(&model)) return *skipped;
  Workload w;
  w.model = std::get<Transformer>(std::move(model));
  w.method = method.method;
  w.compute = compute;
  w.framework = framework;
  w.sequence = padded_sequence(sequence_reached(c, framework, *sequence, notes), plan, notes);
  if (stated(c, &PhraseReading::longest_sample)) w.framework.defaults.cuts_samples = false;
  if (w.model.vision) w.images = usual_images(*w.model.vision, w.sequence);
  w.step_with(*replay_optimizer(c, framework, notes));
  w.hidden_dropout = framework.defaults.dropout && !w.model.gated_mlp &&
                     stated(c, &PhraseReading::dropout).value_or(true);
  if (c.run.training.dropout) w.hidden_dropout = *c.run.training.dropout;
  w.attention_dropout = w.hidden_dropout;
  state_kernels(c, w.framework);
  take_stated(c, &PhraseReading::shares_orthogonalization, w.shares_orthogonalization);
  take_stated(c, &PhraseReading::overlaps_experts, w.overlaps_experts);
  take_stated(c, &PhraseReading::expert_imbalance, w.expert_imbalance);
  w.expert_spread = expert_spread(c, w.method);
  take_stated(c, &PhraseReading::pads_experts, w.pads_experts);
  take_stated(c, &PhraseReading::prediction_depths, w.prediction_depths);
  take_stated(c, &PhraseReading::step_is_graph, w.step_is_graph);
  w.graph_scopes = stated_scopes(c);
  take_stated(c, &PhraseReading::blocking_launches, w.blocking_launches);
  // A pack counts all sequences of its samples (modelscope/ms-swift @2244e95f4
  // swift/llm/template/base.py:507-518).
  w.prefer(preference_meant(c));
  if (c.run.training.packing.value_or(false)) w.sequences_per_sample = 1;
  if (row(w.method).adapter) w.adapter = replay_adapter(c, method, w, notes);
  return w;
}

}  // namespace shardwise
