#include "planner/launch/megatron_plan.hpp"

#include <algorithm>
#include <array>

#include "planner/launch/megatron_model.hpp"
#include "planner/sentence.hpp"
#include "simulator/graphs/recompute_policy.hpp"

namespace shardwise {
namespace {

// Core attention, named modules, or whole blocks: every one of a stage, several at once, the first.
bool has_flags(const std::string& recompute) {
  const auto policy = recompute_policy(recompute);
  constexpr std::array<std::string_view, 6> known{"none",           "selective", "full",
                                                  "every-%-layers", "blocks-%",  "modules-%"};
  return policy && std::find(known.begin(), known.end(), policy->row->name) != known.end();
}

// Each instance of the distributed optimizer holds every expert, of which fewer ranks have copies
// than of the rest (megatron/core/parallel_state.py:1448).
bool divides_experts(const ParallelPlan& p) {
  if (!p.shard_group) return true;
  const int ranks = p.data * p.context * p.tensor, copies = ranks / (p.expert * p.expert_tensor);
  return copies % (p.data / *p.shard_group) == 0;
}

// What arguments.py, schedules.py and moe_layer.py stop at, and Transformer Engine's attention.
void refuse_what_stops(Refusals& to, const Question& q) {
  const ParallelPlan& p = q.plan;
  const Workload& w = q.workload;
  const bool adam = w.optimizer->name == "adamw";
  refuse_if(to, p.chunks > 1 && p.microbatches % p.pipeline != 0,
            sentence("Megatron-LM interleaves a multiple of ", p.pipeline,
                     " microbatches over as many stages, not ", p.microbatches));
  refuse_if(to, w.model.moe && p.tensor > 1 && !p.sequence_parallel,
            "Megatron-LM trains experts beside tensor parallelism with sequences split only "
            "(sp=true)");
  refuse_if(to, w.model.moe && !divides_experts(p),
            sentence("the optimizer's ", p.data / p.shard_group.value_or(p.data),
                     " instances do not divide the copies of an expert"));
  refuse_if(to, p.zero_stage >= 2 && !adam && w.optimizer->name != "sgd-momentum",
            sentence("Megatron-FSDP (zero=2 and zero=3) has no ", w.optimizer->name));
  refuse_if(to, p.offload.optimizer && !adam, "Megatron-LM offloads Adam only");
  refuse_if(
      to,
      p.context > 1 && p.context_kind == ContextKind::ring && cuts_sequences(w.model, w.sequence),
      "Transformer Engine's ring attention sees no windows");
}

}  // namespace

void refuse_megatron_plan(Refusals& to, const Question& q) {
  const ParallelPlan& p = q.plan;
  refuse_if(to, !has_flags(p.recompute),
            sentence("Megatron-LM has no flags that recompute ", p.recompute));
  refuse_if(to, p.pipeline > 1 && p.schedule != (p.chunks > 1 ? chunked_schedule : usual_schedule),
            sentence("Megatron-LM schedules 1f1b, or interleaved with several model chunks; not ",
                     p.schedule, p.chunks > 1 ? " with" : " without", " model chunks"));
  refuse_if(to, p.layer_split, "Megatron-LM does not split layers over cards in turns");
  refuse_if(to, p.zero_stage >= 2 && p.pipeline > 1 && p.chunks > 1,
            "Megatron-FSDP does not go with interleaved stages here");
  refuse_if(to, p.offload.parameters || p.offload.activations,
            "Megatron-LM offloads the optimizer only");
  refuse_if(to, p.offload.optimizer && p.zero_stage != 1,
            "Megatron-LM offloads its distributed optimizer only (zero=1)");
  refuse_if(to, p.async_tensor && !p.sequence_parallel,
            "overlap of tensor communication needs sequence parallelism");
  refuse_what_stops(to, q);
}

}  // namespace shardwise
