#include <algorithm>
#include <utility>
#include <vector>

#include "planner/figures.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "planner/forecast/host_memory.hpp"
#include "planner/forecast/spread_key.hpp"
#include "planner/forecast/stage_plays.hpp"
#include "planner/forecast/stage_room.hpp"
#include "planner/sentence.hpp"
#include "simulator/memory/communicator_memory.hpp"
#include "simulator/memory/stage_holdings.hpp"

namespace shardwise {
namespace {

Bytes scaled(Bytes bytes, double factor) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.value) * factor));
}

// Context and loaded kernels of a process.
Bytes context_bytes(const ForecastContext& k, const NodeGroup& group) {
  const ContextCalibration& c = k.profile.row(group.gpu.family).context;
  return k.question.workload.framework.process.eager_module_loading
             ? c.cuda_context + c.eager_modules
             : c.cuda_context;
}

// What lies on the host elsewhere, where the GPU has no memory but that: the allocator cannot have
// it, nor is it in what was played.
struct InOneMemory {
  Bytes activations;  // that are offloaded, while a step lasts
  Bytes paged;        // optimizer states

  Bytes all() const { return activations + paged; }
};

InOneMemory in_one_memory(const ForecastContext& k, int stage, const StageMemory& memory) {
  const ParallelPlan& plan = k.question.plan;
  if (!smallest_group(k.question.cluster, plan, stage).gpu.shares_host_memory) return {};
  return {memory.activations_on_host, Bytes(plan.offload.optimizer ? 0 : memory.state.paged)};
}

// The card that a stage is told of: its own where it does there, else the least one where that is
// wanted, else one without end.
Bytes least_card(const ForecastContext& k, const LengthVariation& v, const MemoryPlays& plays,
                 const StageForecast& s, Bytes outside, bool least_wanted,
                 std::vector<RoomTried>& tried) {
  const auto at = static_cast<std::size_t>(s.stage);
  const StageMemory& memory = plays.stages[at];
  if (survives(k, v, s.stage, plays, outside, s.capacity, tried)) return s.capacity;
  if (!least_wanted) return memory.peak().reserved + outside;
  if (memory.peak().allocated + outside > s.capacity) return plays.least_rooms[at]->least + outside;
  std::vector<RoomRaised> raised = plays.raised;
  return least_room(k, v, s.stage, plays.same_as[at], s.capacity - outside, raised) + outside;
}

MemoryFigures figures(const MemoryPeak& peak, Bytes outside, Bytes card) {
  const Bytes device = std::min(card, peak.reserved + outside);
  return {peak.allocated, device - outside, device};
}

// Weights that lie whole beside their shards while a sharded model is saved [bytes]. A gathered
// state dict is made piece by piece, each moved to the host before the next (PyTorch
// torch/distributed/_state_dict_utils.py, _gather_state_dict): one layer. FSDP1 by its defaults
// clones the weights of each unit that it gathers, and the clones stay; the root's unit, with what
// is no block, is gathered first and let go last (@00c0db4e2b
// torch/distributed/fsdp/_state_dict_utils.py, _common_unshard_post_state_dict_hook).
Bytes whole_while_saving(const ForecastContext& k, int stage) {
  const Question& q = k.question;
  const Framework& f = q.workload.framework;
  if (!shards_weights(f, q.plan) || q.plan.shard_ranks() == 1) return {};
  std::int64_t largest = 0, root = 0, all = 0;
  for (const ModelChunk& chunk : k.partition.stages[static_cast<std::size_t>(stage)])
    for (const ChunkLayer& layer : chunk.layers) {
      const LayerDefinition& d = *layer.definition;
      const LayerState state = layer_state(q.workload, q.plan, d.graph.parameters, d.trainable);
      const std::int64_t whole = state.weights * q.plan.shard_ranks();
      largest = std::max(largest, whole);
      if (d.role != LayerRole::block) root += whole;
      all += whole;
    }
  return Bytes(f.sharding.saves_whole ? all + std::max(largest, root) : largest);
}

// Between two steps, with what is whole then. The allocator keeps what the steps have made it take.
MemoryPeak while_saving(const ForecastContext& k, int stage, const StageMemory& memory) {
  using enum MemoryCategory;
  const Bytes whole = whole_while_saving(k, stage);
  MemoryPeak peak;
  peak.allocated = memory.after_step + whole;
  peak.reserved = std::max(memory.steady.reserved, peak.allocated);
  Bytes told;  // of what lies between two steps
  for (const MemoryCategory c :
       {weights, quantization, adapters, master_weights, optimizer_states, workspace}) {
    const auto at = static_cast<std::size_t>(c);
    peak.breakdown[at] = memory.steady.breakdown[at];
    told += Bytes(peak.breakdown[at]);
  }
  peak.breakdown[static_cast<std::size_t>(gathered_parameters)] = whole.value;
  peak.breakdown[static_cast<std::size_t>(framework)] = (memory.after_step - told).value;
  return peak;
}

