#include "planner/forecast/best_recompute.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/forecast/forecast_parts.hpp"
#include "simulator/graphs/recompute_mix.hpp"

namespace shardwise {
namespace {

using Choice = std::vector<std::vector<bool>>;  // of one stage: [block][operator]

constexpr Bytes segment(20 << 20);  // what the allocator asks CUDA for (PyTorch's kLargeBuffer)

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
  struct KnownPeak {
    Bytes bytes;
    bool more = false;  // than that: nobody has looked how much
  };
  // While the last block goes back all others still keep theirs, of every microbatch in flight. So
  // with one option of the last block, a way that keeps less than a known one comes to
  //   peak >= peak of that one - microbatches in flight x what it keeps less
  // but for the ends of blocks that the allocator does not split off: less than a segment.
  struct KeptLine {
    Bytes peak, kept;  // of the known way
    std::int64_t in_flight = 1;
    Bytes at(Bytes other) const { return peak + in_flight * (other - kept); }
  };
  // The ways that share an option of the last block, which keep less and less.
  struct OptionWays {
    std::size_t option = 0;
    std::vector<const RecomputeMix*> others;
    std::size_t from = 0;  // those before it are too large by the option's line
    Picoseconds likely;    // the time of the first that is not
  };
  // The blocks of a stage by what they can choose from; `kind_of` block i is kinds[kind_of[i]].
  struct StageBlocks {
    std::vector<EqualBlocks> kinds;
    std::vector<std::size_t> kind_of;
  };
  // The fastest way that is known to fit, and ways that do not.
  struct Frontier {
    Way known;
    std::vector<Way> misses;
    double price = 0;  // of a byte less there, in picoseconds
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
        const KernelModel kernels(g.gpu, profile_, attention_choice(q_.workload, q_.plan));
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

