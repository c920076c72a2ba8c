#include "planner/forecast/stage_room.hpp"

#include <algorithm>

#include "simulator/costs/kernel_model.hpp"
#include "simulator/memory/stage_holdings.hpp"

namespace shardwise {
namespace {

// Of a step without stages (slots_played).
constexpr int microbatches_played = 2;

// Kernels that the GPU gets done while the CPU issues one, forward through a block, and how far
// that has let the CPU lead before the microbatches that are played: a step ends with a wait, but
// between its microbatches there is none.
HostLead host_lead(const ForecastContext& k) {
  const Question& q = k.question;
  if (!q.workload.framework.process.records_streams) return {};
  const Gpu& gpu = smallest_group(q.cluster, q.plan, 0).gpu;
  const KernelModel kernels(gpu, k.profile, attention_choice(q.workload, q.plan));
  for (const LayerDefinition& d : k.partition.definitions) {
    if (d.role != LayerRole::block) continue;
    const PassTime pass = k.cost.layer_time(d, kernels).forward;
    double entries = 0, both_ways = 0;
    for (const Operator& op : d.graph.operators) {
      entries += launches(op.forward);
      both_ways += launches(op.forward) + launches(op.backward) + launches(op.backward_weight);
    }
    HostLead lead;
    lead.launch_queue = k.profile.host.launch_queue;
    lead.stalled = k.profile.host.communicator_creation / pass.host * entries;
    // Where every layer ends in a collective, the slowest CPU of the group sets the pace of all.
    const double pace = q.plan.tensor > 1 ? 1 + k.profile.host.rank_spread : 1;
    lead.done_per_issued = std::min(1.0, pass.host / pass.device()) / pace;
    if (q.plan.pipeline > 1) return lead;  // every receive ends the lead
    const int before = std::max(0, q.plan.microbatches - microbatches_played);
    lead.ahead = std::min<double>(lead.launch_queue, (1 - lead.done_per_issued) * both_ways *
                                                         q.workload.model.layers * before);
    return lead;
  }
  return {};
}

StageMemory play_again(const ForecastContext& k, int stage, Bytes capacity,
                       const PlayVariation& how) {
  const Question& q = k.question;
  const ContextCalibration& context =
      k.profile.row(smallest_group(q.cluster, q.plan, stage).gpu.family).context;
  return play_memory(q.workload, q.plan, k.schedule, k.partition, stage, context, capacity, how);
}

}  // namespace

LengthVariation length_variation(const ForecastContext& k) {
  LengthVariation v;
  v.play.lead = host_lead(k);
  const Question& q = k.question;
  if (!q.workload.framework.defaults.lengths_vary || q.workload.method == Method::pretrain)
    return v;
  Workload w = q.workload;
  const int multiple = 16 * q.plan.context * q.plan.tensor;
  const int records = q.workload.framework.defaults.cuts_samples ? 1 : 4;
  for (int record = 1; record <= records; ++record) {
    const int length = q.workload.sequence - (q.workload.sequence >> record);
    w.sequence = std::max(multiple, length / multiple * multiple);
    if (w.sequence < q.workload.sequence)
      v.partitions.push_back(partition_model(w, q.plan, k.schedule, k.policy));
  }
  for (const ModelPartition& p : v.partitions) v.play.shorter.push_back(&p);
  return v;
}

bool survives(const ForecastContext& k, const LengthVariation& v, int stage,
              const MemoryPlays& plays, Bytes outside, Bytes capacity,
              std::vector<RoomTried>& tried) {
  const auto at = static_cast<std::size_t>(stage);
  const MemoryPeak& peak = plays.stages[at].peak();
  if (peak.reserved + outside <= capacity) return true;
  if (peak.allocated + outside > capacity) return false;
  const Bytes room = capacity - outside;
  for (const RoomTried& t : tried)
    if (t.stage == plays.same_as[at] && t.room == room) return t.enough;
  tried.push_back({plays.same_as[at], room, !play_again(k, stage, room, v.play).ran_out});
  return tried.back().enough;
}

Bytes raised_room(const ForecastContext& k, const LengthVariation& v, int stage, int same_as,
                  Bytes room, std::vector<RoomRaised>& raised, std::optional<Bytes> enough) {
  for (const RoomRaised& r : raised) {
    if (r.stage != same_as) continue;
    const bool told = !r.ended || (enough && r.to >= *enough);
    if ((r.from == room && told) || (r.to == room && r.enough)) return r.to;
  }
  PlayVariation how = v.play;
  how.raises_capacity = true;
  how.raised_enough = enough;
  const StageMemory grown = play_again(k, stage, room, how);
  const Bytes to = *grown.capacity;
  const bool ended = enough && to >= *enough;
  raised.push_back({same_as, room, to, grown.kept_all && !ended, ended});
  return to;
}

Bytes least_room(const ForecastContext& k, const LengthVariation& v, int stage, int same_as,
                 Bytes room, std::vector<RoomRaised>& raised, std::optional<Bytes> enough) {
  for (;;) {
    const Bytes more = raised_room(k, v, stage, same_as, room, raised, enough);
    if (more == room || (enough && more >= *enough)) return more;
    room = more;
  }
}

}  // namespace shardwise