// Managed memory takes what room the rest leaves, and the driver moves what finds none to the host.
// Where both have one memory there is nowhere to move it (in_one_memory).
void make_room_for_paged(const StageMemory& memory, StageForecast& s) {
  s.paged = Bytes(memory.state.paged);
  const auto room = [&](Bytes device) {
    return std::clamp(s.capacity - device, Bytes(0), s.paged);
  };
  s.paged_out = s.paged - room(s.peak.device);
  s.breakdown[static_cast<std::size_t>(MemoryCategory::optimizer_states)] +=
      room(s.peak.device).value;
  for (MemoryFigures* f : {&s.peak, &s.steps_peak, &s.first_step_peak, &s.steady_peak, &s.save})
    f->device += room(f->device);
}

// Of the card: less cache than this is not told apart. A preference.
constexpr double worth_telling_apart = 0.01;

// Whether tensors fit, but with what the allocator caches take all of the room.
bool cache_may_fill(const MemoryPeak& peak, Bytes room) {
  return peak.allocated <= room && peak.reserved >= scaled(room, nearly_full) &&
         peak.reserved - peak.allocated >= scaled(room, worth_telling_apart);
}

// Whether it was asked of such a card: what plays on another one tell of theirs says nothing here.
bool least_known(const MemoryPlays& plays, std::size_t stage, Bytes room) {
  return stage < plays.least_rooms.size() && plays.least_rooms[stage] &&
         plays.least_rooms[stage]->asked_of == room;
}

// What pages in and out of the host fills the card whatever its size, and is no cache.
Bytes needed(const StageForecast& s, const MemoryPlays& plays, Bytes outside) {
  const auto at = static_cast<std::size_t>(s.stage);
  const bool known = least_known(plays, at, s.capacity - outside);
  if (!known || s.paged > Bytes(0) || s.peak.device > s.capacity) return s.peak.device;
  const Bytes least = plays.least_rooms[at]->least + outside;
  return s.peak.device - least >= scaled(s.capacity, worth_telling_apart) ? least : s.peak.device;
}

StageForecast stage_forecast(const ForecastContext& k, const LengthVariation& v, int stage,
                             const MemoryPlays& plays, const CommunicatorMemory& nccl,
                             bool least_wanted, std::vector<RoomTried>& tried) {
  const StageMemory& memory = plays.stages[static_cast<std::size_t>(stage)];
  const NodeGroup& group = smallest_group(k.question.cluster, k.question.plan, stage);
  const Bytes context = context_bytes(k, group);
  const InOneMemory beside = in_one_memory(k, stage, memory);
  const Bytes process = context + nccl.device, between_steps = process + beside.paged;
  const Bytes outside = process + beside.all();
  StageForecast s;
  s.stage = stage;
  s.gpu = group.gpu.id;
  s.capacity = group.gpu.usable_memory();
  const std::vector<ModelChunk>& chunks = k.partition.stages[static_cast<std::size_t>(stage)];
  s.first_layer = chunks.front().first_block;
  for (const ModelChunk& c : chunks) s.layers += c.blocks;
  const MemoryPeak& peak = memory.peak();
  const Bytes card = least_card(k, v, plays, s, outside, least_wanted, tried);
  s.peak = figures(peak, outside, card);
  s.peak.reserved_at_step = memory.reserved_at_step;
  s.first_step_peak = figures(memory.first_step, outside, card);
  s.steady_peak = figures(memory.steady, outside, card);
  const MemoryPeak save = while_saving(k, stage, memory);
  const Bytes saved = k.question.workload.framework.sharding.saves_whole
                          ? save.allocated + between_steps
                          : Bytes(0);
  s.save = figures(save, between_steps, std::max(card - beside.activations, saved));
  s.load = MemoryFigures{memory.loaded, memory.loaded, memory.loaded + process};
  s.steps_peak = s.peak;
  const bool save_is_peak = saved > s.peak.device;
  if (save_is_peak) s.peak = s.save;
  s.breakdown = save_is_peak ? save.breakdown : peak.breakdown;
  s.after_forward = memory.after_forward;
  const auto at = [&](MemoryCategory c) -> std::int64_t& {
    return s.breakdown[static_cast<std::size_t>(c)];
  };
  at(MemoryCategory::context) += context.value;
  if (!save_is_peak) at(MemoryCategory::activations) += beside.activations.value;
  at(MemoryCategory::optimizer_states) += beside.paged.value;
  at(MemoryCategory::nccl) += nccl.device.value;
  at(MemoryCategory::cache) += (s.peak.reserved - s.peak.allocated).value;
  if (!group.gpu.shares_host_memory && !k.question.plan.offload.optimizer)
    make_room_for_paged(memory, s);
  s.needed = least_wanted ? std::max(needed(s, plays, outside), saved) : s.peak.device;
  return s;
}

