// KnownLayers: the bounds of layers, found once for all plans that are alike to a layer.
//
// What a layer computes and keeps depends on how tensors, sequences and experts are cut, on the
// microbatch and on what is recomputed. Of how states are sharded it sees little (SeenSharding), of
// offloads nothing.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/layer_bounds.hpp"
#include "planner/search/plan_bounds.hpp"

namespace shardwise {

// Safe to ask from several threads.
class KnownLayers {
 public:
  // `site`: which of several clusters; `plan`: laid over it without stages. The same workload must
  // come at the same address.
  std::shared_ptr<const LayerBounds> of(std::size_t site, const BoundSite& at,
                                        const ParallelPlan& plan);

 private:
  // All that the bounds of a layer depend on.
  struct Key {
    std::size_t site = 0;
    const Workload* workload = nullptr;
    SeenSharding sharding;
    int tensor = 1;
    bool sequence_parallel = false;
    int context = 1;
    ContextKind context_kind{};
    int expert = 1, expert_tensor = 1;
    int microbatch = 1, microbatches = 1;
    bool async_tensor = false;
    std::string recompute;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  template <class Value, class Make>
  std::shared_ptr<const Value> found(std::map<Key, std::shared_ptr<const Value>>& known,
                                     const Key& key, const Make& make);

  std::shared_ptr<const BoundLayers> layers_under(const BoundSite& at, const ParallelPlan& plan,
                                                  const Key& key);
  struct Apart {
    std::shared_ptr<const LayersApart> known;
    bool is_new;  // there is none of the first key
  };
  Apart apart_of(const Key& first, const Key& under_any);
  const std::vector<KernelModel>& kernels_of(const BoundSite& at, const ParallelPlan& plan,
                                             std::size_t site);

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const LayerBounds>> known_;
  // Under policies that every block can have for itself, of which the others are put together.
  std::map<Key, std::shared_ptr<const BoundLayers>> layers_;
  // Layers that plans share which differ in their experts' ranks alone: under one policy, and under
  // any (an empty name).
  std::map<Key, std::shared_ptr<const LayersApart>> apart_;
  std::map<std::pair<std::size_t, const Workload*>, std::vector<KernelModel>> kernels_;
};

}  // namespace shardwise
