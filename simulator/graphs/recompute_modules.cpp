#include "simulator/graphs/recompute_modules.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace shardwise {
namespace {

using Names = std::initializer_list<std::string_view>;

bool one_of(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool follows(const LayerGraph& graph, std::size_t op, std::string_view name) {
  return std::any_of(graph.operators.begin(), graph.operators.begin() + static_cast<long>(op),
                     [&](const Operator& o) { return o.name == name; });
}

bool has_experts(const LayerGraph& graph) {
  return follows(graph, graph.operators.size(), "router");
}

bool plain_mlp(std::string_view name) {
  return one_of(name, {"up", "gate", "swiglu", "silu", "product", "gelu", "down"});
}

bool layernorm(const LayerGraph& graph, std::size_t op) {
  return one_of(graph.operators[op].name, {"attention_norm", "mlp_norm"});
}

bool core_attn(const LayerGraph& graph, std::size_t op) {
  return graph.operators[op].kind == OperatorKind::attention;
}

bool mla_up_proj(const LayerGraph& graph, std::size_t op) {
  if (core_attn(graph, op) || follows(graph, op, "attention")) return false;
  return one_of(graph.operators[op].name, {"q_up", "kv_up", "keys", "values"}) ||
         follows(graph, op, "kv_up");
}

bool mlp(const LayerGraph& graph, std::size_t op) {
  const std::string_view name = graph.operators[op].name;
  return !has_experts(graph) && (name == "mlp_norm" || plain_mlp(name) ||
                                 (name == "gather_sequence" && follows(graph, op, "mlp_norm")));
}

bool shared_experts(const LayerGraph& graph, std::size_t op) {
  return has_experts(graph) && plain_mlp(graph.operators[op].name);
}

bool moe_act(const LayerGraph& graph, std::size_t op) {
  return one_of(graph.operators[op].name, {"expert_clamp", "expert_activation"});
}

bool moe(const LayerGraph& graph, std::size_t op) {
  return shared_experts(graph, op) ||
         one_of(graph.operators[op].name,
                {"router", "dispatch", "expert_up", "expert_clamp", "expert_activation",
                 "expert_down", "combine", "weighted_sum", "latent_down", "latent_up"});
}

struct Row {
  std::string_view name;
  bool (*holds)(const LayerGraph& graph, std::size_t op);
};

constexpr std::array<Row, 7> module_rows{{{"layernorm", layernorm},
                                          {"core_attn", core_attn},
                                          {"mla_up_proj", mla_up_proj},
                                          {"mlp", mlp},
                                          {"shared_experts", shared_experts},
                                          {"moe_act", moe_act},
                                          {"moe", moe}}};

}  // namespace

std::optional<RecomputeModules> recompute_modules(std::string_view names) {
  RecomputeModules set = 0;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('+'));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto row = std::find_if(module_rows.begin(), module_rows.end(),
                                  [&](const Row& r) { return r.name == name; });
    if (row == module_rows.end()) return std::nullopt;
    set |= 1U << (row - module_rows.begin());
  }
  return set == 0 ? std::nullopt : std::optional(set);
}

bool in_modules(const LayerGraph& graph, std::size_t op, RecomputeModules modules) {
  for (std::size_t i = 0; i < module_rows.size(); ++i)
    if ((modules >> i & 1U) != 0 && module_rows[i].holds(graph, op)) return true;
  return false;
}

}  // namespace shardwise
