#include <array>
#include <set>

#include "calibrate/measuring/bench_plan.hpp"

namespace shardwise {
namespace {

constexpr std::array<const char*, 6> collectives{"all_reduce", "all_gather", "reduce_scatter",
                                                 "all_to_all", "broadcast",  "send_recv"};

void add_copies_together(BenchPlan& plan, int gpus) {
  for (const char* direction : {"host_to_device", "device_to_host"}) {
    BenchPoint point;
    point.bench = "copy_together";
    point.labels = {{"direction", direction}, {"host", "pinned"}};
    point.sizes = {{"gpus", gpus}, {"bytes", 256 * mib}};
    point.shrinks = "bytes";
    plan.push_back(point);
  }
}

void add_peer_copies(BenchPlan& plan, CalibrationMode mode, int gpus) {
  for (int from = 0; from < gpus; ++from)
    for (int to = 0; to < gpus; ++to) {
      // Quick: from the first GPU to every other; full: every ordered pair.
      if (from == to || (mode == CalibrationMode::quick && from != 0)) continue;
      for (const char* direction : {"device_to_device", "device_to_device_bidirectional"}) {
        BenchPoint point;
        point.bench = "copy";
        point.labels = {
            {"direction", direction}, {"from", std::to_string(from)}, {"to", std::to_string(to)}};
        point.sizes = {{"bytes", 128 * mib}};
        point.shrinks = "bytes";
        plan.push_back(point);
      }
    }
}

void add_collectives(BenchPlan& plan, CalibrationMode mode, int ranks, int nodes) {
  const std::int64_t step = mode == CalibrationMode::full ? 2 : 32;
  for (const char* collective : collectives)
    for (std::int64_t bytes = 1024 * mib; bytes >= 8 * kib; bytes /= step) {
      BenchPoint point;
      point.bench = "collective";
      point.labels = {{"collective", collective}, {"dtype", "bf16"}};
      point.sizes = {{"bytes", bytes}, {"ranks", ranks}, {"nodes", nodes}};
      point.shrinks = "bytes";
      plan.push_back(point);
    }
}

void add_gemms_beside(BenchPlan& plan, int ranks) {
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter"}) {
    BenchPoint point;
    point.bench = "gemm_beside";
    point.labels = {{"collective", collective}, {"dtype", "bf16"}};
    point.sizes = {{"m", 8192}, {"n", 8192}, {"k", 8192}, {"ranks", ranks}, {"bytes", 256 * mib}};
    point.shrinks = "bytes";
    plan.push_back(point);
  }
}

void add_communicator_memory(BenchPlan& plan, int ranks) {
  BenchPoint point;
  point.bench = "memory_held";
  point.labels = {{"by", "nccl_communicator"}};
  point.sizes = {{"ranks", ranks}};
  point.quantity = "bytes";
  plan.push_back(point);
}

}  // namespace

BenchPlan machine_plan(CalibrationMode mode, const GroupTraits& group) {
  BenchPlan plan;
  if (group.ranks < 2) return plan;
  if (group.ranks == group.gpus) {
    add_copies_together(plan, group.gpus);
    add_peer_copies(plan, mode, group.gpus);
  }
  add_communicator_memory(plan, group.ranks);
  add_collectives(plan, mode, group.ranks, group.nodes);
  add_gemms_beside(plan, group.ranks);
  // Smaller groups inside one machine: pairs, fours, and so on up to half of it.
  if (group.nodes == 1)
    for (int ranks = 2; ranks < group.ranks; ranks *= 2) add_collectives(plan, mode, ranks, 1);
  return plan;
}

BenchPlan gpu_plan(CalibrationMode mode, const GpuTraits& gpu) {
  BenchPlan plan;
  std::set<std::string> seen;  // grids meet: a point is measured once
  for (const BenchPlan& part : {copy_plan(mode), gemm_plan(mode, gpu), kernel_plan(mode, gpu)})
    for (const BenchPoint& point : part)
      if (seen.insert(identity(point)).second) plan.push_back(point);
  return plan;
}

// Quick: at most 60 s per GPU, of which the context and the libraries take a few.
Seconds gpu_budget(CalibrationMode mode) {
  return mode == CalibrationMode::full ? Seconds(1500) : Seconds(52);
}

Seconds machine_budget(CalibrationMode mode) {
  return mode == CalibrationMode::full ? Seconds(1200) : Seconds(60);
}

}  // namespace shardwise
