#include "planner/search/known_layers.hpp"

#include <utility>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

template <class Value, class Make>
std::shared_ptr<const Value> KnownLayers::found(std::map<Key, std::shared_ptr<const Value>>& known,
                                                const Key& key, const Make& make) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known.find(key); it != known.end()) return it->second;
  }
  std::shared_ptr<const Value> made = make();
  const std::lock_guard lock(mutex_);
  return known.emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const LayerBounds> KnownLayers::of(std::size_t site, const BoundSite& at,
                                                   const ParallelPlan& p) {
  const Key key{site,
                &at.workload,
                seen_sharding(at.workload, p),
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
  const auto under = [&](const std::string& policy) {
    Key of_layers = key;
    std::get<std::string>(of_layers) = policy;
    return found(layers_, of_layers, [&] {
      return std::make_shared<const BoundLayers>(at.workload, p, at.cluster, at.profile,
                                                 at.collectives, policy);
    });
  };
  return found(known_, key, [&] {
    return std::make_shared<const LayerBounds>(at.workload, p, LayerBounds::Under(under));
  });
}

}  // namespace shardwise
