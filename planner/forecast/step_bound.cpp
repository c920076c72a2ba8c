#include "planner/forecast/step_bound.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "planner/forecast/kernel_account.hpp"

namespace shardwise {
namespace {

// Of all layers of the model: what one stage does is made of the same kinds of layer.
StageAccount passes(const Question& q, const Profile& profile) {
  StageAccount all;
  for (const StageAccount& stage : kernel_accounts(q, profile)) all += stage;
  return all;
}

double arithmetic_share(const KernelAccount& a) {
  return a.time() > Seconds(0) ? a.arithmetic / a.time() : 1.0;
}

// The share of a kind of busy time that arithmetic limits. Where a schedule does not split the
// backward pass, its weight half runs with it.
double compute_share(const StageAccount& p, const StepBreakdown& b, const std::string& kind) {
  if (kind == name(WorkKind::forward)) return arithmetic_share(p.forward);
  if (kind == name(WorkKind::recompute))
    return arithmetic_share(p.recompute.time() > Seconds(0) ? p.recompute : p.forward);
  if (kind == name(WorkKind::backward_weight)) return arithmetic_share(p.backward_weight);
  if (kind == name(WorkKind::backward)) {
    KernelAccount backward = p.backward;
    if (!b.compute.contains(std::string(name(WorkKind::backward_weight))))
      backward += p.backward_weight;
    return arithmetic_share(backward);
  }
  return 0;  // the optimizer moves bytes
}

bool communicates(const std::string& kind) {
  constexpr std::array<WorkKind, 6> kinds{WorkKind::tensor_comm,       WorkKind::context_comm,
                                          WorkKind::expert_comm,       WorkKind::pipeline_send,
                                          WorkKind::gather_parameters, WorkKind::reduce_gradients};
  return std::any_of(kinds.begin(), kinds.end(), [&](WorkKind k) { return kind == name(k); });
}

}  // namespace

StepBound step_bound(const Question& question, const Forecast& forecast, const Profile& profile) {
  const StepBreakdown& b = forecast.breakdown;
  const StageAccount p = passes(question, profile);
  StepBound bound;
  const auto add = [&](BoundKind kind, Seconds t) {
    bound.parts[static_cast<std::size_t>(kind)] += t;
  };
  for (const auto& [kind, t] : b.compute) {
    if (communicates(kind)) {
      add(BoundKind::link, t);
      continue;
    }
    const double share = compute_share(p, b, kind);
    add(BoundKind::compute, share * t);
    add(BoundKind::hbm, (1 - share) * t);
  }
  for (const auto& [kind, t] : b.exposed)
    add(communicates(kind) ? BoundKind::link : BoundKind::host, t);
  add(BoundKind::bubble, b.bubble);
  add(BoundKind::host, b.host + b.offload);
  const auto largest = std::max_element(bound.parts.begin(), bound.parts.end());
  bound.kind = static_cast<BoundKind>(largest - bound.parts.begin());
  return bound;
}

}  // namespace shardwise
