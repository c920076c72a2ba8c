// CostModel: seconds for every piece of a step, from kernels and collectives.
//
// A layer's pass is the sum of its kernels on one stream; its collectives are exposed, except
//   - ring context exchange, hidden behind the attention kernel of the same operator;
//   - tensor-parallel collectives that a framework issues beside the weight gradient (or, with
//     async TP, beside the matmul they feed): these hide behind the pass's matmuls, of which a
//     chunked overlap can use the share (tp - 1) / tp.
// Kernels beside a collective get the multiprocessors that its channels leave them: while c of s
// multiprocessors run NCCL's thread blocks (one per channel, src/device/common.h and
// src/enqueue.cc: the grid is the channels), compute goes on at the rate 1 - c / s.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/profile.hpp"
#include "simulator/costs/kernel_model.hpp"
#include "simulator/costs/step_costs.hpp"
#include "simulator/gradient_compression.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/network/collective_model.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/parameter_state.hpp"
#include "simulator/rank_layout.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Trainable parameters of one layer on one rank before any sharding: dense ones and experts.
struct TrainableElements {
  std::int64_t dense = 0, expert = 0;
  // Of the dense ones: those of linear layers, which may be stored in 8 bits; those of matrices,
  // and the sum of all matrices' rows and columns.
  std::int64_t linear = 0, in_matrices = 0, matrix_sides = 0;

  TrainableElements& operator+=(const TrainableElements& o) {
    dense += o.dense;
    expert += o.expert;
    linear += o.linear;
    in_matrices += o.in_matrices;
    matrix_sides += o.matrix_sides;
    return *this;
  }
};

// What layers take on the GPUs of each group of a cluster's nodes. Of how a plan shards states this
// sees only what graphs do (planner/search/known_layers.hpp) and whether weights are sharded
// (ZeRO-3), and of stages and data ranks nothing: plans that are alike in the rest have the same.
struct LayerTimes {
  struct One {
    const LayerDefinition* definition;
    std::size_t group;
    LayerTime time;
    std::vector<CollectiveUse> uses;  // of one microbatch
  };
  // Stable addresses.
  std::list<std::pair<std::size_t, KernelModel>> kernels;  // in training, of each group
  std::list<One> layers;
};

// How a plan's kernels run in training, attention among them: whoever times layers apart from a
// step has the same ones.
AttentionChoice attention_choice(const Workload& workload, const ParallelPlan& plan);

// What it has found it remembers: for one thread at a time.
class CostModel {
 public:
  // All arguments outlive the model. REQUIRES a legal plan (plan_problems).
  // `collectives`: of that cluster and profile, where they are at hand; `known`: of the same
  // workload, cluster and profile and of a plan that is alike, likewise.
  CostModel(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster,
            const Profile& profile, const CollectiveModel* collectives = nullptr,
            const LayerTimes* known = nullptr);
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;

  // `distinct`: of stages that are alike, only the first is filled in (StepCosts::alike), and so is
  // of the chunks of a stage (StageCosts::alike).
  enum class StagesCosted : std::uint8_t { all, distinct };
  StepCosts costs(const ModelPartition& partition, StagesCosted which = StagesCosted::all) const;

  // One layer on one GPU; public for tests and explanations. `uses`: where its collectives of one
  // microbatch are added.
  LayerTime layer_time(const LayerDefinition& definition, const KernelModel& kernels,
                       std::vector<CollectiveUse>* uses = nullptr) const;
  // What gradients take the CPU where weights are whole, for one of a step's microbatches; of no
  // two plans alike that differ in stage or microbatches, so layer_time() leaves it out.
  Seconds gradient_hooks(const LayerDefinition& definition, const KernelModel& kernels) const;
  // Whether gradients are reduced once, behind all passes of a step.
  bool reduces_at_end() const;

  // Of these layers on every kind of GPU, for other plans.
  LayerTimes times_of(const std::deque<LayerDefinition>& definitions) const;

  // What a step takes longer where managed memory for the optimizer's states finds no room on the
  // GPU (OptimizerRow::paged). `states`: of one rank.
  void swap_states(Bytes states, StageCosts& costs) const;

  // How long one layer keeps the stream of data-parallel collectives busy where weights are sharded
  // (ZeRO-3): gathered for each of so many passes each way, its gradients reduced. REQUIRES that
  // the plan compresses no gradients.
  Seconds stream_time(const LayerParameters& parameters, bool trainable, LayerRole role,
                      double passes) const;

