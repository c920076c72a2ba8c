// PipelineSketch: what tells how long a pipeline takes and how much it holds at the least, in whole
// numbers that depend on its stages and microbatches only; so they are found once for all the ways
// to share out GPUs and batch that lead to the same pipeline.
//
// Of a stage: how many blocks it has, how many lie before its first chunk, whether it holds an end
// of the model, and how many microbatch-chunks it holds at once. With the least that any such
// number of blocks takes (LayerBounds), that bounds time as plan_bounds.hpp says, and memory.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_space.hpp"

namespace shardwise {

struct StageSketch {
  int blocks = 0, before = 0;  // of all its chunks; before the first of them
  int chunks = 0;
  int least_blocks = 0;  // of its smallest chunk
  // Of its chunks, those whose first layer is a block, and those whose last one is.
  int begin_with_block = 0, end_with_block = 0;
  int in_flight = 0;  // microbatch-chunks, or fewer
  bool embedding = false, head = false;
};

struct PipelineSketch {
  PipelineVariant variant;
  double passes = 0;  // of each kind through one local chunk
  bool splits_backward = false;
  std::vector<StageSketch> stages;  // those that tell most
};

// REQUIRES a legal plan, but for what is recomputed.
PipelineSketch sketch_of(const ParallelPlan& plan, int layers, const PipelineVariant& variant);

// The model states of layers as one plan shards them, smallest first.
class StateBounds {
 public:
  // `states`: the plan's layer_states().
  StateBounds(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan,
              const std::vector<LayerState>& states);
  // Of any stage with so many blocks and these ends; nothing outside of tensors.
  struct Least {
    Bytes kept, with_gradients, at_step;
  };
  Least of(const StageSketch& stage) const;

 private:
  std::vector<std::pair<Least, int>> blocks_;  // of each kind, and how many
  Least embedding_, head_;
};

// `within`: a time that is longer than this need not be the longest.
Seconds sketched_time(const PipelineSketch& sketch, const LayerBounds& layers,
                      const DataTraffic& traffic = {},
                      std::optional<Seconds> within = std::nullopt);
Bytes sketched_memory(const PipelineSketch& sketch, const LayerBounds& layers,
                      const StateBounds& states, const ParallelPlan& plan, Bytes outside);

// The sketches of all variants, remembered; safe to ask from several threads.
class KnownPipelines {
 public:
  using List = std::shared_ptr<const std::vector<PipelineSketch>>;
  // `site`: which of several clusters the space is of.
  List of(std::size_t site, const PlanSpace& space, const PlanPoint& point);

 private:
  static List found(const PlanSpace& space, const PlanPoint& point);

  std::mutex mutex_;
  std::map<std::tuple<std::size_t, int, int>, List> known_;
};

}  // namespace shardwise
