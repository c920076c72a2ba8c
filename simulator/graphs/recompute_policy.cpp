#include "simulator/graphs/recompute_policy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "catalog/names.hpp"

namespace shardwise {
namespace {

bool never(const LayerGraph&, std::size_t) { return false; }

bool core_attention(const LayerGraph& graph, std::size_t op) {
  return graph.operators[op].kind == OperatorKind::attention;
}

// Norms and the activation function: what one cheap kernel makes from something that is kept.
bool norms_and_activations(const LayerGraph& graph, std::size_t op) {
  constexpr std::array<std::string_view, 8> names{"attention_norm", "mlp_norm", "mamba_input_norm",
                                                  "mamba_norm",     "swiglu",   "silu",
                                                  "product",        "gelu"};
  return std::find(names.begin(), names.end(), graph.operators[op].name) != names.end();
}

// Matmuls are counted in order of execution; the 2nd, 4th, ... run again. Attention and the
// reducing collectives keep their outputs. The products of experts (aten._grouped_mm) are in
// neither list: not in PyTorch 2.15's compute_intensive_ops (torch/_functorch/partitioners.py), nor
// in torchtitan @b5bcd76c66 torchtitan/distributed/activation_checkpoint.py:31-94, of which only
// the all-to-all is; until 2026-03-23 each model had a list of its own, and not all have that.
// Neither has aten._scaled_mm_v2, which products in NVFP4 call (pytorch/ao @08879f3447
// torchao/prototype/moe_training/nvfp4_training/nvfp4_linear.py: nn.functional.scaled_mm); those in
// 8 bits call aten._scaled_mm, which is listed.
bool all_but_compute_intensive(const LayerGraph& graph, std::size_t op) {
  const Operator& it = graph.operators[op];
  if (it.unlisted) return true;
  if (it.kind == OperatorKind::attention) return false;
  if (it.kind == OperatorKind::communication) return it.name == std::string_view("gather_sequence");
  if (it.kind != OperatorKind::matmul) return true;
  int position = 0;
  for (std::size_t i = 0; i <= op; ++i)
    if (graph.operators[i].kind == OperatorKind::matmul && !graph.operators[i].unlisted) ++position;
  return position % 2 == 0;
}

constexpr std::array<RecomputeRow, 11> policy_rows{{
    {"none", false, false, never, "keep everything that backward needs"},
    {"selective", false, true, core_attention, "redo the attention kernel only"},
    {"selective-op", false, false, all_but_compute_intensive,
     "keep attention and every second matmul, redo the rest", false, true},
    {"norms-and-activations", false, false, norms_and_activations,
     "redo norms and activation functions only"},
    {"full", true, false, never, "keep block inputs only, redo every block"},
    {"every-%-layers", true, false, never, "one checkpoint for several blocks"},
    {"one-in-%-layers", true, false, never, "full for every K-th block, none for the others"},
    {"blocks-%", true, false, never, "full for the first blocks of a stage only"},
    {"modules-%", false, true, never, "redo named parts: modules-layernorm+moe_act"},
    {"best", false, false, never, "the least re-run time, block by block, that fits the card",
     true},
    {"best-%", false, false, never, "the same within so many GiB per GPU", true},
}};

// The number that stands for % in `pattern`, if `name` has that form.
std::optional<int> number_in(std::string_view name, std::string_view pattern) {
  const std::size_t mark = pattern.find('%');
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view head = pattern.substr(0, mark), tail = pattern.substr(mark + 1);
  if (name.size() <= head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail))
    return std::nullopt;
  const std::string_view digits = name.substr(head.size(), name.size() - head.size() - tail.size());
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1 || value > 100000)
    return std::nullopt;
  return value;
}

// The parts that stand for % in `pattern`, which no other row has letters for.
std::optional<RecomputeModules> modules_in(std::string_view name, std::string_view pattern) {
  const std::string_view head = pattern.substr(0, pattern.find('%'));
  if (!pattern.ends_with('%') || !name.starts_with(head)) return std::nullopt;
  return recompute_modules(name.substr(head.size()));
}

}  // namespace

std::span<const RecomputeRow> recompute_rows() { return policy_rows; }

Result<RecomputePolicy> recompute_policy(std::string_view name) {
  for (const RecomputeRow& row : policy_rows) {
    if (row.name == name) return RecomputePolicy{&row};
    if (const auto modules = modules_in(name, row.name)) {
      RecomputePolicy policy{&row};
      policy.modules = *modules;
      return policy;
    }
    if (const std::optional<int> n = number_in(name, row.name)) {
      RecomputePolicy policy{&row};
      if (row.searched)
        policy.budget = Bytes(std::int64_t{*n} << 30);
      else if (row.name.starts_with("every"))
        policy.blocks_per_checkpoint = *n;
      else if (row.name.starts_with("one"))
        policy.stride = *n;
      else
        policy.checkpointed_blocks = *n;
      return policy;
    }
  }
  const std::vector<std::string_view> names = names_in(policy_rows);
  const std::string meant = name == "true" || name == "yes" || name == "on" ? "did you mean full?"
                            : name == "false" || name == "no" || name == "off"
                                ? "did you mean none?"
                                : did_you_mean(name, names);
  return Problem{ProblemKind::request, "recompute",
                 "unknown policy '" + std::string(name) + "'; known: " + joined(names) +
                     " (% stands for a number, or for names joined by +)" +
                     (meant.empty() ? meant : "; " + meant)};
}

namespace {

// Whether a matmul or an attention kernel reads in backward what the operator makes.
bool read_by_kernels(const LayerGraph& graph, const Operator& made) {
  return std::any_of(graph.operators.begin(), graph.operators.end(), [&](const Operator& reader) {
    if (reader.kind != OperatorKind::matmul && reader.kind != OperatorKind::attention) return false;
    return std::any_of(made.outputs.begin(), made.outputs.end(), [&](TensorIndex t) {
      return std::find(reader.saves.begin(), reader.saves.end(), t) != reader.saves.end();
    });
  });
}

}  // namespace

std::vector<bool> operators_run_again(const LayerGraph& graph, const RecomputePolicy& policy,
                                      bool compiled) {
  std::vector<bool> again(graph.operators.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    const Operator& op = graph.operators[i];
    again[i] = policy.runs_again(graph, i) ||
               (compiled && op.kind == OperatorKind::pointwise && !op.passes_gradient &&
                !op.crosses_graphs && !read_by_kernels(graph, op));
  }
  return again;
}

}  // namespace shardwise
