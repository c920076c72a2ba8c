// The forecast: one predictor for fit, compare, simulate, validate and search.
//
//   Workload x ParallelPlan x Cluster  ->  operators -> task graph -> events  -> step time
//                                      ->  operators -> allocation stream     -> memory
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/profile.hpp"
#include "catalog/result.hpp"
#include "planner/question.hpp"
#include "simulator/graphs/memory_category.hpp"
#include "simulator/step/task_graph.hpp"
#include "simulator/variation.hpp"

namespace shardwise {

// An 80 % interval around what is expected.
template <class T>
struct Interval {
  T low{}, expected{}, high{};
};

// Three answers to "how much memory": what tensors hold, what PyTorch's caching allocator has
// taken for them, and what nvidia-smi shows (context and NCCL included).
struct MemoryFigures {
  Bytes allocated, reserved, device;
  Bytes reserved_at_step = {};  // what the allocator still holds while the optimizer steps
};

enum class Verdict { fits, tight, does_not_fit };
constexpr std::string_view verdict_name(Verdict v) {
  return v == Verdict::fits ? "fits" : v == Verdict::tight ? "tight" : "does_not_fit";
}
constexpr std::string_view verdict_in_words(Verdict v) {
  return v == Verdict::does_not_fit ? "does not fit" : verdict_name(v);
}

// From this much of the card on, a peak hides what a plan needs: the allocator caches what it
// finds. A preference.
inline constexpr double nearly_full = 0.97;

// One pipeline stage: its ranks are equal, so one stands for all of them.
struct StageForecast {
  int stage = 0;
  int first_layer = 0, layers = 0;
  MemoryFigures peak;             // over the whole run after loading
  MemoryFigures steps_peak;       // of steps alone: the same, unless a save takes more
  MemoryFigures first_step_peak;  // optimizer states appear during it
  // While loading: told also where something else is larger.
  std::optional<MemoryFigures> load;
  MemoryFigures steady_peak;        // from the second step on
  MemoryFigures save;               // while a checkpoint is written between two steps
  MemoryBreakdown breakdown{};      // bytes at the moment of the device peak; sums to peak.device
  MemoryBreakdown after_forward{};  // of what tensors hold when the last forward pass has ended
  Bytes paged;      // optimizer states in managed memory (OptimizerRow::paged), wherever they are
  Bytes paged_out;  // of them, what finds no room on the GPU beside the peak
  Bytes capacity;
  // The device peak on the smallest card that would do: where the allocator's cache fills the card,
  // less than `peak.device`, else the same. The difference is given back before anything fails.
  Bytes needed;
  std::string gpu;

  bool cache_fills() const { return needed < peak.device; }
  bool save_is_peak() const { return steps_peak.device < peak.device; }
};

// Blocks of one stage that re-run the same operators; none: they keep everything.
struct StageRecompute {
  int stage = 0;
  int blocks = 0;
  std::vector<std::string> operators;
};

struct StepBreakdown {
  std::map<std::string, Seconds> compute;  // forward, backward, recompute, optimizer
  std::map<std::string, Seconds> exposed;  // communication that nothing hides, by kind
  Seconds bubble, host, offload;
  int stage = 0;  // of the rank that all this is about: the one whose compute lane is busy most
};

struct BlockRecompute;  // simulator/graphs/recompute_policy.hpp
struct MemoryPlays;     // forecast_parts.hpp: the played allocation streams of every stage
struct KnownCosts;      // forecast_parts.hpp: what other plans have in common with this one
struct StepRecord;      // step_record.hpp

struct HostMemory {
  Bytes steady;     // offloaded states, pinned buffers, the framework itself
  Bytes load_peak;  // while the weights are read
  Bytes load_once;  // the same where one rank reads for all (meta-device loading)
  Bytes drives;     // beside RAM: optimizer states that lie on the node's NVMe drives
  std::optional<Bytes> available;
};

// The GPU that the others wait for most, where they are not all alike.
struct SlowestGpu {
  int rank = 0, stage = 0;
  std::string gpu;
};

struct Forecast {
  Interval<Seconds> step_time;
  double tokens_per_s = 0;
  double mfu = 0;           // 6 N T-style model FLOPs over dense peak
  StepBreakdown breakdown;  // of the slowest rank's compute lane
  double bubble_fraction = 0;
  // Time along the critical path by kind of work, over all ranks it passes; adds up to the step.
  // Empty unless asked for.
  std::map<std::string, Seconds> critical_path;
  std::optional<SlowestGpu> slowest;
  std::vector<StageForecast> stages;
  int worst_stage = 0;          // least margin
  Interval<Bytes> peak_device;  // of the worst stage
  Verdict verdict = Verdict::fits;
  Bytes margin;  // capacity - expected device peak; negative: the shortfall
  std::vector<StageRecompute> recompute;  // where the plan leaves the choice to us
  HostMemory host;
  bool host_fits = true;
  Trust trust = Trust::assumed;    // the weakest thing the answer rests on
  std::vector<std::string> notes;  // warnings in whole sentences
  std::int64_t tasks = 0;
  // To hand to ForecastOptions, see there. None where a play was given up.
  std::shared_ptr<const MemoryPlays> plays;
  std::shared_ptr<const StepRecord> record;      // where asked for
  std::shared_ptr<const BlockRecompute> chosen;  // likewise, where the plan leaves it to us