// What a process may take for tensors, on the whole card or in so much of it, where `beside` lies
// beside them.
Bytes room_for_tensors(const ForecastContext& k, int stage, Bytes beside,
                       std::optional<Bytes> in = std::nullopt) {
  const NodeGroup& group = smallest_group(k.question.cluster, k.question.plan, stage);
  const Bytes card = group.gpu.usable_memory();
  return std::min(card, in.value_or(card)) - context_bytes(k, group) - beside;
}

// Tensors that take more than this many times the room do not fit whatever the cache does: then
// they are told alone, without a play. A preference.
constexpr int far_off = 2;

// What a card without end reserves at most, of all that is told of a stage: a larger card than this
// would change nothing.
Bytes most_reserved(const ForecastContext& k, int stage, const StageMemory& memory) {
  return std::max({memory.first_step.reserved, memory.steady.reserved,
                   while_saving(k, stage, memory).reserved});
}

// Where the cache fills the card: from so much on, needed() tells no less than the peak.
Bytes as_good_as_full(const ForecastContext& k, int stage, const MemoryPeak& peak, Bytes room) {
  const Bytes card = smallest_group(k.question.cluster, k.question.plan, stage).gpu.usable_memory();
  return std::min(room, peak.reserved) - scaled(card, worth_telling_apart) + Bytes(1);
}

// Of stages that hold more than their GPU has, or whose cache fills it.
std::shared_ptr<const MemoryPlays> with_least_rooms(const ForecastContext& k,
                                                    const LengthVariation& v, Bytes nccl,
                                                    std::shared_ptr<const MemoryPlays> plays) {
  std::shared_ptr<MemoryPlays> more;
  for (std::size_t at = 0; at < plays->stages.size(); ++at) {
    const auto stage = static_cast<int>(at);
    const MemoryPeak& peak = plays->stages[at].peak();
    const Bytes beside = in_one_memory(k, stage, plays->stages[at]).all();
    const Bytes held = peak.allocated, room = room_for_tensors(k, stage, nccl + beside);
    if (least_known(*plays, at, room) || (held <= room && !cache_may_fill(peak, room))) continue;
    if (more == nullptr) more = std::make_shared<MemoryPlays>(*plays);
    more->least_rooms.resize(plays->stages.size());
    const bool far = held > std::int64_t{far_off} * room;
    const int same = more->same_as[at];
    const Bytes least = far           ? held
                        : held > room ? raised_room(k, v, stage, same, held, more->raised,
                                                    most_reserved(k, stage, plays->stages[at]))
                                      : least_room(k, v, stage, same, held, more->raised,
                                                   as_good_as_full(k, stage, peak, room));
    more->least_rooms[at] = LeastRoom{room, least};
  }
  return more == nullptr ? plays : more;
}

// What the allocator is played with. Where freed blocks wait for the GPU, the allocator of a full
// card waits instead, so its stream depends on this; otherwise it is played without a limit.
std::optional<Bytes> play_capacity(const ForecastContext& k, int stage, Bytes nccl) {
  if (!k.question.workload.framework.process.records_streams) return std::nullopt;
  return room_for_tensors(k, stage, nccl);
}

