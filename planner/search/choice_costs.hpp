// ChoiceCosts: what the plans that one choice looks at have in common, found once.
//
// The workload depends on whether a plan shards with ZeRO, collectives on the cluster; layers and
// what they take on what KnownLayers tells plans apart by.
#pragma once

#include "planner/forecast/forecast_parts.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/known_layers.hpp"
#include "simulator/network/collective_model.hpp"

namespace shardwise {

// Safe to ask from several threads. Never copied: what it gives refers to it.
class ChoiceCosts {
 public:
  // All arguments outlive it.
  ChoiceCosts(const ResolvedRequest& request, Method method, const Cluster& cluster);
  ChoiceCosts(const ChoiceCosts&) = delete;
  ChoiceCosts& operator=(const ChoiceCosts&) = delete;

  const Workload& workload(const ParallelPlan& plan) const {
    if (is_unlowered(plan)) return unlowered_;
    return plan.zero_stage > 0 ? with_zero_ : without_zero_;
  }
  // For forecasts of any plan.
  const KnownCosts& collectives() const { return collectives_known_; }
  // For forecasts of this plan's step. REQUIRES a legal plan.
  KnownCosts known(const ParallelPlan& plan);
  // The plan's step takes no less (plan_bounds.hpp). REQUIRES a legal plan.
  Seconds step_bound(const ParallelPlan& plan);

 private:
  // Whether its number format is another (left_unlowered), and its layers with it.
  bool is_unlowered(const ParallelPlan& plan) const;
  BoundSite site(const ParallelPlan& plan) const;
  std::shared_ptr<const LayerBounds> layers_of(const ParallelPlan& plan);

  const Cluster& cluster_;
  const Profile& profile_;
  const Workload without_zero_, with_zero_, unlowered_;
  CollectiveModel collectives_;
  const KnownCosts collectives_known_;
  KnownLayers layers_;
};

}  // namespace shardwise
