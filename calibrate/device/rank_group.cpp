#include "calibrate/device/rank_group.hpp"

#include <array>
#include <string_view>

#include "calibrate/device/communicators.hpp"

namespace shardwise {

#ifdef SHARDWISE_WITH_NCCL

namespace {

std::string id_text(const ncclUniqueId& id) { return {id.internal, sizeof id.internal}; }

ncclUniqueId shared_id(Rendezvous* others, int first_rank) {
  ncclUniqueId id{};
  if (first_rank == 0) check(nccl().unique_id(&id), "making an id");
  if (others == nullptr) return id;
  const std::string text = others->from_first(id_text(id));
  text.copy(id.internal, sizeof id.internal);
  return id;
}

// NCCL connects when it is first used, so that belongs to what a communicator takes.
void use_once(const Communicators& all, const std::vector<Gpu*>& gpus) {
  std::vector<GpuBuffer> buffers;
  for (std::size_t i = 0; i < all.of_gpu.size(); ++i) {
    gpus[i]->activate();
    buffers.emplace_back(Bytes(1 << 20));
  }
  on_every_rank(all, [&](std::size_t i, ncclComm_t comm) {
    void* data = buffers[i].data();
    check(nccl().all_reduce(data, data, 1 << 18, ncclFloat, ncclSum, comm, gpus[i]->stream()),
          "a collective");
  });
  for (std::size_t i = 0; i < all.of_gpu.size(); ++i) {
    gpus[i]->activate();
    check(cudaStreamSynchronize(gpus[i]->stream()), "a collective");
  }
}

}  // namespace

const Communicators& RankGroup::communicators(int ranks) {
  auto& made = made_[ranks];
  if (made) return *made;
  auto fresh = std::make_unique<Communicators>();
  fresh->ranks = ranks;
  fresh->first_rank = first_rank_;
  for (Gpu* gpu : gpus_) gpu->activate();
  const auto before = gpus_[0]->used();
  const ncclUniqueId id = shared_id(others_, first_rank_);
  const std::size_t here = others_ == nullptr ? static_cast<std::size_t>(ranks) : 1;
  fresh->of_gpu.assign(here, nullptr);
  check(nccl().group_start(), "grouping");
  for (std::size_t i = 0; i < here; ++i) {
    gpus_[i]->activate();
    check(nccl().join(&fresh->of_gpu[i], ranks, id, first_rank_ + static_cast<int>(i)),
          "making a communicator");
  }
  check(nccl().group_end(), "making a communicator");
  use_once(*fresh, gpus_);
  if (const auto after = gpus_[0]->used(); before && after) fresh->held = *after - *before;
  made = std::move(fresh);
  return *made;
}

std::optional<Bytes> RankGroup::communicator_bytes(int ranks) { return communicators(ranks).held; }

#else

struct Communicators {};

const Communicators& RankGroup::communicators(int) {
  not_supported("this shardwise-calibrate was built without NCCL's header");
}

std::optional<Bytes> RankGroup::communicator_bytes(int ranks) {
  communicators(ranks);
  return std::nullopt;
}

RunOnce prepare_collective(RankGroup& group, const BenchPoint&) {
  group.communicators(0);
  return {};
}

RunOnce prepare_gemm_beside(RankGroup& group, const BenchPoint&) {
  group.communicators(0);
  return {};
}

#endif

RankGroup::RankGroup(std::vector<Gpu*> gpus)
    : gpus_(std::move(gpus)), ranks_(static_cast<int>(gpus_.size())) {}

RankGroup::RankGroup(Gpu& gpu, const RankPlace& place, Rendezvous& others)
    : gpus_{&gpu}, ranks_(place.world), first_rank_(place.rank), others_(&others) {}

RankGroup::~RankGroup() = default;

Sample RankGroup::agreed(Sample mine) const {
  if (others_ == nullptr) return mine;
  const auto all = others_->greatest(
      {static_cast<double>(mine.status), mine.value, mine.busy.value, mine.disturbed ? 1.0 : 0.0});
  const auto status = static_cast<RunStatus>(static_cast<int>(all[0]));
  if (status != mine.status) mine.why = "on another rank";
  mine.status = status;
  mine.value = all[1];
  mine.busy = Seconds(all[2]);
  mine.disturbed = all[3] > 0;
  return mine;
}

Prepared RankGroup::agreed(Prepared mine) const {
  if (others_ == nullptr) return mine;
  const auto worst = others_->greatest({static_cast<double>(mine.status)});
  const auto status = static_cast<RunStatus>(static_cast<int>(worst[0]));
  if (status != mine.status) mine.why = "on another rank";
  mine.status = status;
  mine.run_once = [this, run = mine.run_once] { return agreed(run()); };
  return mine;
}

namespace {

RunOnce prepare_communicator_memory(RankGroup& group, const BenchPoint& point) {
  const auto held = group.communicator_bytes(static_cast<int>(point.sizes.at("ranks")));
  if (!held) not_supported("the driver does not tell the memory in use");
  return always(*held);
}

struct BenchRow {
  std::string_view bench;
  RunOnce (*prepare)(RankGroup&, const BenchPoint&);
};
constexpr std::array<BenchRow, 5> benches{{
    {"collective", prepare_collective},
    {"gemm_beside", prepare_gemm_beside},
    {"memory_held", prepare_communicator_memory},
    {"copy", prepare_peer_copy},
    {"copy_together", prepare_copy_together},
}};

RunOnce prepare_with(RankGroup& group, const BenchPoint& point) {
  for (Gpu* gpu : group.gpus()) gpu->activate();
  for (const BenchRow& row : benches)
    if (row.bench == point.bench) return row.prepare(group, point);
  not_supported("no bench of this name on several GPUs");
}

ClockState worst_clock(const RankGroup& group) {
  ClockState worst = group.gpus()[0]->clock_state();
  for (const Gpu* gpu : group.gpus()) worst.slowed = worst.slowed || gpu->clock_state().slowed;
  if (group.others() == nullptr) return worst;
  const auto all = group.others()->greatest({worst.slowed ? 1.0 : 0.0, 1.0 * worst.sm_mhz});
  return {all[0] > 0, static_cast<int>(all[1])};
}

}  // namespace

// Every process asks for the time, the clocks and the outcome in the same order, and all get the
// same answers: so they take the same decisions.
BenchDevice machine_device(RankGroup& group) {
  BenchDevice device = bench_device(*group.gpus()[0]);
  device.prepare = [&group](const BenchPoint& point) {
    return group.agreed(guarded([&] { return prepare_with(group, point); }));
  };
  device.clock_state = [&group] { return worst_clock(group); };
  device.now = [&group, now = device.now] {
    const SimTime mine = now();
    if (group.others() == nullptr) return mine;
    return SimTime{std::stoll(group.others()->from_first(std::to_string(mine.picoseconds)))};
  };
  return device;
}

}  // namespace shardwise
