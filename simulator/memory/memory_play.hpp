// The memory play: one rank's program order, allocation by allocation, through two training steps,
// and a third where a card with a limit has given cached memory back.
//
// PyTorch's allocator works in the order in which the host issues operations, not in the order in
// which the GPU runs them; so the order of a stage's pipeline slots is all that memory needs, and
// no clock. Step 1 makes gradients and, at its end, the optimizer states; step 2 is the steady
// state. Only as many microbatches are played as it takes to reach the most that are in flight.
#pragma once

#include "catalog/profile.hpp"
#include "simulator/memory/memory_ledger.hpp"
#include "simulator/memory/stream_lag.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/parameter_state.hpp"
#include "simulator/work_kind.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// What beside the plan decides how the allocator's stream goes.
struct PlayVariation {
  HostLead lead;
  // Partitions of the same model at shorter sequences, rising: batches before the longest.
  std::vector<const ModelPartition*> shorter;
  // Where tensors hold more than this, the play may end: nobody asks for its figures then.
  std::optional<Bytes> most_allocated = std::nullopt;
  bool raises_capacity = false;  // by what is missed, wherever it is
  // Where the capacity has been raised to this, the play may end: nobody asks how much further.
  std::optional<Bytes> raised_enough = std::nullopt;
};

struct StageMemory {
  MemoryPeak first_step;
  MemoryPeak steady;  // from the second step on
  Bytes loaded;       // after the model and optimizer were built, before the first step
  MemoryBreakdown after_forward{};  // when a step's last forward pass has ended
  Bytes reserved_at_step;           // by the allocator while the optimizer steps
  Bytes after_step;                 // still held when a step has ended
  // A capacity was given and, whatever the allocator gave back, missed. The other figures then say
  // nothing: the play ends there.
  bool ran_out = false;
  std::optional<Bytes> capacity;  // that was given, and raised
  // A play with this capacity from the start goes the same way, without a raise: until the last one
  // the allocator had missed memory only where it had nothing to give back, nobody to wait for and
  // no pages to map by halves, so to miss it has left no trace.
  bool kept_all = false;
  bool given_up = false;      // PlayVariation::most_allocated was exceeded; the figures are lower
  Bytes activations_on_host;  // the most that is offloaded at once
  LayerState state;           // bytes by kind of this rank's share of the model
  // The larger of the two peaks.
  const MemoryPeak& peak() const {
    return steady.allocated >= first_step.allocated ? steady : first_step;
  }
};

// What a rank held while it went through one layer of a pass, or while the optimizer stepped.
struct MemoryMoment {
  WorkKind pass = WorkKind::forward;  // forward, backward (recomputation included) or optimizer
  int chunk = 0, microbatch = 0;
  int layer = 0;   // of the chunk
  Bytes most;      // allocated at most
  Bytes after;     // allocated when the layer was done
  Bytes reserved;  // likewise, by the allocator
};

// The slots that are played: the fewest microbatches (two, one or two rounds of the pipeline) that
// already reach the most that are ever in flight, else the whole step (GPipe).
std::vector<Slot> slots_played(const ParallelPlan& plan, const PipelineSchedule& schedule,
                               int stage);
// Gradients that are made anew every step are all there after the first backward pass only; so the
// play goes on until as many microbatches as ever are in flight again. Where freed blocks wait for
// the GPU, four rounds of the pipeline are played, if a step has them.
std::vector<Slot> slots_of_step(const Workload& workload, const ParallelPlan& plan,
                                const PipelineSchedule& schedule, int stage);

StageMemory play_memory(const Workload& workload, const ParallelPlan& plan,
                        const PipelineSchedule& schedule, const ModelPartition& partition,
                        int stage, const ContextCalibration& context,
                        std::optional<Bytes> capacity = std::nullopt,
                        const PlayVariation& variation = {});

// The moments of a whole steady step (the second), every microbatch of it, in program order.
std::vector<MemoryMoment> record_memory(const Workload& workload, const ParallelPlan& plan,
                                        const PipelineSchedule& schedule,
                                        const ModelPartition& partition, int stage,
                                        const ContextCalibration& context);

}  // namespace shardwise
