#include "planner/forecast/best_recompute.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "planner/forecast/forecast_parts.hpp"
#include "simulator/graphs/recompute_mix.hpp"

namespace shardwise {
namespace {

using Choice = std::vector<std::vector<bool>>;  // of one stage: [block][operator]

Picoseconds rounded(Seconds t) { return Picoseconds((SimTime{} + t).picoseconds); }

// What stays the same however the blocks choose.
class StageSearch {
 public:
  StageSearch(const Question& q, const Profile& profile, const RecomputePolicy& asked)
      : q_(q),
        profile_(profile),
        schedule_(*find_pipeline_schedule(q.plan.schedule_row())),
        policy_(asked),
        plain_(partition_model(q.workload, q.plan, schedule_, asked)),
        cost_(q.workload, q.plan, q.cluster, profile) {
    for (const auto& chunks : plain_.stages) {
      Choice& none = none_.again.emplace_back();
      for (const ModelChunk& chunk : chunks)
        for (const ChunkLayer& layer : chunk.layers)
          if (layer.definition->role == LayerRole::block)
            none.emplace_back(layer.definition->graph.operators.size(), false);
    }
  }

  // `room`: what the tensors of each stage may take.
  BlockRecompute best(const std::vector<Bytes>& room) {
    BlockRecompute choice;
    for (int stage = 0; stage < q_.plan.pipeline; ++stage)
      choice.again.push_back(surviving(stage, room[static_cast<std::size_t>(stage)]));
    return choice;
  }

 private:
  // A way for all blocks of a stage: the last one's option and how many others take which.
  struct Way {
    std::size_t last_option = 0;
    RecomputeMix others;
    Bytes kept;  // of all blocks
    Picoseconds time;
  };
  // The blocks of a stage by what they can choose from; `kind_of` block i is kinds[kind_of[i]].
  struct StageBlocks {
    std::vector<EqualBlocks> kinds;
    std::vector<std::size_t> kind_of;
  };

  const std::vector<RecomputeOption>& options(const LayerDefinition* d) {
    const auto known = options_.find(d);
    if (known != options_.end()) return known->second;
    LayerDefinition one = *d;
    std::vector<Picoseconds> forward;
    for (const Operator& op : d->graph.operators) {
      one.graph.operators = {op};
      one.script.runs_again = one.redone = {false};
      Seconds slowest;
      for (const NodeGroup& g : q_.cluster.groups) {
        const KernelModel kernels(
            g.gpu, profile_,
            {std::nullopt, q_.workload.framework.kernels, ChipLoad{q_.plan.gpus()}});
        slowest = std::max(slowest, cost_.layer_time(one, kernels).forward.device());
      }
      forward.push_back(rounded(slowest));
    }
    // Without a choice of ours the script runs again what the compiler does.
    return options_.emplace(d, recompute_options(d->graph, forward, d->script.runs_again))
        .first->second;
  }

  StageBlocks blocks_of(int stage) {
    StageBlocks blocks;
    std::vector<const LayerDefinition*> seen;
    for (const ModelChunk& chunk : plain_.stages[static_cast<std::size_t>(stage)])
      for (const ChunkLayer& layer : chunk.layers) {
        if (layer.definition->role != LayerRole::block) continue;
        const auto at = std::find(seen.begin(), seen.end(), layer.definition);
        const auto kind = static_cast<std::size_t>(at - seen.begin());
        if (at == seen.end()) {
          seen.push_back(layer.definition);
          blocks.kinds.push_back({0, options(layer.definition)});
        }
        ++blocks.kinds[kind].blocks;
        blocks.kind_of.push_back(kind);
      }
    return blocks;
  }

  // Of equal blocks those that keep the least come first: backward frees them last.
  static Choice laid_out(const StageBlocks& blocks, const Way& way) {
    auto left = way.others.counts;
    Choice choice;
    for (std::size_t i = 0; i < blocks.kind_of.size(); ++i) {
      const std::size_t kind = blocks.kind_of[i];
      const auto& options = blocks.kinds[kind].options;
      std::size_t option = way.last_option;
      if (i + 1 < blocks.kind_of.size()) {
        option = options.size() - 1;  // options keep less and less
        while (left[kind][option] == 0) --option;
        --left[kind][option];
      }
      choice.push_back(options[option].again);
    }
    return choice;
  }

  // Tensors at their peak; nothing where a capacity is given that the allocator then misses.
  std::optional<Bytes> peak(int stage, const Choice& choice, std::optional<Bytes> capacity) {
    // The other stages do not matter here, and are the quicker to build the simpler they are.
    auto trial = std::make_shared<BlockRecompute>(none_);
    trial->again[static_cast<std::size_t>(stage)] = choice;
    policy_.chosen = std::move(trial);
    const ModelPartition partition = partition_model(q_.workload, q_.plan, schedule_, policy_);
    const ContextCalibration& context =
        profile_.row(smallest_group(q_.cluster, q_.plan, stage).gpu.family).context;
    const StageMemory memory =
        play_memory(q_.workload, q_.plan, schedule_, partition, stage, context, capacity);
    if (memory.ran_out) return std::nullopt;
    return memory.peak().allocated;
  }

  bool fits(int stage, const StageBlocks& blocks, const Way& way, Bytes room) {
    return *peak(stage, laid_out(blocks, way), std::nullopt) <= room;
  }