  // What all gradients of a model that stages share out keep the stream of the mean stage busy with
  // at the least, however they are dealt and in whatever buckets; and once all are reduced, what it
  // gathers of its weights. Once per step. REQUIRES weights that are whole and a plan that
  // compresses no gradients.
  struct LeastTraffic {
    Seconds reduced, gathered;

    friend LeastTraffic operator+(const LeastTraffic& a, const LeastTraffic& b) {
      return {a.reduced + b.reduced, a.gathered + b.gathered};
    }
    friend LeastTraffic operator*(double times, const LeastTraffic& t) {
      return {times * t.reduced, times * t.gathered};
    }
  };
  LeastTraffic least_traffic(const TrainableElements& all) const;

  // How many consecutive stages lie on one node whose CPUs step the optimizers of all of them at
  // the speed of one memory; 1 where they do not share it, or where that is not sure.
  int stages_on_a_host() const;
  // What the CPUs of the mean node take at the least to step so many elements, those of one rank of
  // each stage added up; nothing where the GPUs step them.
  Seconds least_host_step(double elements) const;
  // What brings an offloaded layer's weights to the GPU for one pass takes alone.
  Seconds copy_in_time(const LayerState& layer) const;

  // How long the weights of one block are gathered for a pass, where they are sharded (ZeRO-3).
  struct BlockGathers {
    Seconds forward, backward;
  };
  BlockGathers block_gathers(const LayerParameters& parameters, bool trainable) const;

  const CollectiveModel& collectives() const { return collectives_; }
  const RankLayout& layout() const { return layout_; }

