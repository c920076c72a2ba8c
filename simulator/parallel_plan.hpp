// A parallel plan: how one training step is laid over the GPUs.
//
//   data x tensor x context x pipeline = GPUs     (expert parallelism lives inside data x context)
//   global batch = data x microbatch x microbatches per step
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/framework.hpp"
#include "catalog/result.hpp"
#include "catalog/transformer.hpp"

namespace shardwise {

struct Offload {
  bool optimizer = false;    // states and step on the host
  bool parameters = false;   // sharded weights live on the host, copied in per layer
  bool activations = false;  // what backward needs goes to the host and comes back
  friend bool operator==(const Offload&, const Offload&) = default;
};

// The product of the factors, or the nearest number that an int holds.
constexpr int product_in_int(std::initializer_list<int> factors) {
  using Int = std::numeric_limits<int>;
  std::int64_t product = 1;
  for (const int n : factors)
    product = std::clamp<std::int64_t>(product * n, Int::min(), Int::max());
  return static_cast<int>(product);
}

// The rows of pipeline_schedule that plans fall to by themselves.
inline constexpr std::string_view usual_schedule = "1f1b";
inline constexpr std::string_view chunked_schedule = "interleaved";     // several chunks per stage
inline constexpr std::string_view layer_split_schedule = "sequential";  // no pipelining

struct ParallelPlan {
  int data = 1;
  int tensor = 1;
  bool sequence_parallel = false;  // norms and residuals sharded along the sequence within TP
  int context = 1;
  ContextKind context_kind = ContextKind::ring;
  int pipeline = 1;
  std::string schedule{usual_schedule};  // a row of pipeline_schedule
  int chunks = 1;                        // model chunks per pipeline rank
  int expert = 1;
  int expert_tensor = 1;           // TP inside an expert
  int zero_stage = 0;              // 0 DDP, 1 optimizer, 2 + gradients, 3 + parameters (FSDP)
  std::optional<int> shard_group;  // HSDP: ranks over which ZeRO shards; absent: all of `data`
  bool layer_split = false;        // device_map: stages one after the other, no pipelining
  int microbatch = 1;              // sequences per microbatch and data rank
  int microbatches = 1;            // per step and data rank (gradient accumulation)
  std::string recompute;           // a row of recompute_policy
  Offload offload;
  double offloaded_share = 1;  // of the activations, where they are offloaded
  bool async_tensor = false;
  std::vector<int> layers_per_stage;  // empty: as even as possible
  bool balance_by_speed = false;      // faster GPUs run more microbatches of the step
  std::string compression = "none";   // a row of gradient_compression
  bool nvme = false;                  // the offloaded optimizer states lie on NVMe drives
  bool async_data = false;            // what if: nobody waits for the reduction of gradients

  // The schedule's row: a layer split is played one microbatch at a time.
  std::string_view schedule_row() const {
    return layer_split ? layer_split_schedule : std::string_view(schedule);
  }
  int gpus() const { return product_in_int({data, tensor, context, pipeline}); }
  int global_batch() const { return product_in_int({data, microbatch, microbatches}); }
  int shard_ranks() const { return shard_group.value_or(data) * context; }
  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
};

// Whether sharded gradients are reduced with every microbatch; else they wait, whole, for the last
// one of a step.
bool reduces_every_microbatch(const Framework& framework, const ParallelPlan& plan);

// Weights lie in shards and are gathered layer by layer: stage 3, and stage 2 where that is FSDP
// without resharding after forward. `reshards_weights`: they go back to shards between forward and
// backward.
bool shards_weights(const Framework& framework, const ParallelPlan& plan);
bool reshards_weights(const Framework& framework, const ParallelPlan& plan);

// "tp=4,pp=2,dp=2,zero=1,mbs=1,ga=8,recompute=full": parse and print are inverse. A text with
// vpp above 1 and no schedule means interleaved, one with a schedule that runs a fixed number of
// chunks and no vpp that number. fsdp=8 is dp=8,zero=3; a key that says otherwise is a problem.
std::string to_string(const ParallelPlan& plan);
Result<ParallelPlan> parse_plan(const std::string& text);

// The same with what to_string leaves out and a framework may have otherwise by itself: reading it
// back gives this plan whatever the framework.
std::string whole_text(const ParallelPlan& plan);

}  // namespace shardwise