  // The first of `ways`, which keep less and less, that fits. REQUIRES that the last one does.
  std::size_t first_fitting(int stage, const StageBlocks& blocks, const std::vector<Way>& ways,
                            Bytes room) {
    std::size_t none = 0, some = ways.size() - 1;
    while (none < some) {
      const std::size_t middle = none + (some - none) / 2;
      if (fits(stage, blocks, ways[middle], room))
        some = middle;
      else
        none = middle + 1;
    }
    return some;
  }

  // Ways along the path of mixes; the last block is one of those that keep most.
  static std::vector<Way> ways_along_path(const StageBlocks& blocks) {
    const std::size_t last = blocks.kind_of.back();
    std::vector<Way> ways;
    for (RecomputeMix& mix : recompute_path(blocks.kinds)) {
      Way way{0, std::move(mix), {}, {}};
      way.kept = way.others.kept;
      way.time = way.others.time;
      while (way.others.counts[last][way.last_option] == 0) ++way.last_option;
      --way.others.counts[last][way.last_option];
      ways.push_back(std::move(way));
    }
    return ways;
  }

  // What the allocator loses to fragmentation is not in the sum of the tensors: where it makes the
  // step fail, tensors get a segment less.
  Choice surviving(int stage, Bytes room) {
    constexpr Bytes segment(20 << 20);
    Bytes tensors = room;
    Choice choice = best_of(stage, tensors);
    for (int round = 0; round < 32 && !peak(stage, choice, room); ++round) {
      const Bytes needed = *peak(stage, choice, std::nullopt);
      if (needed > tensors) break;  // the least there is
      tensors = needed - segment;
      choice = best_of(stage, tensors);
    }
    return choice;
  }

  Choice best_of(int stage, Bytes room) {
    const StageBlocks blocks = blocks_of(stage);
    if (blocks.kind_of.empty()) return {};
    const std::vector<Way> path = ways_along_path(blocks);
    if (fits(stage, blocks, path.front(), room)) return laid_out(blocks, path.front());
    if (!fits(stage, blocks, path.back(), room)) return laid_out(blocks, path.back());
    const std::size_t first = first_fitting(stage, blocks, path, room);
    return laid_out(blocks, improved(stage, blocks, path[first - 1], path[first], room));
  }

  // Between neighbours on the path, one that does not fit and one that does: the best mix. One that
  // fits keeps less in all than `misses`, or its last block keeps more and the sum less than that
  // much more; one that is worth it takes less time than `known`. Both put it below a line.
  Way improved(int stage, const StageBlocks& blocks, const Way& misses, const Way& known,
               Bytes room) {
    StageBlocks others = blocks;
    const std::size_t kind = blocks.kind_of.back();
    --others.kinds[kind].blocks;
    const std::vector<RecomputeOption>& last = blocks.kinds[kind].options;
    const double price = static_cast<double>((known.time - misses.time).value) /
                         static_cast<double>((misses.kept - known.kept).value);
    // What the others may keep where the last block takes an option.
    const auto below = [&](const RecomputeOption& o) {
      return misses.kept + std::max(Bytes(0), o.kept - last[misses.last_option].kept) - o.kept;
    };
    MixLine highest{price, known.time - last.front().time, below(last.front())};
    for (const RecomputeOption& o : last) {
      const MixLine line{price, known.time - o.time, below(o)};
      if (height(line) > height(highest)) highest = line;
    }
    const std::vector<RecomputeMix> mixes = recompute_mixes(others.kinds, highest);
    Way best = known;
    for (std::size_t o = 0; o < last.size(); ++o) {
      std::vector<Way> ways;
      for (const RecomputeMix& mix : mixes)
        if (const Way way{o, mix, mix.kept + last[o].kept, mix.time + last[o].time};
            way.time < best.time && mix.kept < below(last[o]))
          ways.push_back(way);
      if (ways.empty() || !fits(stage, blocks, ways.back(), room)) continue;
      best = ways[first_fitting(stage, blocks, ways, room)];
    }
    return best;
  }

  static double height(const MixLine& line) {
    return static_cast<double>(line.time.value) +
           line.picoseconds_per_byte * static_cast<double>(line.kept.value);
  }

  const Question& q_;
  const Profile& profile_;
  const PipelineSchedule& schedule_;
  RecomputePolicy policy_;
  ModelPartition plain_;
  CostModel cost_;
  BlockRecompute none_;  // of all stages
  std::map<const LayerDefinition*, std::vector<RecomputeOption>> options_;
};

}  // namespace

std::shared_ptr<const BlockRecompute> best_recompute(const Question& q, const Profile& profile,
                                                     const RecomputePolicy& asked) {
  RecomputePolicy policy = asked;
  policy.chosen = nullptr;
  StageSearch search(q, profile, policy);
  const Forecast plain = *forecast_under(q, profile, policy, {.time = false});
  Bytes reserve;  // kept free beside the expected figure, for its doubt
  std::shared_ptr<const BlockRecompute> chosen;
  // The doubt depends on what is chosen, little: a few rounds settle it.
  for (int round = 0; round < 4; ++round) {
    std::vector<Bytes> room;
    for (const StageForecast& s : plain.stages) {
      const Bytes outside = s.peak.device - s.peak.reserved;  // context and communicators
      room.push_back(asked.budget.value_or(s.capacity - reserve) - outside);
    }
    chosen = std::make_shared<BlockRecompute>(search.best(room));
    policy.chosen = chosen;
    if (asked.budget) break;
    const Forecast f = *forecast_under(q, profile, policy, {.time = false});
    if (f.verdict != Verdict::tight) break;
    const StageForecast& worst = f.worst();
    reserve += f.peak_device.high - worst.capacity;
  }
  return chosen;
}

}  // namespace shardwise