  const StageForecast& worst() const { return stages[static_cast<std::size_t>(worst_stage)]; }
};

struct ForecastOptions {
  bool unfold = false;       // every rank its own tasks
  Variation variation = {};  // other than the default: plays every rank
  bool time = true;          // false: memory only
  bool memory = true;        // false: time only
  // Memory is played until it is certain that it does not fit: then the verdict says so, and the
  // figures say nothing.
  bool only_if_fits = false;
  // Where it fits, whether it does with room to spare; false: the verdict may say "tight" of it.
  bool tight_is_told = true;
  // Memory is played until it is certain that a GPU needs more: then its figures are more than this
  // and say nothing else.
  std::optional<Bytes> give_up_above = std::nullopt;
  // Memory is played until it is certain that the tensors of a GPU lack more than this: then its
  // figures say that they do, and nothing else.
  std::optional<Bytes> give_up_lacking = std::nullopt;
  // Where it does not fit, what is reserved is what it takes on the least card on which it would;
  // false: what it takes on a card without end, which is more and costs a play less.
  bool least_card = true;
  // The step is played until it is certain that it takes longer: then its time is this at least,
  // and the rest of what is said of time says nothing.
  std::optional<Seconds> give_up_after = std::nullopt;
  bool critical_path = false;
  bool record = false;  // keep the step as it was played, for drawings and traces
  // Plays of the same workload and plan on other GPUs, which allocate the same; played anew where
  // the GPU's library workspaces differ.
  std::shared_ptr<const MemoryPlays> plays = nullptr;
  // What was found for just this question where the plan leaves it to us which operators run again;
  // plays are of no use without it.
  std::shared_ptr<const BlockRecompute> chosen = nullptr;
  // What was found for other plans of the same workload, cluster and profile, with layers that are
  // this plan's own: the answer is the same without. Layers and what they take of time only.
  const KnownCosts* known = nullptr;
};

// Where frozen weights stay whole (packed_weights.hpp): that the forecast parts them all the same.
// Among its notes; else nothing.
std::optional<std::string> told_of_whole_weights(const Question& question);

// Stages that hold no layer, nor embedding or head, and how many. Megatron Core takes a layout with
// such ("(empty stage)", pipeline_parallel_layer_layout.py), so a plan may have them; among a
// forecast's notes; else nothing.
std::optional<std::string> told_of_empty_stages(const Question& question);

// Problems: plan does not multiply out to the GPUs, heads do not divide by TP, more stages than
// layers, a framework that cannot run the plan, a number format that the GPU lacks, a step of more
// than 106 days where time is asked for.
Result<Forecast> forecast(const Question& question, const Profile& profile,
                          const ForecastOptions& options = {});

}  // namespace shardwise
