// StepCosts: how long each piece of a training step takes on each pipeline stage, before anybody
// says in which order the pieces run.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/network/collective_use.hpp"

namespace shardwise {

// A run of kernels of one rank, one after the other. Where the CPU issues slowly first and the GPU
// is busy last, neither hides behind the other: run without a gap, the kernels would all be issued
// in time if the first of them began `lead` after the CPU did.
struct IssuedWork {
  Seconds compute;
  std::array<Seconds, 3> exposed{};  // collectives that nothing within the layer hides, by CommAxis
  Seconds host;                      // CPU time to issue it all
  Seconds lead;                      // of the CPU over the GPU, that the order of kernels asks for

  Seconds device() const { return compute + exposed[0] + exposed[1] + exposed[2]; }
  friend bool operator==(const IssuedWork&, const IssuedWork&) = default;
};
IssuedWork operator+(IssuedWork a, const IssuedWork& b);
IssuedWork operator-(IssuedWork a, const IssuedWork& b);
IssuedWork operator*(double share, IssuedWork a);

// One pass (forward, re-run, ...) through one layer on one rank.
struct PassTime {
  Seconds compute;                   // as in IssuedWork, of the whole pass
  std::array<Seconds, 3> exposed{};  //
  Seconds host;                      //
  Seconds lead;                      // as in IssuedWork, of what follows the last wait
  std::vector<IssuedWork> waited;    // parts of it, each before the CPU waits for the GPU
  Seconds copies;  // then, to the host or back, of activations: what the pass itself does not hide

  PassTime& operator+=(const PassTime& o);
  IssuedWork whole() const { return {compute, exposed, host, lead}; }
  IssuedWork after_waits() const;
  Seconds device() const { return whole().device() + copies; }
  bool is_host_bound() const;  // in any part between two waits, or not ahead of the GPU after one
  friend bool operator==(const PassTime&, const PassTime&) = default;
};

struct LayerTime {
  PassTime forward, recompute, backward_input, backward_weight;
  friend bool operator==(const LayerTime&, const LayerTime&) = default;
};

// What one rank moves between its GPU and the host during a step, in all, and how fast the ranks of
// its stage do that together where nothing else uses the way.
struct HostTraffic {
  Bytes copied_in, copied_out;
  BytesPerSecond copy_rate;
  Bytes optimizer;  // host memory traffic of the optimizer on the CPU
  BytesPerSecond optimizer_rate;
};

// One layer of a model chunk, with the data-parallel traffic around it. Absent: none.
struct LayerSchedule {
  LayerTime time;
  std::optional<Seconds> gather_forward, gather_backward;  // unsharded weights, every microbatch
  std::optional<Seconds> gather_again;  // once more, where recomputing gathers and lets go
  std::optional<Seconds> gather_first;  // updated weights, before the first microbatch only
  std::optional<Seconds> reduce;        // after backward: every microbatch, or the last one
  std::optional<Seconds> copy_in;       // offloaded weights: before each gather
  std::optional<Seconds> copy_out;      // gradients to the host: behind `reduce`, or backward
  friend bool operator==(const LayerSchedule&, const LayerSchedule&) = default;
};

// A run of consecutive ranks of a stage on equal GPUs.
struct RankPace {
  int ranks = 1;
  double time = 1;                  // of their kernels, relative to what StageCosts says
  std::optional<int> microbatches;  // fewer than the others run; absent: all of them
};

struct StageCosts {
  std::vector<std::vector<LayerSchedule>> chunks;  // [local chunk][layer]
  // By local chunk the first one that takes the same, where only those are filled in; else empty.
  std::vector<std::size_t> alike;
  Seconds optimizer;  // on the GPU
  std::optional<Seconds> host_optimizer;
  std::optional<Seconds> nvme_each_way;    // its states read before, and written after it
  std::optional<Seconds> reduce_at_end;    // gradients that nothing overlaps
  std::optional<Seconds> copy_out_at_end;  // of these, to the host
  std::optional<Seconds> gather_at_end;    // updated weights, likewise
  std::optional<Seconds> copy_in_at_end;   // stepped weights from the host
  Seconds host_per_step;                   // zero_grad, loss read-out, dispatch of the optimizer
  HostTraffic host_traffic;
  std::vector<RankPace> paces;  // of all its ranks; empty: all alike
  // One microbatch's samples from the data loader, on the first stage, per rank.
  std::optional<Seconds> load;
  std::vector<CollectiveUse> collectives;  // all that one rank takes part in during a step
};

// The gradients of what two stages both have (a tied table, DualPipe's second copy of a chunk),
// added up between the two when all others are reduced.
struct TiedReduction {
  Seconds time;
  int first = 0, last = 0;  // stages
  bool between(int stage) const { return stage == first || stage == last; }
};

struct StepCosts {
  std::vector<StageCosts> stages;
  // The first stage that takes the same for its chunks, its gradients and its optimizer, by stage.
  std::vector<std::size_t> alike;
  // Transfer of one microbatch's activations to the next stage, [stage] -> [stage + 1].
  std::vector<Seconds> send;
  std::vector<TiedReduction> tied;  // a stage is part of one at most
  bool reduces_in_line = false;     // what follows a layer's reduction waits for it
  bool reduces_every_microbatch = false;
  bool overlaps_pipeline_comm = true;
  bool waits_for_all_stages = true;  // gradient norm over the whole model before the step
  int stages_on_a_host = 1;          // consecutive ones, whose CPU optimizers share one memory
  double gather_window = 2;          // gathered layers alive at once
  std::optional<int> rounds;         // microbatches of the rank that runs most; absent: as planned

  // What ties this stage to another one; nullptr: nothing.
  const TiedReduction* tied_at(int stage) const {
    for (const TiedReduction& t : tied)
      if (t.between(stage)) return &t;
    return nullptr;
  }

  // Where no pass through any layer takes the host longer than the GPU, the host is always ahead
  // and its lane changes nothing.
  bool is_host_bound() const;
  // The CPU waits for the GPU with every exchange between stages that is not overlapped.
  bool host_waits_for_neighbours() const { return stages.size() > 1 && !overlaps_pipeline_comm; }
};

}  // namespace shardwise
