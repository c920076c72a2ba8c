// Reading: what the free text of published runs means, as tables (catalog/reading/).
//
// "A100-80GB" is a GPU of the catalog, "AWS EFA" a network with so many ports per node,
// "adamw_8bit" a row of optimizers. A text that no row holds is not guessed at. `assumed` says what
// a row adds that the text does not tell; answers repeat it.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/adapter.hpp"
#include "catalog/cluster.hpp"
#include "catalog/framework.hpp"
#include "catalog/graph_scope.hpp"
#include "catalog/lane_loop.hpp"
#include "catalog/optimizer.hpp"
#include "catalog/preference.hpp"
#include "catalog/result.hpp"
#include "catalog/source_date.hpp"
#include "catalog/transformer.hpp"
#include "catalog/unsupported_framework.hpp"

namespace shardwise {

struct RunRecord;

struct GpuReading {
  std::string text, gpu, assumed;
  std::optional<int> power_limit_w;  // [W] its owner's limit, where a record states none
};
struct NetworkReading {
  std::string text, network;
  int nics = 1;                  // per node
  BytesPerSecond nic_bandwidth;  // of one, one direction
  std::string gpu;               // only with GPUs whose id holds this word; empty: with all
  std::string assumed;
};
struct LinkReading {
  std::string text;
  IntraLink link = IntraLink::pcie_host;
  bool where_unlinked = false;  // only of cards that can have NVLink and whose usual board has none
};
struct LaneReading {
  std::string text;
  int lanes = 0;  // PCIe, of every card
};
struct MethodReading {
  std::string text;
  Method method = Method::lora;
  bool equivalent = false;  // another low-rank bypass: the rank that gives the stated parameters
  AdapterInput input = AdapterInput::copied;
};
struct PrecisionReading {
  std::string text;
  DType compute = DType::bf16;
  std::optional<WeightRecipe> weights;
  std::optional<DType> frozen;  // of base weights without a gradient, under torch.autocast
};
struct FormatFallback {  // a GPU without `format` computes in `instead`
  DType format = DType::bf16, instead = DType::fp16;
  bool unstated = false;  // only where nobody says `format`: it is emulated where somebody does
};
struct QuantizationReading {
  std::string text;
  std::optional<Quantization> quantization;  // absent: as the framework quantizes
};
struct OptimizerReading {
  std::string text;
  const OptimizerRow* optimizer = nullptr;
};
struct ScheduleReading {
  std::string text, schedule;
  std::string chunked;  // the schedule where a rank holds several chunks; empty: the same
  bool layer_split = false;
};
struct OffloadReading {
  std::string text;
  bool optimizer = false, parameters = false, activations = false;
  bool parameters_if_sharded = false;  // where it is not told what is offloaded
};
// What is trained on other than the next token.
struct PreferenceReading {
  std::string text;
  const PreferenceRow* preference = nullptr;
};
struct TargetReading {
  std::string text;
  AdapterTargets targets;
};
struct RecomputeReading {
  std::string text, recompute;
};
struct GraphScopeReading {  // one word of a list; no scope: it joins others, as "and" does
  std::string text;
  std::optional<GraphScope> scope;
};
struct PluginReading {
  std::string text;
  std::optional<LossKind> loss;
  bool fuses_loss = false;  // by the framework's own kernel
  std::optional<KernelStyle> kernels;
  std::optional<bool> upcasts_unquantized;
  std::optional<bool> masks_padding;
  std::optional<bool> adds_head_slices_apart;
  std::optional<bool> overwrites_gate_and_up;
  std::optional<bool> eager_activation;
};
struct MemoryKindReading {
  std::string text;
  MemoryKind kind = MemoryKind::device;
};

using FrameworkFlag = bool& (*)(Framework&);

// Flags of a framework's row that a phrase may state, by the key that states one.
inline constexpr std::array<std::pair<std::string_view, FrameworkFlag>, 22> stated_flags{{
    {"runs_transformers", [](Framework& f) -> bool& { return f.layers.runs_transformers; }},
    {"dispatches_by_map", [](Framework& f) -> bool& { return f.experts.dispatches_by_map; }},
    {"loops_experts", [](Framework& f) -> bool& { return f.experts.loops; }},
    {"weighs_rows_apart", [](Framework& f) -> bool& { return f.experts.weighs_rows_apart; }},
    {"adapts_experts", [](Framework& f) -> bool& { return f.adapters.on_experts; }},
    {"sums_expert_adapters", [](Framework& f) -> bool& { return f.adapters.sums_experts; }},
    {"casts_grouped_products",
     [](Framework& f) -> bool& { return f.experts.casts_grouped_products; }},
    {"overlap_keeps_nodes", [](Framework& f) -> bool& { return f.experts.overlap_keeps_nodes; }},
    {"attends_by_operators", [](Framework& f) -> bool& { return f.attention.by_operators; }},
    {"narrow_attention", [](Framework& f) -> bool& { return f.narrow.attention; }},
    {"narrow_head", [](Framework& f) -> bool& { return f.narrow.head; }},
    {"upcasts_logits", [](Framework& f) -> bool& { return f.loss.upcasts; }},
    {"fused_norms", [](Framework& f) -> bool& { return f.layers.fused_norms; }},
    {"keeps_narrow_gate", [](Framework& f) -> bool& { return f.layers.keeps_narrow_gate; }},
    {"deterministic", [](Framework& f) -> bool& { return f.layers.deterministic; }},
    {"current_scaling", [](Framework& f) -> bool& { return f.narrow.current_scaling; }},
    {"quantizes_apart", [](Framework& f) -> bool& { return f.narrow.quantizes_apart; }},
    {"scales_rows", [](Framework& f) -> bool& { return f.narrow.scales_rows; }},
    {"quantized_sharding", [](Framework& f) -> bool& { return f.sharding.quantized; }},
    {"scatters_labels", [](Framework& f) -> bool& { return f.loss.scatters_labels; }},
    {"leaves_odd_lengths", [](Framework& f) -> bool& { return f.layers.leaves_odd_lengths; }},
    {"quantized_linear_keeps_input",
     [](Framework& f) -> bool& { return f.quantized.linear_keeps_input; }},
}};

// A phrase of a record's prose that states what none of its keys does.
struct PhraseReading {
  enum class Where { notes, framework_note, model, script } where = Where::notes;
  std::string text;
  std::string with_note;  // holds only where the framework note holds this as well
  std::string with_gpu;   // and only where the name of the GPU does
  std::vector<std::pair<FrameworkFlag, bool>> flags;  // of stated_flags, and what it says
  std::optional<int> vocab;
  std::optional<int> longest_sample;  // tokens; of data that are not packed into whole sequences
  std::optional<bool> dropout, offload_activations, blocking_launches, overlaps_reduction;
  std::optional<bool> overlaps_below_stage_3;  // the same of gradients that ZeRO-3 does not shard
  std::optional<bool> dispatches_once;
  std::optional<LibraryRelease> cudnn;
  std::optional<bool> checkpoints_in_units, compiles_sharding, clips;
  std::optional<bool> checks_gradients, checks_partition;
  std::optional<bool> steps_one_by_one;  // neither a fused kernel nor lists of tensors
  std::optional<bool> writes_grouped_attention_out;
  std::optional<bool> reduces_every_microbatch, expandable_segments;
  std::optional<bool> whole_tables, steps_in_backward;
  std::optional<AttentionKernel> attention;
  std::optional<DeltaRule> delta_rule;
  std::optional<LaneLoop> four_bit_unpacking;
  std::optional<bool> overlaps_experts, pads_experts, step_is_graph;
  std::optional<bool> shares_orthogonalization;
  std::optional<WeightCast> weight_cast;
  std::optional<NarrowWeights> narrow_weights;
  std::optional<int> bucket_elements;        // that are reduced at once, as a configuration says
  std::optional<bool> memory_of_first_step;  // the peak is read once, when that step is over
  std::optional<bool> saved_for_backward;    // ShardedParameters::saved_for_backward
  std::optional<int> prediction_depths;
  std::optional<int> zero_stage;           // the one meant, whatever the key of the plan says
  std::optional<double> expert_imbalance;  // Workload::expert_imbalance
  std::optional<double> expert_spread;     // Workload::expert_spread
  std::optional<bool> trained_router;      // experts differ as those of a trained router do
  std::optional<int> expert_ranks;         // over which experts are spread, where no key tells it
  std::optional<std::string> precision;    // as records spell it
  std::optional<MemoryKind> memory_kind;   // where the record does not know it
  std::optional<GraphScopes> graph_scopes;
  bool graph_scopes_follow = false;  // the parts that CUDA graphs hold are named after `text`
  bool modules_follow = false;       // the parts that are re-run are named after `text`
  bool share_follows = false;  // the number after `text` is the offloaded share of activations
  bool offloaded_layers_follow = false;  // likewise, of the layers whose activations are offloaded
  std::optional<std::string> recompute;  // a row of recompute_policy
  std::optional<std::string> framework;  // id of the row that stands for its release
  std::optional<std::string> gpu;        // id of the part meant, where its name leaves several
  std::optional<std::string> inter_node;
  std::optional<PositionKind> position;
  std::optional<ContextKind> context_kind;
  std::optional<bool> liger_kernel;      // whatever the key says
  std::optional<bool> fused_activation;  // of an MLP whose class would write it out
  std::optional<bool> writes_activation_out, writes_norms_out, half_softmax, heads_apart,
      clamps_scores;
  const OptimizerRow* optimizer = nullptr;
  std::optional<std::string> skip;  // why a run with it cannot be represented
};

struct Reading {
  std::vector<GpuReading> gpus;
  std::vector<NetworkReading> networks;
  std::vector<LinkReading> links;
  std::vector<LaneReading> lanes;
  std::vector<MethodReading> methods;
  std::vector<PrecisionReading> precisions;
  std::vector<FormatFallback> fallbacks;
  std::vector<QuantizationReading> quantizations;
  std::vector<OptimizerReading> optimizers;
  std::vector<ScheduleReading> schedules;
  std::vector<OffloadReading> offloads;
  std::vector<PreferenceReading> preferences;
  std::vector<TargetReading> targets;
  std::vector<RecomputeReading> recomputes;
  std::vector<RecomputeReading> recompute_modules;  // one word of a list, and the part it names
  std::vector<GraphScopeReading> graph_scopes;
  std::vector<PluginReading> plugins;
  std::vector<MemoryKindReading> memory_kinds;
  std::vector<PhraseReading> phrases;
  std::vector<DatedDocument> documents;
  std::vector<DatedThreads> threads;
  std::vector<UnsupportedFramework> unsupported;
  std::string missing_gpu;  // ids, where a run names none
  std::string pretrain_framework, finetune_framework;
};

Result<Reading> load_reading(const std::filesystem::path& root);
// Of it what a question's own words may need: how a run trains (training.json), not on what and in
// which prose. What tells hardware (gpus to lanes, missing_gpu), phrases, documents, threads and
// unsupported stay empty.
Result<Reading> load_training_words(const std::filesystem::path& root);

// What a record's words do not date, its document or thread may.
void date_by_sources(const Reading& reading, std::vector<RunRecord>& runs);

// The linears that free text names, word by word; text of any shape: lists, regular expressions.
// Remarks in parentheses do not count.
AdapterTargets targets_meant(const Reading& reading, std::string_view text);

}  // namespace shardwise
