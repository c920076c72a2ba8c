#include "planner/request/request_field.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "catalog/names.hpp"
#include "planner/parted.hpp"
#include "planner/sentence.hpp"
#include "simulator/offload_choice.hpp"

namespace shardwise {
namespace {

using Choices = std::vector<std::string_view>;

Choices methods() { return names_in(method_rows); }
Choices optimizers() { return names_in(optimizer_rows); }
Choices preferences() { return names_in(preference_rows); }
Choices formats() {
  return {"bf16", "fp16",  "fp32", "tf32",
          "fp8",  "mxfp8", "nvfp4"};  // those that matmuls compute in
}
Choices quantizations() { return names_in(quantization_rows); }
Choices offloads() { return names_in(offload_choices); }
Choices yes_or_no() { return {"yes", "no"}; }

// The plain kinds: a member of the request, and its value as a FieldValue.
template <auto member>
void set_plain(Request& r, const FieldValue& v) {
  using Value = typename std::remove_reference_t<decltype(r.*member)>::value_type;
  r.*member = std::get<Value>(v);
}
template <auto member>
FieldValue get_plain(const Request& r) {
  if (!(r.*member)) return {};
  return *(r.*member);
}
template <auto member>
void set_integer(Request& r, const FieldValue& v) {
  using Number = typename std::remove_reference_t<decltype(r.*member)>::value_type;
  r.*member = static_cast<Number>(std::get<std::int64_t>(v));
}
template <auto member>
FieldValue get_integer(const Request& r) {
  if (!(r.*member)) return {};
  return std::int64_t{*(r.*member)};
}

template <auto member>
void set_flag(Request& r, const FieldValue& v) {
  r.*member = std::get<bool>(v);
}
template <auto member>
FieldValue get_flag(const Request& r) {
  if (!(r.*member)) return {};
  return true;
}

using R = Request;
using V = FieldValue;
constexpr std::int64_t exabyte = 1'000'000'000'000'000'000;
constexpr std::int64_t most_tokens = 10'000'000'000'000'000;  // hundreds of times any run there was
constexpr std::int64_t most_samples = 10'000'000'000;         // whose tokens can be counted
constexpr std::string_view judging = "fit simulate compare";
constexpr std::string_view amounts = "fit simulate compare launch plan shop sweep";
constexpr FieldKind text_kind = FieldKind::text;
constexpr FieldKind integer_kind = FieldKind::integer;
constexpr FieldKind number_kind = FieldKind::number;

void set_methods(R& r, const V& v) {
  r.methods.clear();
  for (const std::string& word : std::get<std::vector<std::string>>(v))
    if (std::find(r.methods.begin(), r.methods.end(), *method_named(word)) == r.methods.end())
      r.methods.push_back(*method_named(word));
}
V get_methods(const R& r) {
  if (r.methods.empty()) return {};
  std::vector<std::string> words;
  for (const Method m : r.methods) words.emplace_back(name(m));
  return words;
}
V get_plans(const R& r) {
  if (r.plans.empty()) return {};
  return r.plans;
}
V get_plan_from(const R& r) {
  if (r.plan_from.empty()) return {};
  return r.plan_from;
}
V get_optimizer(const R& r) {
  if (r.optimizer == nullptr) return {};
  return std::string(r.optimizer->name);
}
V get_preference(const R& r) {
  if (r.preference == nullptr) return {};
  return std::string(r.preference->name);
}
V get_precision(const R& r) {
  if (!r.precision) return {};
  return std::string(name(*r.precision));
}
V get_peer_access(const R& r) {
  if (!r.peer_access) return {};
  return std::string(*r.peer_access == PeerAccess::yes ? "yes" : "no");
}
V get_offload(const R& r) {
  if (!r.offload) return {};
  return std::string(offload_name(*r.offload));
}
V get_quantization(const R& r) {
  if (!r.quantization) return {};
  return std::string(row(*r.quantization).name);
}
const std::string& word(const V& v) { return std::get<std::string>(v); }

constexpr std::array<RequestField, 58> field_rows{{
    {"model", "MODEL", "MODEL", "catalog name, alias such as 70b, or the path of a config.json",
     text_kind, 0, 0, nullptr, set_plain<&R::model>, get_plain<&R::model>},
    {"gpus", "--gpus", "GPUS", "6x24GB, 2xRTX-3090, 16xH100-SXM, 4 nodes of 8xA100-80GB, dgx-h100",
     text_kind, 0, 0, nullptr, set_plain<&R::gpus>, get_plain<&R::gpus>},
    {"nodes", "--nodes", "N", "spread the GPUs over this many nodes", integer_kind, 1, 1'000'000,
     nullptr, set_integer<&R::nodes>, get_integer<&R::nodes>},
    {"gpus_per_node", "--gpus-per-node", "N", "GPUs in each node", integer_kind, 1, 1'000'000,
     nullptr, set_integer<&R::gpus_per_node>, get_integer<&R::gpus_per_node>},
    {"network", "--network", "NAME", "network between nodes (catalog list networks)", text_kind, 0,
     0, nullptr, set_plain<&R::network>, get_plain<&R::network>},
    {"network_share",
     "--network-share",
     "FRACTION",
     "share of the network's rate that other jobs leave to this one (1): 0.5",
     number_kind,
     10,
     1'000,
     nullptr,
     set_plain<&R::network_share>,
     get_plain<&R::network_share>,
     {},
     NumberLetters::percent},
    {"host_ram_gib", "--host-ram", "SIZE", "CPU memory of every node: 128GiB", FieldKind::size,
     1 << 20, exabyte, nullptr, set_plain<&R::host_ram>, get_plain<&R::host_ram>},
    {"used_memory_gib", "--used-memory", "SIZE",
     "GPU memory that other programs hold, as nvidia-smi shows before the run (a desktop, WSL): "
     "1.2GiB",
     FieldKind::size, 1, exabyte, nullptr, set_plain<&R::used_memory>, get_plain<&R::used_memory>},
    {"pcie_lanes", "--pcie-lanes", "N",
     "PCIe lanes of every GPU's slot, riser or eGPU cable (nvidia-smi pcie.link.width.max): 4",
     integer_kind, 1, 16, nullptr, set_integer<&R::pcie_lanes>, get_integer<&R::pcie_lanes>},
    {"power_limit_w",
     "--power-limit",
     "WATTS",
     "power limit of every GPU (nvidia-smi -pl), up to the board's own: 280",
     integer_kind,
     1,
     10'000,
     nullptr,
     set_integer<&R::power_limit_w>,
     get_integer<&R::power_limit_w>,
     {},
     NumberLetters::watts},
    {"peer_access", "--peer-access", "YES|NO",
     "whether GPUs reach each other over PCIe (nvidia-smi topo -p2p r): yes, or no, as with most "
     "consumer cards' drivers, NCCL_P2P_LEVEL=NVL and many cloud containers",
     text_kind, 0, 0, yes_or_no,
     [](R& r, const V& v) { r.peer_access = word(v) == "yes" ? PeerAccess::yes : PeerAccess::no; },
     get_peer_access},
    {"method", "--method", "METHOD", "pretrain, full, lora, dora or qlora; repeat for several",
     FieldKind::texts, 0, 0, methods, set_methods, get_methods},
    {"preference", "--preference", "NAME",
     "preference training: dpo, kto, orpo, simpo or reward (a reward model)", text_kind, 0, 0,
     preferences, [](R& r, const V& v) { r.preference = preference_named(word(v)); },
     get_preference},
    {"framework", "--framework", "NAME", "training framework (catalog list frameworks)", text_kind,
     0, 0, nullptr, set_plain<&R::framework>, get_plain<&R::framework>},
    {"sequence",
     "--seq",
     "TOKENS",
     "tokens per sequence; 4k is 4096",
     integer_kind,
     1,
     100'000'000,
     nullptr,
     set_integer<&R::sequence>,
     get_integer<&R::sequence>,
     {},
     NumberLetters::binary},
    {"lengths", "--lengths", "FILE",
     "token count of every sample (one per line, or a JSON array): what padding and packing do",
     text_kind, 0, 0, nullptr, set_plain<&R::lengths>, get_plain<&R::lengths>, "fit simulate"},
    {"batch", "--batch", "N", "sequences per step over all GPUs", integer_kind, 1, 1'000'000,
     nullptr, set_integer<&R::batch>, get_integer<&R::batch>},
    {"microbatch", "--microbatch", "N", "sequences that one GPU processes at once", integer_kind, 1,
     1'000'000, nullptr, set_integer<&R::microbatch>, get_integer<&R::microbatch>},
    {"images", "--images", "N", "images per sequence, for a model with a vision tower",
     integer_kind, 0, 10'000, nullptr, set_integer<&R::images>, get_integer<&R::images>},
    {"image_tokens", "--image-tokens", "N", "tokens that each image takes up in the sequence",
     integer_kind, 1, 1'000'000, nullptr, set_integer<&R::image_tokens>,
     get_integer<&R::image_tokens>},
    {"plans", "--plan", "PLAN", "dp=8,zero=3 or tp=4,pp=4,...; repeat for several",
     FieldKind::texts, 0, 0, nullptr,
     [](R& r, const V& v) { r.plans = std::get<std::vector<std::string>>(v); }, get_plans},
    {"plan_from", "--plan-from", "FILE",
     "read plan and settings from a file of DeepSpeed, Accelerate, axolotl, LLaMA-Factory, "
     "ms-swift, "
     "torchtune, torchtitan, Megatron or a Trainer, or a folder of them",
     FieldKind::texts, 0, 0, nullptr,
     [](R& r, const V& v) { r.plan_from = std::get<std::vector<std::string>>(v); }, get_plan_from},
    {"recompute", "--recompute", "POLICY",
     "none, selective, selective-op, full, every-K-layers, blocks-N, best or best-N", text_kind, 0,
     0, nullptr, set_plain<&R::recompute>, get_plain<&R::recompute>},
    {"offload", "--offload", "WHAT",
     "none, params, optimizer, activations, params+optimizer, ... or all", text_kind, 0, 0,
     offloads, [](R& r, const V& v) { r.offload = offload_named(word(v)); }, get_offload},
    {"optimizer", "--optimizer", "NAME", "adamw, adamw8bit, sgd, lion, adafactor, muon, ...",
     text_kind, 0, 0, optimizers, [](R& r, const V& v) { r.optimizer = optimizer_named(word(v)); },
     get_optimizer},
    {"precision", "--precision", "FORMAT", "bf16, fp16, fp32, tf32, fp8, mxfp8 or nvfp4", text_kind,
     0, 0, formats, [](R& r, const V& v) { r.precision = dtype_named(word(v)); }, get_precision},
    {"fp8_attention", "--fp8-attention", "",
     "attention in 8 bits too, as Transformer Engine's fp8_dpa: with --precision mxfp8",
     FieldKind::flag, 0, 0, nullptr, set_flag<&R::fp8_attention>, get_flag<&R::fp8_attention>},
    {"lora_rank", "--lora-rank", "R", "rank of the adapters", integer_kind, 1, 65'536, nullptr,
     set_integer<&R::lora_rank>, get_integer<&R::lora_rank>},
    {"lora_targets", "--lora-targets", "LINEARS",
     "all-linear, attention, attention-qv, mlp, or a list such as q,v,down", text_kind, 0, 0,
     nullptr, set_plain<&R::lora_targets>, get_plain<&R::lora_targets>},
    {"quantization", "--quantization", "FORMAT",
     "format of the frozen weights: none, nf4, nf4-double, int8, gptq, fp8 or nvfp4", text_kind, 0,
     0, quantizations, [](R& r, const V& v) { r.quantization = quantization_named(word(v)); },
     get_quantization},
    {"fused_loss", "--fused-loss", "",
     "head and loss in one kernel, as Liger's fused linear cross-entropy", FieldKind::flag, 0, 0,
     nullptr, set_flag<&R::fused_loss>, get_flag<&R::fused_loss>},
    {"expandable_segments", "--expandable-segments", "",
     "PYTORCH_ALLOC_CONF=expandable_segments:True: the allocator's segments grow", FieldKind::flag,
     0, 0, nullptr, set_flag<&R::expandable_segments>, get_flag<&R::expandable_segments>},
    {"expert_imbalance", "--expert-imbalance", "TIMES",
     "tokens of the fullest rank's experts over the mean: 1 if balanced, as pretraining is taken",
     number_kind, 1'000, 1'000'000, nullptr, set_plain<&R::expert_imbalance>,
     get_plain<&R::expert_imbalance>},
    {"samples", "--samples", "N", "also give the time for this many sequences: 10k", integer_kind,
     1, most_samples, nullptr, set_integer<&R::samples>, get_integer<&R::samples>, amounts,
     NumberLetters::decimal},
    {"tokens", "--tokens", "N", "also give the time for this many tokens: 15B, 1T", integer_kind, 1,
     most_tokens, nullptr, set_integer<&R::tokens>, get_integer<&R::tokens>, amounts,
     NumberLetters::decimal},
    {"profile", "--profile", "NAME",
     "calibration profile: a name in catalog/profiles, or a file (default: by GPU)", text_kind, 0,
     0, nullptr, set_plain<&R::profile>, get_plain<&R::profile>},
    {"unfold", "--unfold", "", "simulate every rank instead of one of each kind", FieldKind::flag,
     0, 0, nullptr, set_flag<&R::unfold>, get_flag<&R::unfold>,
     "fit simulate compare launch sweep"},
    {"jitter", "--jitter", "SHARE", "relative standard deviation of every kernel's time: 0.05",
     number_kind, 0, 500, nullptr, set_plain<&R::jitter>, get_plain<&R::jitter>, "simulate"},
    {"straggler", "--straggler", "TIMES",
     "one GPU, drawn by --seed, takes this many times as long: 1.3", number_kind, 1'000, 100'000,
     nullptr, set_plain<&R::straggler>, get_plain<&R::straggler>, "simulate"},
    {"seed", "--seed", "N", "random seed of --jitter and --straggler", integer_kind, 0,
     9'007'199'254'740'991, nullptr, set_integer<&R::seed>, get_integer<&R::seed>, "simulate"},
    {"loader_sequences_per_s", "--loader-rate", "RATE",
     "sequences per second that the data loaders of one node deliver", number_kind, 1,
     1'000'000'000'000'000, nullptr, set_plain<&R::loader_sequences_per_s>,
     get_plain<&R::loader_sequences_per_s>},
    {"measured_step_s", "--measured-step", "TIME",
     "a step as your log tells it, to hold beside the forecast: 3.2, 3.2s/it, 1.5it/s", number_kind,
     1, 1'000'000'000, nullptr, set_plain<&R::measured_step_s>, get_plain<&R::measured_step_s>,
     "simulate", NumberLetters::seconds},
    {"measured_memory_gib", "--measured-memory", "SIZE",
     "the peak of a GPU as torch or nvidia-smi tells it, to hold beside the forecast: 17.9GiB",
     FieldKind::size, 1 << 20, exabyte, nullptr, set_plain<&R::measured_memory>,
     get_plain<&R::measured_memory>, "simulate"},
    {"explain", "--explain", "", "derive every figure, with sources", FieldKind::flag, 0, 0,
     nullptr, set_flag<&R::explain>, get_flag<&R::explain>, judging},
    {"reach", "--reach", "",
     "how long a sequence, how large a microbatch and which LoRA rank would still fit",
     FieldKind::flag, 0, 0, nullptr, set_flag<&R::reach>, get_flag<&R::reach>, "fit"},
    {"why_not", "--why-not", "PLAN", "say which rules this other plan breaks, or what it costs",
     FieldKind::texts, 0, 0, nullptr,
     [](R& r, const V& v) { r.why_not = std::get<std::vector<std::string>>(v); },
     [](const R& r) { return r.why_not.empty() ? V() : V(r.why_not); }, judging},
    {"top", "--top", "N", "how many plans (10)", integer_kind, 1, 1'000, nullptr,
     set_integer<&R::top>, get_integer<&R::top>, "plan"},
    {"objective", "--objective", "NAME", "what to rank by (time)", text_kind, 0, 0, nullptr,
     set_plain<&R::objective>, get_plain<&R::objective>, "plan"},
    {"fix", "--fix", "KEYS",
     "fix these keys of a plan and search the rest: tp=8,pp=4, or several values: mbs=1|2",
     text_kind, 0, 0, nullptr, set_plain<&R::fix>, get_plain<&R::fix>, "plan"},
    {"max_memory", "--max-memory", "FRACTION",
     "largest share of a GPU's memory that a plan may use by the forecast (1)", number_kind, 50,
     1'000, nullptr, set_plain<&R::max_memory>, get_plain<&R::max_memory>, "plan",
     NumberLetters::percent},
    {"allow_tight", "--allow-tight", "",
     "also plans whose memory interval reaches beyond the card; otherwise only where nothing else "
     "fits",
     FieldKind::flag, 0, 0, nullptr, set_flag<&R::allow_tight>, get_flag<&R::allow_tight>, "plan"},
    {"pareto", "--pareto", "",
     "also the plans that no other beats in time, memory (by 32nds of a card) and rent at once",
     FieldKind::flag, 0, 0, nullptr, set_flag<&R::pareto>, get_flag<&R::pareto>, "plan"},
    {"schedules", "--schedules", "",
     "compare the pipeline schedules of one plan, also at equal memory", FieldKind::flag, 0, 0,
     nullptr, set_flag<&R::schedules>, get_flag<&R::schedules>, "compare"},
    {"memory_gib", "--memory", "SIZE",
     "with --schedules: what each may take per GPU, such as 60GiB (else what the plan needs)",
     FieldKind::size, 1, exabyte, nullptr, set_plain<&R::memory>, get_plain<&R::memory>, "compare"},
    {"target", "--target", "TARGET", "what the files are for", text_kind, 0, 0, nullptr,
     set_plain<&R::target>, get_plain<&R::target>, "launch"},
    {"learning_rate", "--learning-rate", "RATE",
     "learning rate to write, scaled where the batch differs from --learning-rate-batch",
     number_kind, 0, 1'000'000, nullptr, set_plain<&R::learning_rate>, get_plain<&R::learning_rate>,
     "launch"},
    {"learning_rate_batch", "--learning-rate-batch", "N",
     "sequences per step that the learning rate was found with", integer_kind, 1, 100'000'000,
     nullptr, set_integer<&R::learning_rate_batch>, get_integer<&R::learning_rate_batch>, "launch"},
    {"budget_usd", "--budget", "USD", "US dollars for the whole run (3000)", number_kind, 1,
     1'000'000'000'000'000, nullptr, set_plain<&R::budget>, get_plain<&R::budget>, "shop"},
}};

bool has_word(std::string_view words, std::string_view one) {
  const std::vector<std::string> each = parted(words, ' ');
  return std::find(each.begin(), each.end(), one) != each.end();
}

// Commands that ask but a few of the rows which belong to all others.
struct FewFields {
  std::string_view command, keys;
};
constexpr std::array<FewFields, 1> few_fields{
    {{"collectives",
      "gpus nodes gpus_per_node network network_share pcie_lanes peer_access profile"}}};

}  // namespace

bool RequestField::belongs_to(std::string_view asking) const {
  for (const FewFields& few : few_fields)
    if (few.command == asking) return has_word(few.keys, key);
  return commands.empty() || has_word(commands, asking);
}

std::string commands_asking(const RequestField& field) {
  if (field.commands.empty()) return "a command that forecasts a run";
  std::vector<std::string> words = parted(field.commands, ' ');
  std::erase(words, "sweep");  // whose keys stand in a study
  return listed(std::vector<std::string_view>(words.begin(), words.end()), " or ");
}

std::span<const RequestField> request_fields() { return field_rows; }

const RequestField* request_field(std::string_view key) {
  for (const RequestField& field : request_fields())
    if (field.key == key) return &field;
  return nullptr;
}

FieldValue as_spelled(const RequestField& field, FieldValue value) {
  if (field.choices == nullptr) return value;
  const Choices choices = field.choices();
  const auto spell = [&](std::string& word) {
    if (std::find(choices.begin(), choices.end(), word) != choices.end()) return;
    for (const std::string_view choice : choices)
      if (same_name(choice, word)) {
        word = std::string(choice);
        return;
      }
    if (field.choices != optimizers) return;
    for (const OptimizerSpelling& other : optimizer_spellings)
      if (same_name(other.text, word)) {
        word = std::string(other.name);
        return;
      }
  };
  if (auto* one = std::get_if<std::string>(&value)) spell(*one);
  if (auto* many = std::get_if<std::vector<std::string>>(&value))
    for (std::string& word : *many) spell(word);
  return value;
}

}  // namespace shardwise
