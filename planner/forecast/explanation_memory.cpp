#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "planner/forecast/explanation_parts.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "planner/forecast/spread_key.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
double in_gib(Bytes b) { return static_cast<double>(b.value) / gibibyte; }

// What a category is and how its bytes come about.
struct CategoryWords {
  MemoryCategory category;
  std::string_view formula;
};
constexpr std::array<CategoryWords, 9> played_words{{
    {MemoryCategory::activations,
     "bytes of every tensor that backward reads, of the microbatches in flight, played operator by "
     "operator"},
    {MemoryCategory::recompute, "what one block makes again before its backward pass"},
    {MemoryCategory::temporaries,
     "outputs that nobody saves, gradients of activations and what the optimizer makes for a step, "
     "alive at the peak"},
    {MemoryCategory::logits,
     "microbatch x sequence x vocabulary x bytes, for each copy that head "
     "and loss keep alive"},
    {MemoryCategory::gathered_parameters,
     "whole layers as kernels want them, as many as the "
     "framework gathers ahead"},
    {MemoryCategory::communication, "gradient buckets and the inputs of reductions"},
    {MemoryCategory::workspace, "cuBLAS workspaces inside the allocator"},
    {MemoryCategory::framework, "what the framework itself keeps"},
    {MemoryCategory::cache,
     "reserved less allocated: rounding and fragments, played through a "
     "model of PyTorch's caching allocator"},
}};

Bytes of(const StageForecast& s, MemoryCategory c) {
  return Bytes(s.breakdown[static_cast<std::size_t>(c)]);
}

// Elements on one rank of the worst stage, before any sharding, by how they are stored.
struct StageParameters {
  LayerParameters trained, frozen;
};

void add(LayerParameters& to, const LayerParameters& p) {
  to.linear += p.linear;
  to.other += p.other;
  to.table += p.table;
  to.expert += p.expert;
  to.adapter += p.adapter;
  to.linear_sides += p.linear_sides;
  to.expert_sides += p.expert_sides;
}

StageParameters stage_parameters(const Question& q, int stage) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(q.plan.schedule_row());
  const ModelPartition partition =
      partition_model(q.workload, q.plan, schedule, *recompute_policy(q.plan.recompute));
  StageParameters p;
  for (const ModelChunk& chunk : partition.stages[static_cast<std::size_t>(stage)])
    for (const ChunkLayer& layer : chunk.layers) {
      LayerParameters parameters = layer.definition->graph.parameters;
      add(layer.definition->trainable ? p.trained : p.frozen, parameters);
    }
  return p;
}

// One way in which parameters are stored: how many, at how many bytes, over how many ranks.
struct Term {
  std::string_view name;
  LayerParameters parameters;
  std::int64_t elements = 0;
  bool trainable = true;
  bool quantizable = false;
};

std::vector<Term> terms_of(const StageParameters& p) {
  std::vector<Term> terms;
  const auto add_kind = [&](std::string_view name, std::int64_t LayerParameters::*kind,
                            bool quantizable) {
    for (const bool trainable : {true, false}) {
      const LayerParameters& all = trainable ? p.trained : p.frozen;
      const std::int64_t n = all.*kind;
      if (n == 0) continue;
      LayerParameters only;
      only.*kind = n;
      only.linear_sides = all.linear_sides;
      only.expert_sides = all.expert_sides;
      terms.push_back({name, only, n, trainable, quantizable});
    }
  };
  add_kind("matrices", &LayerParameters::linear, true);
  add_kind("tables, norms and biases", &LayerParameters::other, false);
  add_kind("narrow tables", &LayerParameters::table, false);
  add_kind("experts", &LayerParameters::expert, true);
  add_kind("adapters", &LayerParameters::adapter, false);
  return terms;
}

// A category that is parameters x bytes / ranks.
struct StateRow {
  MemoryCategory category;
  std::string_view what;
  double StoredParameter::*bytes;
  std::int64_t LayerState::*state;
  bool adapters;  // of adapters alone, or of the base weights alone where `bytes` is the weight
  std::string_view beside;  // what of the category may be there for a moment
};
constexpr std::array<StateRow, 6> state_rows{{
    {MemoryCategory::weights, "base weights on this GPU", &StoredParameter::weight,
     &LayerState::weights, false, "copies of them that kernels read"},
    {MemoryCategory::adapters, "adapters on this GPU", &StoredParameter::weight,
     &LayerState::adapters, true, "copies of them that kernels read"},
    {MemoryCategory::quantization, "constants of quantised weights",
     &StoredParameter::quantization_constants, &LayerState::quantization, false,
     "blocks that are dequantised"},
    {MemoryCategory::gradients, "gradients kept until the optimizer steps",
     &StoredParameter::gradient, &LayerState::gradients, false,
     "gradients as backward makes them, not yet summed or sharded"},
    {MemoryCategory::master_weights, "fp32 copies that the optimizer steps",
     &StoredParameter::master, &LayerState::master, false, "copies of them"},
    {MemoryCategory::optimizer_states, "what the optimizer remembers per parameter",
     &StoredParameter::optimizer, &LayerState::optimizer, false, "copies of them"},
}};