 private:
  struct PassCost;
  Bytes sent(const CommWork& comm) const;
  // `cold`: MemoryBoundModel::time; taken by the first kernel that moves bytes.
  void add_kernel(const Kernel& kernel, const KernelModel& kernels, PassCost& cost,
                  Bytes& cold) const;
  int attention_launches(const AttentionWork& work) const;
  // What the CPU runs around modules and units that hold sharded parameters, in a pass each way;
  // a recomputation finds them gathered, and has the modules' hooks alone.
  struct ShardingHooks {
    Seconds modules, units;
  };
  ShardingHooks sharding_hooks(const LayerDefinition& definition, const KernelModel& kernels) const;
  // What the CPU does for the reductions of a layer's gradients, in one backward pass.
  Seconds reduction_hooks(const LayerDefinition& definition, const KernelModel& kernels) const;
  // What DTensors take the CPU beside the operators that are called on them.
  struct DispatchCosts {
    Seconds forward, backward;
  };
  DispatchCosts tensor_dispatch(const LayerDefinition& definition,
                                const KernelModel& kernels) const;
  // What a checkpoint takes the CPU beyond the operators that run again.
  Seconds checkpoint_hooks(const LayerDefinition& definition, const KernelModel& kernels) const;
  void add_hooks(const LayerDefinition& definition, const KernelModel& kernels, bool runs_again,
                 LayerTime& time) const;
  // What a layer's unit of FSDP copies for one microbatch: on the stream that computes, in each
  // pass, and on that of the reductions, before each. Left out of layer_time() as gradient_hooks()
  // are.
  struct UnitCopies {
    Seconds forward, backward, reduction;
  };
  UnitCopies unit_copies(const LayerDefinition& definition, const KernelModel& kernels) const;
  UnitCopies partition_copies(const LayerDefinition& definition, const KernelModel& kernels) const;
  PassTime settle(const PassCost& cost, int multiprocessors) const;
  bool reduces_every_microbatch() const;
  bool reduces_in_line() const;  // with every microbatch, on the stream that computes
  CollectiveUse use(WorkKind work, Collective collective, Bytes size, GroupKind group) const;
  // Of one layer, of which the stage has `layers`.
  Seconds reduce_time(const TrainableElements& elements, int layers, StageCosts& costs) const;
  Seconds compressed_reduce_time(const GradientCompression& row, const TrainableElements& elements,
                                 int layers, StageCosts& costs) const;
  Seconds reduce(Collective collective, double bytes, GroupKind group, int layers,
                 StageCosts& costs) const;
  double reduced_element() const;  // [B] of a gradient that goes over the wire as it is
  template <typename Sent>
  Seconds reductions(const TrainableElements& elements, Sent sent) const;
  // Weights of a layer that ranks put together: experts over the ranks that have the same ones.
  struct WholeWeights {
    double dense = 0, experts = 0;  // bytes
    int messages = 1;               // that carry them
  };
  static WholeWeights whole_weights(const LayerState& sharded, const LayerParameters& p);
  WholeWeights whole_weights(const TrainableElements& stepped) const;  // as they are stored
  // Of a block's weights, how much its recomputation gathers beside what backward does.
  double gathered_again(const LayerDefinition& d) const;
  template <typename Sent>
  Seconds gathers(const WholeWeights& whole, Sent sent) const;
  Seconds gather_time(const WholeWeights& whole, double per_step, StageCosts& costs) const;
  double multiprocessors_taken(GroupKind kind, int of) const;
  void slow_beside_collectives(const Gpu& gpu, StageCosts& costs) const;
  // Layers of one definition take the same on every stage with GPUs of that group.
  const LayerTimes::One& known_time(const LayerDefinition& definition, std::size_t group,
                                    LayerTimes& found) const;
  const KernelModel& kernels_of(std::size_t group, LayerTimes& found) const;
  // A chunk of a stage that stands for several that are alike.
  struct CostedChunk {
    const std::vector<ChunkLayer>* layers;
    std::size_t place;  // local chunk
    int times;          // how many of them the stage has
  };
  using CostedChunks = std::vector<CostedChunk>;
  static CostedChunks costed_chunks(const std::vector<ModelChunk>& chunks, StagesCosted which,
                                    std::vector<std::size_t>& alike);
  void add_copies(const LayerDefinition& definition, const UnitCopies& unit,
                  const KernelModel& kernels, LayerTime& time) const;
  StageCosts stage_costs(const std::vector<ModelChunk>& chunks, int stage, LayerTimes& found,
                         StagesCosted which) const;
  bool reshards(LayerRole role) const;  // weights, after forward
  void schedule_gathers(const CostedChunks& chunks, StageCosts& costs) const;
  void schedule_reduces(const CostedChunks& chunks, const KernelModel& kernels,
                        StageCosts& costs) const;
  Seconds read_partition(double elements, int tensors, const KernelModel& kernels) const;
  void schedule_optimizer(const LayerState& state, int tensors, const KernelModel& kernels,
                          const NodeGroup& group, StageCosts& costs) const;
  void schedule_offload(const CostedChunks& chunks, StageCosts& costs) const;
  void schedule_gradient_copies(const CostedChunks& chunks, StageCosts& costs) const;
  void schedule_activation_copies(const CostedChunks& chunks, StageCosts& costs) const;
  int stage_gpus_on_a_node() const;
  BytesPerSecond host_step_rate(const NodeGroup& group) const;  // of each GPU's share
  BytesPerSecond host_copy_rate() const;  // of each of them, while all of them copy
  Seconds host_per_kernel(const KernelModel& kernels) const;
  LayerState state_of(const LayerDefinition& definition) const;
  struct StageGroup {
    const NodeGroup* group;
    int ranks;  // of the stage
  };
  std::vector<StageGroup> groups_of_stage(int stage) const;
  void schedule_loading(StageCosts& first_stage) const;
  void balance_by_speed(StepCosts& costs) const;
  void schedule_tied(const ModelPartition& partition, StepCosts& costs) const;
  void schedule_second_copies(const ModelPartition& partition, StepCosts& costs) const;
  void tie(int first, int last, double elements, StepCosts& costs) const;

  const Workload& w_;
  const ParallelPlan& plan_;
  const Cluster& cluster_;
  const Profile& profile_;
  RankLayout layout_;
  struct KnownCollective {
    Collective collective;
    GroupKind group;
    Bytes size;
    CollectiveTime time;
  };
  mutable std::vector<KnownCollective> known_collectives_;  // a dozen or so
  std::optional<CollectiveModel> own_collectives_;
  const CollectiveModel& collectives_;
  const LayerTimes* known_;
};

TrainableElements trainable_elements(const Workload& workload, const LayerDefinition& definition);
// Likewise, without what matrices hold of them.
TrainableElements trainable_elements(const Workload& workload, const LayerParameters& parameters,
                                     bool trainable);

}  // namespace shardwise
