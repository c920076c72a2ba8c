// LayerBounds: the least that each layer of the model can take in time and memory on one rank, for
// everything in a plan that a layer depends on: tensor, context and expert parallelism, microbatch
// and recomputation, not how many data ranks or stages there are.
//
// The times are the predictor's own kernel and collective models (CostModel::layer_time), of the
// fastest kind of GPU in the cluster. What they leave out can only add to a step: slowing down
// beside collectives, waiting for links, for the host or for other stages.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/profile.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/operators.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/network/collective_model.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Of one microbatch.
struct LayerBound {
  Seconds forward, again, input, weight;  // `again`: what recomputation adds
  Seconds host;                           // CPU time to issue it all, weights whole
  Bytes saved;                            // from forward to backward
  Bytes rise;                 // of what is held while it goes back, its output's gradient included
  std::int64_t ungraded = 0;  // of its trained weights, those that no gradient reaches
};

// What one pass over a run of layers takes at the least.
struct RunBound {
  Seconds forward, backward;  // backward: recomputation, inputs and weights
  Bytes saved;
  Bytes rise;    // of its last layer; of a run only
  Seconds host;  // of both passes
};

// Layers with the same parameters.
struct LayerKind {
  LayerParameters parameters;
  bool trainable = true;
  int layers = 0;
  std::int64_t ungraded = 0;  // LayerBound::ungraded
};

// Layers that were bounded, for other plans. Definitions are without operators and scripts.
struct LayersApart {
  std::deque<LayerDefinition> definitions;
  std::vector<LayerBound> bounds;  // of each

  // Where it is not among them.
  void add(const LayerDefinition& definition, const LayerBound& bound);
};

// What bounds of other plans have found, and where these are told for others.
struct LentToLayers {
  const LayersApart* known = nullptr;                 // the same in this plan under this policy
  const std::vector<KernelModel>* kernels = nullptr;  // of each group of nodes, in training
  LayersApart* apart = nullptr;                       // to be filled: layers without experts
};

// In training, of each group of nodes; the same for all plans on all of a cluster's GPUs.
std::vector<KernelModel> training_kernels(const Workload& workload, const ParallelPlan& plan,
                                          const Cluster& cluster, const Profile& profile);

// The whole model on one stage under one policy, layer by layer: embedding, blocks, head.
struct BoundLayers {
  std::vector<LayerBound> layers;
  std::vector<LayerKind> kinds;
  std::vector<std::uint16_t> kind_of;  // of each block

  // REQUIRES a policy that every block can have for itself. `plan`: as below.
  BoundLayers(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster,
              const Profile& profile, const CollectiveModel& collectives, const std::string& policy,
              const LentToLayers& lent = {});

 private:
  std::size_t kind_among_blocks(const LayerDefinition& definition, std::int64_t ungraded);
};

class LayerBounds {
 public:
  // `plan` is laid over the cluster without stages (pipeline 1) and multiplies out to it.
  LayerBounds(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster,
              const Profile& profile, const CollectiveModel& collectives);
  // The same from layers that are known: `under` gives those of this plan under another policy.
  using Under = std::function<std::shared_ptr<const BoundLayers>(const std::string& policy)>;
  LayerBounds(const Workload& workload, const ParallelPlan& plan, const Under& under);

  // A model chunk: blocks [first, first + count), and the ends of the model where it holds them.
  struct Chunk {
    int first = 0, count = 0;
    bool embedding = false, head = false;
  };
  RunBound run(const Chunk& chunk) const;
  RunBound whole() const { return run({0, blocks(), true, true}); }
  int blocks() const { return static_cast<int>(checked_.size()) - 1; }
  // Of one microbatch in the whole model, however it is cut into chunks (a policy that counts
  // blocks may reach all of them where every chunk has its first ones).
  Bytes least_saved() const;

  // Any `count` blocks of the model, in `chunks` chunks of at least `each`: no less than that.
  RunBound least(int count, int chunks, int each) const {
    RunBound b = least_[static_cast<std::size_t>(count)];
    if (by_position_) b.backward += static_cast<double>(redone(chunks, each)) * least_again_;
    return b;
  }
  Bytes least_saved(int blocks) const { return least_[static_cast<std::size_t>(blocks)].saved; }
  Seconds embedding_time() const { return time_of(embedding_); }
  Seconds embedding_host() const { return embedding_.host; }
  Seconds head_host() const { return head_.host; }
  Seconds head_time() const { return time_of(head_); }
  const std::vector<LayerKind>& kinds() const { return layers_->kinds; }
  // The first kind is the embedding, the last one the head; between them those of the blocks.
  std::size_t kind_of(int block) const { return layers_->kind_of[static_cast<std::size_t>(block)]; }
  // The layers themselves, for a plan that this bounds: nullptr where they are not the plan's own,
  // as its stages and data ranks or the places of its blocks make a difference. Built when they are
  // first asked for, as few are; safe to ask from several threads.
  const std::deque<LayerDefinition>* definitions(const Workload& workload,
                                                 const ParallelPlan& plan) const;
  // What they take in such a plan, likewise. REQUIRES the same workload, and the same cluster,
  // profile and collectives at every call.
  const LayerTimes* times(const Workload& workload, const ParallelPlan& plan,
                          const Cluster& cluster, const Profile& profile,
                          const CollectiveModel& collectives) const;
  // Whether some checkpoint spans several blocks, whose weights are then gathered together.
  bool joins_blocks() const { return joins_blocks_; }

 private:
  // Blocks that run again in so many chunks of so many blocks.
  int redone(int chunks, int each) const {
    return chunks * ((std::min(each, most_) + stride_ - 1) / stride_);
  }
  static Seconds time_of(const LayerBound& l) { return l.forward + l.again + l.input + l.weight; }

  // Sums over the blocks before the i-th, and where that makes a difference as if none ran again;
  // the same with each of its numbers sorted, least first.
  std::vector<RunBound> checked_, plain_, least_;
  std::vector<Bytes> rises_;  // of each block
  LayerBound embedding_, head_;
  std::shared_ptr<const BoundLayers> layers_;
  ParallelPlan plan_;
  mutable std::once_flag defined_;
  mutable std::deque<LayerDefinition> definitions_;
  struct Timed {
    std::once_flag once;
    LayerTimes times;
  };
  mutable std::array<Timed, 2> timed_;  // with whole weights; with sharded ones
  SeenSharding seen_;
  bool joins_blocks_ = false, vague_ = false;
  // Which blocks of a chunk are recomputed: the first `most_` of them, every `stride_`-th.
  int most_ = 0, stride_ = 1;
  bool by_position_ = false;  // neither none nor all of them
  Seconds least_again_;
  Bytes least_plain_, least_checked_;
};

}  // namespace shardwise