StoredParameter stored(const Workload& w, const ParallelPlan& plan, const Term& term) {
  const LayerParameters& p = term.parameters;
  if (p.adapter > 0) return stored_adapter(w);
  if (p.table > 0) return stored_table(w, term.trainable);
  if (!term.quantizable) return stored_base(w, term.trainable, false);
  if (p.expert == 0) return stored_matrices(w, term.trainable, term.elements, p.linear_sides);
  StoredParameter experts = stored_matrices(w, term.trainable, term.elements, p.expert_sides, true);
  experts.weight = stored_expert_weight(w, plan, term.trainable);
  return experts;
}

std::optional<ExplainedFigure> state_figure(const Question& q, const StageForecast& s,
                                            const std::vector<Term>& terms, const StateRow& row) {
  const Bytes found = of(s, row.category);
  if (found == Bytes(0)) return std::nullopt;
  ExplainedFigure figure{std::string(name(row.category)),
                         std::string(row.what),
                         in_gib(found),
                         "GiB",
                         "sum over kinds of parameters x bytes each / ranks that share them",
                         {}};
  const Framework& f = q.workload.framework;
  const bool published_model = !q.workload.model.provenance.source.empty();
  Bytes whole;
  std::int64_t narrow = 0;  // weights that have a copy in the format of narrow products
  for (const Term& term : terms) {
    const StoredParameter each = stored(q.workload, q.plan, term);
    const LayerState state = layer_state(q.workload, q.plan, term.parameters, term.trainable);
    const double bytes = each.*row.bytes;
    if (row.category == MemoryCategory::weights && state.narrow_copies > 0) {
      narrow += term.elements;
      whole += Bytes(state.narrow_copies);
    }
    const bool states = row.category == MemoryCategory::optimizer_states;
    const std::int64_t held = state.*row.state + (states ? state.paged : 0);
    if (bytes <= 0 || held <= 0) continue;
    whole += Bytes(held);
    const std::string kind =
        sentence(term.trainable || term.parameters.adapter > 0 ? "trained " : "frozen ", term.name);
    figure.inputs.push_back({kind, static_cast<double>(term.elements), "parameters",
                             published_model ? std::optional(Trust::published) : std::nullopt,
                             published_model ? q.workload.model.provenance.source
                                             : std::string("the model's configuration")});
    ExplainedInput size =
        catalogued(sentence(kind, ", each"), bytes, "B", Trust::published, f.provenance,
                   q.workload.method == Method::pretrain ? "pretrain_weights" : "finetune_weights");
    size.source = sentence(f.name, ": ", size.source);
    figure.inputs.push_back(size);
    const double ranks = static_cast<double>(term.elements) * bytes / static_cast<double>(held);
    figure.inputs.push_back({sentence(kind, ", shared by"), std::round(ranks), "ranks",
                             std::nullopt,
                             sentence("ZeRO stage ", q.plan.zero_stage, " of the plan")});
  }
  if (narrow > 0) {
    figure.formula += "; and copies for 8-bit or 4-bit products, kept as long as the run lasts";
    figure.inputs.push_back({"weights with a copy for products", static_cast<double>(narrow),
                             "parameters", std::nullopt, "the matrices and experts above"});
    ExplainedInput copy = catalogued("a copy for products, each", narrow_weight_bytes(q.workload),
                                     "B", Trust::published, f.provenance, "narrow_weights");
    copy.source = sentence(f.name, ": ", copy.source);
    figure.inputs.push_back(copy);
  }
  if (in_gib(found) < 0.99 * in_gib(whole)) {
    figure.formula += "; of that, what is there at the moment of the peak";
    figure.inputs.push_back({"all of it", in_gib(whole), "GiB", std::nullopt, ""});
  }
  if (const double more = in_gib(found) - in_gib(whole); more > 0.01 * in_gib(whole)) {
    figure.formula += sentence("; beside them, at the moment of the peak, ", row.beside);
    figure.inputs.push_back({"beside them", more, "GiB", std::nullopt, ""});
  }
  return figure;
}

ExplainedFigure played_figure(const Question& q, const StageForecast& s,
                              const CategoryWords& words) {
  ExplainedFigure figure{std::string(name(words.category)), "",
                         in_gib(of(s, words.category)),     "GiB",
                         std::string(words.formula),        {}};
  const auto asked = [&](const char* what, double value, const char* unit) {
    figure.inputs.push_back({what, value, unit, std::nullopt, "asked, or the plan's"});
  };
  asked("microbatch", q.plan.microbatch, "sequences");
  asked("sequence", q.workload.sequence, "tokens");
  if (words.category == MemoryCategory::logits)
    asked("vocabulary", static_cast<double>(q.workload.model.vocab), "entries");
  const Framework& f = q.workload.framework;
  ExplainedInput behaviour =
      catalogued("behaviour of the framework", 0, "", Trust::published, f.provenance, "");
  behaviour.source = sentence(f.name, " ", f.version, ": ", behaviour.source);
  figure.inputs.push_back(behaviour);
  return figure;
}