  static StageBlocks without_last(const StageBlocks& blocks) {
    StageBlocks others = blocks;
    --others.kinds[others.kind_of.back()].blocks;
    return others;
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

  StageMemory played(int stage, const Choice& choice, std::optional<Bytes> capacity,
                     std::optional<Bytes> most_allocated) {
    // The other stages do not matter here, and are the quicker to build the simpler they are.
    auto trial = std::make_shared<BlockRecompute>(none_);
    trial->again[static_cast<std::size_t>(stage)] = choice;
    policy_.chosen = std::move(trial);
    const ModelPartition partition = partition_model(q_.workload, q_.plan, schedule_, policy_);
    const ContextCalibration& context =
        profile_.row(smallest_group(q_.cluster, q_.plan, stage).gpu.family).context;
    PlayVariation how;
    how.most_allocated = most_allocated;
    return play_memory(q_.workload, q_.plan, schedule_, partition, stage, context, capacity, how);
  }

  // Tensors at their peak on a card without end: asked again where they get a segment less.
  Bytes peak(int stage, const Choice& choice) {
    std::optional<KnownPeak>& known = peaks_[{stage, choice}];
    if (!known || known->more)
      known = {played(stage, choice, std::nullopt, std::nullopt).peak().allocated, false};
    return known->bytes;
  }

  bool fits(int stage, const StageBlocks& blocks, const Way& way, Bytes room) {
    const Choice choice = laid_out(blocks, way);
    std::optional<KnownPeak>& known = peaks_[{stage, choice}];
    if (!known || (known->more && known->bytes < room)) {
      const StageMemory memory = played(stage, choice, std::nullopt, room);
      known = {memory.given_up ? room : memory.peak().allocated, memory.given_up};
    }
    return !known->more && known->bytes <= room;
  }

  // The first of so many ways, which keep less and less, that fits. REQUIRES that the last does.
  template <class WayAt>
  std::size_t first_fitting(int stage, const StageBlocks& blocks, std::size_t ways, WayAt way_at,
                            Bytes room) {
    std::size_t none = 0, some = ways - 1;
    while (none < some) {
      const std::size_t middle = none + (some - none) / 2;
      if (fits(stage, blocks, way_at(middle), room))
        some = middle;
      else
        none = middle + 1;
    }
    return some;
  }

  const KeptLine& kept_line(int stage, const StageBlocks& blocks, const Way& most) {
    const auto [at, is_new] = lines_.try_emplace({stage, most.last_option});
    if (is_new || most.kept > at->second.kept)
      at->second = {peak(stage, laid_out(blocks, most)), most.kept,
                    peak_in_flight(slots_played(q_.plan, schedule_, stage))};
    return at->second;
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
  // step fail, tensors get 1, 2, 4, ... segments less, and the half way between is looked at.
  Choice surviving(int stage, Bytes room) {
    const auto survives = [&](const Choice& choice) {
      return !played(stage, choice, room, std::nullopt).ran_out;
    };
    Choice choice = best_of(stage, room);
    if (survives(choice)) return choice;
    const Bytes needed = peak(stage, choice);
    if (needed > room) return choice;  // the least there is
    std::int64_t fails = 0, less = 1;
    for (;; fails = less, less *= 2) {
      choice = best_of(stage, needed - less * segment);
      if (survives(choice)) break;
      if (peak(stage, choice) > needed - less * segment) return choice;
    }
    while (less - fails > 1) {
      const std::int64_t middle = fails + (less - fails) / 2;
      Choice larger = best_of(stage, needed - middle * segment);
      if (survives(larger)) {
        less = middle;
        choice = std::move(larger);
      } else {
        fails = middle;
      }
    }
    return choice;
  }

  Choice best_of(int stage, Bytes room) {
    const StageBlocks blocks = blocks_of(stage);
    if (blocks.kind_of.empty()) return {};
    const std::vector<Way> path = ways_along_path(blocks);
    if (fits(stage, blocks, path.front(), room)) return laid_out(blocks, path.front());
    if (!fits(stage, blocks, path.back(), room)) return laid_out(blocks, path.back());
    const auto at = [&](std::size_t i) -> const Way& { return path[i]; };
    const std::size_t first = first_fitting(stage, blocks, path.size(), at, room);
    const Way &miss = path[first - 1], &known = path[first];
    const double price = static_cast<double>((known.time - miss.time).value) /
                         static_cast<double>((miss.kept - known.kept).value);
    Frontier frontier{known, {miss}, price};
    search_last_keeping(stage, blocks, room, frontier);
    return laid_out(blocks, improved(stage, blocks, frontier, room));
  }

  // The last block may keep most at little cost: nothing else has to be made while it goes back.
  void search_last_keeping(int stage, const StageBlocks& blocks, Bytes room, Frontier& frontier) {
    const std::size_t kind = blocks.kind_of.back();
    const RecomputeOption& last = blocks.kinds[kind].options.front();
    const std::vector<RecomputeMix> path = recompute_path(without_last(blocks).kinds);
    const auto at = [&](std::size_t i) {
      return Way{0, path[i], path[i].kept + last.kept, path[i].time + last.time};
    };
    std::size_t end = 0;
    while (end < path.size() && at(end).time < frontier.known.time) ++end;
    if (end == 0) return;
    if (!fits(stage, blocks, at(end - 1), room)) return frontier.misses.push_back(at(end - 1));
    const std::size_t first = first_fitting(stage, blocks, end, at, room);
    frontier.known = at(first);
    if (first > 0) frontier.misses.push_back(at(first - 1));
  }

  static Way way_at(const StageBlocks& blocks, const OptionWays& ways, std::size_t i) {
    const RecomputeOption& last = blocks.kinds[blocks.kind_of.back()].options[ways.option];
    const RecomputeMix& mix = *ways.others[i];
    return {ways.option, mix, mix.kept + last.kept, mix.time + last.time};
  }

  // Whether any may fit.
  bool narrowed(int stage, const StageBlocks& blocks, Bytes room, OptionWays& ways) {
    if (ways.others.empty()) return false;
    const KeptLine line = kept_line(stage, blocks, way_at(blocks, ways, 0));
    std::size_t to = ways.others.size();
    while (ways.from < to) {
      const std::size_t middle = ways.from + (to - ways.from) / 2;
      if (line.at(way_at(blocks, ways, middle).kept) > room + segment)
        ways.from = middle + 1;
      else
        to = middle;
    }
    if (ways.from == ways.others.size()) return false;
    ways.likely = way_at(blocks, ways, ways.from).time;
    return true;
  }

  // The first that fits of those that take less time than `within`.
  std::optional<Way> fastest_of(int stage, const StageBlocks& blocks, Bytes room,
                                const OptionWays& ways, Picoseconds within) {
    std::size_t end = ways.from;
    while (end < ways.others.size() && way_at(blocks, ways, end).time < within) ++end;
    if (end == ways.from || !fits(stage, blocks, way_at(blocks, ways, end - 1), room))
      return std::nullopt;
    const auto at = [&](std::size_t i) { return way_at(blocks, ways, ways.from + i); };
    return at(first_fitting(stage, blocks, end - ways.from, at, room));
  }

  // Between neighbours on paths, of which one does not fit and one does: the best mix. One that
  // fits keeps less in all than those that miss, or its last block keeps more and the sum less than
  // that much more; one that is worth it takes less time than the known one. Both put it below a
  // line.
  Way improved(int stage, const StageBlocks& blocks, const Frontier& frontier, Bytes room) {
    const StageBlocks others = without_last(blocks);
    const std::vector<RecomputeOption>& last = blocks.kinds[blocks.kind_of.back()].options;
    // What the others may keep where the last block takes an option.
    const auto below = [&](const RecomputeOption& o) {
      Bytes least(std::numeric_limits<std::int64_t>::max());
      for (const Way& miss : frontier.misses)
        least = std::min(
            least, miss.kept + std::max(Bytes(0), o.kept - last[miss.last_option].kept) - o.kept);
      return least;
    };
    MixLine highest{frontier.price, frontier.known.time - last.front().time, below(last.front())};
    for (const RecomputeOption& o : last) {
      const MixLine line{frontier.price, frontier.known.time - o.time, below(o)};
      if (height(line) > height(highest)) highest = line;
    }
    const RecomputeMixes& mixes = mixes_below(stage, others, highest);
    std::vector<OptionWays> tried;
    for (std::size_t o = 0; o < last.size(); ++o) {
      // Where not all mixes are looked at, nor are all options: what one block gains is little.
      const bool on_a_path =
          o == 0 || o == frontier.known.last_option || o == frontier.misses.front().last_option;
      if (!mixes.all && !on_a_path) continue;
      OptionWays ways{o, {}, 0, {}};
      const Picoseconds within = frontier.known.time - last[o].time;
      const Bytes most = below(last[o]);
      for (const RecomputeMix& mix : mixes.list)
        if (mix.time < within && mix.kept < most) ways.others.push_back(&mix);
      if (narrowed(stage, blocks, room, ways)) tried.push_back(std::move(ways));
    }
    // What is likely fastest comes first: the others then have to beat it.
    std::stable_sort(tried.begin(), tried.end(),
                     [](const OptionWays& a, const OptionWays& b) { return a.likely < b.likely; });
    Way best = frontier.known;
    for (const OptionWays& ways : tried)
      if (auto faster = fastest_of(stage, blocks, room, ways, best.time)) best = *std::move(faster);
    return best;
  }

  // A segment less lies between the same neighbours most of the time.
  const RecomputeMixes& mixes_below(int stage, const StageBlocks& others, const MixLine& line) {
    const auto key = std::make_tuple(stage, line.picoseconds_per_byte, line.time, line.kept);
    if (mixes_of_ != key) {
      mixes_ = recompute_mixes(others.kinds, line);
      mixes_of_ = key;
    }
    return mixes_;
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
  std::map<std::pair<int, Choice>, std::optional<KnownPeak>> peaks_;  // by stage and its choice
  std::map<std::pair<int, std::size_t>, KeptLine> lines_;             // the last block's option
  std::optional<std::tuple<int, double, Picoseconds, Bytes>> mixes_of_;
  RecomputeMixes mixes_;  // of these
};

}  // namespace

std::shared_ptr<const BlockRecompute> best_recompute(const Question& q, const Profile& profile,
                                                     const RecomputePolicy& asked) {
  RecomputePolicy policy = asked;
  policy.chosen = nullptr;
  StageSearch search(q, profile, policy);
  // Nobody asks here how large a card would have to be.
  const ForecastOptions of_memory{.time = false, .least_card = false};
  const Forecast plain = *forecast_under(q, profile, policy, of_memory);
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
    const Forecast f = *forecast_under(q, profile, policy, of_memory);
    if (f.verdict != Verdict::tight) break;
    const StageForecast& worst = f.worst();
    reserve += f.peak_device.high - worst.capacity;
  }
  return chosen;
}

}  // namespace shardwise