// Stages of one plan allocate in one way whatever the card, but for the workspaces.
std::shared_ptr<const MemoryPlays> played(const ForecastContext& k, const LengthVariation& v,
                                          Bytes nccl, const ForecastOptions& options) {
  const Question& q = k.question;
  const auto context_of = [&](int stage) -> const ContextCalibration& {
    return k.profile.row(smallest_group(q.cluster, q.plan, stage).gpu.family).context;
  };
  const ContextCalibration& first = context_of(0);
  const auto& known = options.plays;
  if (!q.workload.framework.process.records_streams && known &&
      known->workspace == first.cublas_workspace && known->workspaces == first.cublas_workspaces &&
      q.cluster.groups.size() == 1)
    return known;
  auto plays = std::make_shared<MemoryPlays>();
  plays->workspace = first.cublas_workspace;
  plays->workspaces = first.cublas_workspaces;
  plays->partition = k.kept_partition;
  plays->compute = q.workload.compute;
  const auto play = [&](int stage, std::optional<Bytes> capacity) {
    PlayVariation how = v.play;
    if (options.only_if_fits || options.give_up_above)
      how.most_allocated = room_for_tensors(k, stage, nccl, options.give_up_above);
    else if (options.give_up_lacking)
      how.most_allocated = room_for_tensors(k, stage, nccl) + *options.give_up_lacking;
    return play_memory(q.workload, q.plan, k.schedule, k.partition, stage, context_of(stage),
                       capacity, how);
  };
  StagesToPlay of;
  of.stages = q.plan.pipeline;
  // A full card's allocator waits for the GPU, where and when is not on any line.
  of.may_lie_between = !q.workload.framework.process.records_streams;
  for (int stage = 0; stage < q.plan.pipeline; ++stage)
    of.slots.push_back(slots_of_step(q.workload, q.plan, k.schedule, stage));
  of.play = [&](int stage) {
    const std::optional<Bytes> capacity = play_capacity(k, stage, nccl);
    StageMemory memory = play(stage, capacity);
    // How much it is the play has told, whatever it was given.
    const Bytes beside = in_one_memory(k, stage, memory).all();
    if (capacity && beside > Bytes(0)) memory = play(stage, std::max(Bytes(0), *capacity - beside));
    // What does not fit is told as it would be on a card that is large enough.
    return memory.ran_out ? play(stage, std::nullopt) : memory;
  };
  of.like_the_one_before = [&](int stage) {
    const auto at = static_cast<std::size_t>(stage);
    const auto equal = [&](const ModelPartition& p) {
      return equal_layers(p.stages[at], p.stages[at - 1]);
    };
    return &context_of(stage) == &context_of(stage - 1) &&
           play_capacity(k, stage, nccl) == play_capacity(k, stage - 1, nccl) &&
           equal(k.partition) && std::all_of(v.partitions.begin(), v.partitions.end(), equal);
  };
  plays->stages = stage_plays(of);
  plays->same_as = first_of_the_same(of);
  return plays;
}

// The card on which a plan is asked to fit with the error of forecasts like it.
Bytes smaller_by(Bytes capacity, const SpreadRow& spread) {
  const double high = std::max(1.0, spread.high);
  return Bytes(static_cast<std::int64_t>(static_cast<double>(capacity.value) / high));
}

// What the allocator only caches it gives back before it fails: of a plan that has filled the card
// up that way, every stage is played on a card that is smaller by the high end of the interval.
bool fits_smaller(const ForecastContext& k, const LengthVariation& v, const Forecast& f,
                  const SpreadRow& spread, std::vector<RoomTried>& tried) {
  return std::all_of(f.stages.begin(), f.stages.end(), [&](const StageForecast& s) {
    const Bytes outside = s.steps_peak.device - s.steps_peak.reserved;
    return s.paged == Bytes(0) &&
           (!s.save_is_peak() || s.peak.device <= smaller_by(s.capacity, spread)) &&
           survives(k, v, s.stage, *f.plays, outside, smaller_by(s.capacity, spread), tried);
  });
}

// Sets the verdict, by the margin and the interval that are there.
void judge(const ForecastContext& k, const LengthVariation& v, const SpreadRow& spread,
           bool tight_is_told, std::vector<RoomTried>& tried, Forecast& f) {
  const StageForecast& worst = f.worst();
  if (f.margin < Bytes(0)) {
    f.verdict = Verdict::does_not_fit;
  } else if (f.peak_device.high <= worst.capacity) {
    f.verdict = Verdict::fits;
  } else if (tight_is_told && fits_smaller(k, v, f, spread, tried)) {
    f.verdict = Verdict::fits;
    f.peak_device.high = worst.capacity;
    const auto cache = worst.breakdown[static_cast<std::size_t>(MemoryCategory::cache)];
    // A card that grows may pass over a smaller one that would do: `needed` is said as it is found.
    const Bytes smaller = smaller_by(worst.capacity, spread);
    f.notes.push_back(sentence(
        "Of the memory reserved ", fixed(gib(Bytes(cache)), 1),
        " GiB are the allocator's cache, which it gives back before it runs out",
        worst.cache_fills() && worst.needed > smaller
            ? std::string(".")
            : sentence(": a card with ", fixed(gib(smaller), 1), " GiB would do as well.")));
  } else {
    f.verdict = Verdict::tight;
  }
}