ExplainedFigure capacity(const Gpu& gpu) {
  ExplainedFigure figure{"capacity_gib",
                         "what a process can hold on this GPU",
                         in_gib(gpu.usable_memory()),
                         "GiB",
                         "",
                         {}};
  const auto add_field = [&](const char* what, Bytes size, Trust trust, const char* field) {
    figure.formula = what;
    figure.inputs.push_back(catalogued(what, in_gib(size), "GiB", trust, gpu.provenance, field));
  };
  if (gpu.memory_offered)
    add_field("the total that CUDA offers a process", *gpu.memory_offered, Trust::published,
              "memory_offered_gib");
  else if (gpu.memory_reported)
    add_field("the total that the driver reports", *gpu.memory_reported, Trust::published,
              "memory_reported_mib");
  else
    add_field("the nominal capacity", gpu.memory, Trust::datasheet, "memory_gib");
  if (gpu.memory_taken > Bytes(0)) {
    figure.formula += " - what other programs have taken";
    figure.inputs.push_back(
        {"taken by other programs", in_gib(gpu.memory_taken), "GiB", Trust::assumed, "asked"});
  }
  return figure;
}

ExplainedFigure device(const Forecast& f, const StageForecast& s) {
  ExplainedFigure figure{"peak_memory_gib.device",
                         f.stages.size() > 1
                             ? sentence("the fullest GPU, of stage ", s.stage, ", at its peak")
                             : "the GPU at its peak",
                         in_gib(s.peak.device),
                         "GiB",
                         "sum of what it holds at that moment",
                         {}};
  for (std::size_t c = 0; c < memory_category_count; ++c)
    if (s.breakdown[c] != 0)
      figure.inputs.push_back({std::string(memory_category_names[c]), in_gib(Bytes(s.breakdown[c])),
                               "GiB", std::nullopt, ""});
  return figure;
}

ExplainedFigure verdict(const Question& q, const Forecast& f, const StageForecast& s,
                        const Profile& profile) {
  ExplainedFigure figure{
      "margin_gib",
      "what is left; tight where the plan would not fit a card smaller by the interval",
      in_gib(f.margin),
      "GiB",
      "capacity - device",
      {}};
  figure.inputs.push_back({"capacity", in_gib(s.capacity), "GiB", std::nullopt, ""});
  figure.inputs.push_back({"device", in_gib(s.peak.device), "GiB", std::nullopt, ""});
  const SpreadRow row = spread_of(profile.spread.memory, spread_key(q));
  for (const ExplainedInput& input : interval_inputs(row, profile.spread.provenance))
    figure.inputs.push_back(input);
  const bool cut = f.verdict == Verdict::fits && f.peak_device.high == s.capacity;
  figure.inputs.push_back(
      {"device, high end", in_gib(f.peak_device.high), "GiB", std::nullopt,
       cut ? "device x high, up to the card: the rest is cache" : "device x high"});
  return figure;
}

}  // namespace

void explain_memory(const Question& q, const Forecast& f, const Profile& profile,
                    std::vector<ExplainedFigure>& figures) {
  const StageForecast& s = f.worst();
  const Gpu& gpu = smallest_group(q.cluster, q.plan, f.worst_stage).gpu;
  figures.push_back(device(f, s));
  const std::vector<Term> terms = terms_of(stage_parameters(q, f.worst_stage));
  for (const StateRow& row : state_rows)
    if (auto figure = state_figure(q, s, terms, row)) figures.push_back(*std::move(figure));
  for (const CategoryWords& words : played_words)
    if (of(s, words.category) != Bytes(0)) figures.push_back(played_figure(q, s, words));
  const ContextCalibration& context = profile.row(gpu.family).context;
  ExplainedFigure kernels{"context",
                          "CUDA context and loaded kernels, outside the allocator",
                          in_gib(of(s, MemoryCategory::context)),
                          "GiB",
                          "per process",
                          {}};
  kernels.inputs.push_back(catalogued("cuda_context", in_gib(context.cuda_context), "GiB",
                                      context.evidence.trust, context.evidence.provenance,
                                      "cuda_context_bytes"));
  figures.push_back(kernels);
  if (of(s, MemoryCategory::nccl) != Bytes(0)) {
    const LinkEvidence& nccl = profile.links.nccl.evidence;
    figures.push_back({"nccl",
                       "buffers of NCCL's communicators",
                       in_gib(of(s, MemoryCategory::nccl)),
                       "GiB",
                       "channels x buffers of each protocol, for every communicator",
                       {catalogued("NCCL's constants", 0, "", nccl.trust, nccl.provenance, "")}});
  }
  figures.push_back(capacity(gpu));
  figures.push_back(verdict(q, f, s, profile));
}

}  // namespace shardwise
