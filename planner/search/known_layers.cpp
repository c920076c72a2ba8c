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

KnownLayers::Apart KnownLayers::apart_of(const Key& first, const Key& under_any) {
  const std::lock_guard lock(mutex_);
  if (const auto it = apart_.find(first); it != apart_.end()) return {it->second, false};
  const auto it = apart_.find(under_any);
  return {it == apart_.end() ? nullptr : it->second, true};
}

const std::vector<KernelModel>& KnownLayers::kernels_of(const BoundSite& at, const ParallelPlan& p,
                                                        std::size_t site) {
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = kernels_.try_emplace({site, &at.workload});
  if (is_new) place->second = training_kernels(at.workload, p, at.cluster, at.profile);
  return place->second;
}

// How experts are shared out is asked for layers with experts only (graphs/expert_graph.cpp), and
// only blocks run again.
std::shared_ptr<const BoundLayers> KnownLayers::layers_under(const BoundSite& at,
                                                             const ParallelPlan& p,
                                                             const Key& key) {
  Key under_policy = key;
  under_policy.expert = under_policy.expert_tensor = 0;
  Key under_any = under_policy;
  under_any.recompute.clear();
  const bool shares = at.workload.model.moe.has_value();
  const auto [known, is_new] = apart_of(shares ? under_policy : under_any, under_any);
  LayersApart apart;
  auto made = std::make_shared<const BoundLayers>(
      at.workload, p, at.cluster, at.profile, at.collectives, key.recompute,
      LentToLayers{known.get(), &kernels_of(at, p, key.site), is_new ? &apart : nullptr});
  if (!is_new) return made;
  auto ends = std::make_shared<LayersApart>();
  for (std::size_t i = 0; i < apart.bounds.size(); ++i)
    if (apart.definitions[i].role != LayerRole::block)
      ends->add(apart.definitions[i], apart.bounds[i]);
  const std::lock_guard lock(mutex_);
  apart_.try_emplace(under_any, std::move(ends));
  if (shares)
    apart_.try_emplace(under_policy, std::make_shared<const LayersApart>(std::move(apart)));
  return made;
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
    of_layers.recompute = policy;
    return found(layers_, of_layers, [&] { return layers_under(at, p, of_layers); });
  };
  return found(known_, key, [&] {
    return std::make_shared<const LayerBounds>(at.workload, p, LayerBounds::Under(under));
  });
}

}  // namespace shardwise