// Steps run until the first save: that it is what does not fit, or fits least, is told.
std::string told_of_save(const StageForecast& s) {
  const auto whole = s.breakdown[static_cast<std::size_t>(MemoryCategory::gathered_parameters)];
  return sentence("The peak is a save, at the end of training or every so many steps, which makes ",
                  "the whole model on every GPU at once, ", shown_gib(Bytes(whole)),
                  " beside its shards; steps alone take ", shown_gib(s.steps_peak.device), " of ",
                  shown_gib(s.capacity),
                  ". A FullStateDictConfig with offload_to_cpu and rank0_only spares that.");
}

}  // namespace

const NodeGroup& smallest_group(const Cluster& cluster, const ParallelPlan& plan, int stage) {
  const int ranks = plan.gpus() / plan.pipeline;
  const NodeGroup* smallest = nullptr;
  int first = 0;
  for (const NodeGroup& g : cluster.groups) {
    const bool plays = first < (stage + 1) * ranks && stage * ranks < first + g.gpus();
    if (plays && (smallest == nullptr || g.gpu.usable_memory() < smallest->gpu.usable_memory()))
      smallest = &g;
    first += g.gpus();
  }
  return smallest == nullptr ? cluster.groups.front() : *smallest;
}

void forecast_memory(const ForecastContext& k, const ForecastOptions& options, Forecast& f) {
  const Question& q = k.question;
  const CommunicatorMemory nccl =
      plan_communicators(q.workload, q.plan, q.cluster, k.cost.layout(), k.cost.collectives());
  Bytes least_margin;
  const LengthVariation v = length_variation(k);
  f.plays = played(k, v, nccl.device, options);
  const bool least_wanted = options.least_card && !options.only_if_fits && !options.give_up_above;
  if (least_wanted) f.plays = with_least_rooms(k, v, nccl.device, f.plays);
  std::vector<RoomTried> tried = f.plays->tried;
  for (int stage = 0; stage < q.plan.pipeline; ++stage) {
    f.stages.push_back(stage_forecast(k, v, stage, *f.plays, nccl, least_wanted, tried));
    const StageForecast& s = f.stages.back();
    const Bytes margin = s.capacity - s.peak.device;
    if (stage > 0 && margin >= least_margin) continue;
    least_margin = margin;
    f.worst_stage = stage;
  }
  const StageMemory& played_worst = f.plays->stages[static_cast<std::size_t>(f.worst_stage)];
  const StageForecast& worst = f.worst();
  const SpreadRow spread = spread_of(k.profile.spread.memory, spread_key(q));
  const Bytes resident = worst.paged - worst.paged_out;
  const auto held = static_cast<double>((worst.peak.device - resident).value);
  const auto with_paged = [&](Bytes device) {
    return device + std::clamp(worst.capacity - device, Bytes(0), worst.paged);
  };
  f.peak_device = {with_paged(ceil_bytes(held * std::min(1.0, spread.low))), worst.peak.device,
                   with_paged(ceil_bytes(held * std::max(1.0, spread.high)))};
  f.margin = least_margin;
  judge(k, v, spread, options.tight_is_told, tried, f);
  if (worst.save_is_peak()) f.notes.push_back(told_of_save(worst));
  const bool one_memory = smallest_group(q.cluster, q.plan, f.worst_stage).gpu.shares_host_memory;
  const Bytes on_host = one_memory ? Bytes(0) : played_worst.activations_on_host;
  f.host = host_memory(q.workload, q.plan, q.cluster, k.profile.host_memory,
                       {played_worst.state, on_host, nccl.host, worst.paged_out});
  const Bytes host_need = std::max(f.host.steady, f.host.load_peak);
  f.host_fits = !f.host.available || host_need <= *f.host.available;
  const auto given_up = [](const StageMemory& m) { return m.given_up; };
  if (std::any_of(f.plays->stages.begin(), f.plays->stages.end(), given_up)) f.plays.reset();
  if (f.plays == nullptr || tried.size() == f.plays->tried.size()) return;
  auto plays = std::make_shared<MemoryPlays>(*f.plays);
  plays->tried = std::move(tried);
  f.plays = std::move(plays);
}

}  // namespace shardwise
