#include "planner/search/known_layers.hpp"

#include "simulator/graph_builder.hpp"

namespace shardwise {

std::shared_ptr<const LayerBounds> KnownLayers::of(std::size_t site, const BoundSite& at,
                                                   const ParallelPlan& p) {
  const Key key{site,
                &at.workload,
                casts_weights(at.workload, p),
                adds_gradient(at.workload, p),
                p.tensor,
                p.sequence_parallel,
                p.context,
                p.context_kind,
                p.expert,
                p.expert_tensor,
                p.microbatch,
                p.microbatches,
                p.async_tensor,
                p.recompute};
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  auto made =
      std::make_shared<const LayerBounds>(at.workload, p, at.cluster, at.profile, at.collectives);
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(made)).first->second;
}

}  // namespace shardwise
