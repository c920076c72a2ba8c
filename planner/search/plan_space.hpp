// PlanSpace: every way to lay one workload over one cluster, as a product of named dimensions.
//
// A point is one position per dimension; its index is the mixed-radix number of the positions, the
// last dimension fastest. Two plans that are equally good are ranked by index, so positions go from
// what a framework does by itself to what has to be asked for.
//
//   data ranks    = GPUs / (tp x cp x pp)         microbatches = batch / (dp x mbs)
//
// Not every point is a plan. `why_not` gives the first broken rule: sizes that do not divide, a
// dimension that says nothing here (a schedule without stages, so that no plan is counted twice),
// then the rules of simulator/plan_rules.
//
// What the dimensions leave out, and so does every answer: stages with less than one layer each,
// uneven stages other than "embedding and head count as a layer" (and, on unequal GPUs, by speed),
// checkpoints over several blocks, shard groups below ZeRO 3, plans that a framework would train in
// another number format than asked for (left_unlowered), and what the request pins or holds
// fixed (plan_fix.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_fix.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

enum class PlanAxis : std::uint8_t {
  offload,
  zero,
  tensor,
  sequence_parallel,
  context,
  expert,
  expert_tensor,
  microbatch,
  recompute,
  pipeline,
  schedule,
  chunks,
  stages,
  shard_group,
};
inline constexpr std::size_t plan_axis_count = 14;
constexpr std::size_t index(PlanAxis axis) { return static_cast<std::size_t>(axis); }

// A position on each axis.
using PlanPoint = std::array<std::uint16_t, plan_axis_count>;

// How layers are dealt to stages. `by_memory` and beyond: the splits over cards of unlike memory
// that layers_by_memory() names, one after the other.
enum class StageDeal : std::uint8_t { even, ends_lighter, by_speed, by_memory };

// How chunks of layers are dealt to the stages of a pipeline and in which order they run: positions
// on three axes.
struct PipelineVariant {
  std::uint16_t schedule = 0, chunks = 0, stages = 0;
  int most_blocks = 0;  // of the largest chunk
};

class PlanSpace {
 public:
  // One method on one cluster. `workloads`: without and with a ZeRO stage, which may mean another
  // engine (Framework::with_zero). What the request states (a microbatch, a recompute policy, an
  // offload) pins its dimension. All arguments outlive the space.
  PlanSpace(const ResolvedRequest& request, const Workload& without_zero, const Workload& with_zero,
            const Cluster& cluster);

  std::size_t values(PlanAxis axis) const { return sizes_[index(axis)]; }
  const PlanFix& fix() const { return fix_; }
  // Where the fix leaves nothing of a dimension: what it could be.
  const std::optional<std::string>& nothing_left() const { return nothing_left_; }
  double size() const;  // points, legal or not; beyond 2^53 only about
  std::string shown_value(PlanAxis axis, std::size_t position) const;

  // The plan at a point; nothing where sizes do not divide.
  std::optional<ParallelPlan> plan(const PlanPoint& point) const;
  // What layers depend on (the axes before `recompute`), laid over the cluster without stages.
  // REQUIRES a point of outer_points(). The framework's usual recompute policy.
  ParallelPlan layers_of(const PlanPoint& point) const;
  std::optional<std::string> why_not(const PlanPoint& point) const;
  const Workload& workload(const ParallelPlan& plan) const {
    return plan.zero_stage > 0 ? *with_zero_ : *without_zero_;
  }
  const Cluster& cluster() const { return *cluster_; }
  int batch() const { return batch_; }

  // Points that differ in the axes before `recompute`, those whose sizes can divide at all; the
  // later axes stand at their first position.
  std::vector<PlanPoint> outer_points() const;

  // The positions of pipeline depths over which this point's GPUs and batch can be shared out.
  std::vector<std::uint16_t> pipeline_positions(const PlanPoint& point) const;
  // Legal for the axes of `point` up to the pipeline, whatever is recomputed. On GPUs of one kind
  // they depend on the stages and the microbatches only, if there are any.
  std::vector<PipelineVariant> variants(PlanPoint point) const;
  bool legal_in_chunks(const PlanPoint& point, const PipelineVariant& variant) const;
  bool legal_with(PlanPoint point, const PipelineVariant& variant) const;  // but for the chunks
  static PlanPoint with(PlanPoint point, const PipelineVariant& variant);

  // Calls `visit` with every legal plan without shard groups whose axes up to `recompute` are those
  // of `point`, in rising order.
  using Visit = std::function<void(const PlanPoint&, const ParallelPlan&)>;
  void each_pipeline(PlanPoint point, const Visit& visit) const;

  // The positions of shard groups that such a plan can have beside "all".
  std::vector<std::uint16_t> shard_positions(const ParallelPlan& plan) const;

  // The most stages that a plan with these layers can have.
  int most_stages(const PlanPoint& point) const;

  // How many points are legal, counted factor by factor: rules concern either how GPUs are shared
  // out, or stages and microbatches, or shard groups, or recomputation in a chunk.
  std::int64_t legal() const;

 private:
  static constexpr std::string_view layer_split_name = "layer-split";  // among schedules_

  void add_shards_and_stages(const Cluster& cluster);
  void keep_fixed();
  void keep_fixed(PlanAxis axis, std::string_view key);
  bool outer_divides(const PlanPoint& point) const;
  bool shares_as_fixed(int data, int microbatches) const;
  int most_blocks(const ParallelPlan& plan) const;  // of a chunk
  std::optional<std::string> why_not_shared(const PlanPoint& point, const ParallelPlan& p) const;
  std::vector<int> dealt(const ParallelPlan& plan, StageDeal deal) const;
  std::size_t at(const PlanPoint& point, PlanAxis axis) const { return point[index(axis)]; }
  int number(const PlanPoint& point, PlanAxis axis) const {
    return numbers_[index(axis)][at(point, axis)];
  }

  const Workload* without_zero_;
  const Workload* with_zero_;
  const Cluster* cluster_;
  std::vector<std::vector<int>> splits_by_memory_;
  int gpus_ = 1, batch_ = 1;
  std::array<std::size_t, plan_axis_count> sizes_{};
  std::array<std::vector<int>, plan_axis_count> numbers_;  // what each position stands for
  PlanFix fix_;
  std::optional<std::string> nothing_left_;
  std::vector<Offload> offloads_;
  bool offload_asked_ = false;
  std::vector<std::string> recomputes_, schedules_;
  std::vector<RecomputePolicy> policies_;  // of recomputes_
  ContextKind context_kind_ = ContextKind::ring;
};

// The order of ties: by position, the first axis first.
inline bool before(const PlanPoint& a, const PlanPoint& b) { return a < b; }

}  // namespace shardwise
