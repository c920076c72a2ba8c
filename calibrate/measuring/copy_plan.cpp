#include "calibrate/measuring/bench_plan.hpp"

namespace shardwise {
namespace {

BenchPoint copy(const char* direction, const char* host, std::int64_t bytes) {
  BenchPoint point;
  point.bench = "copy";
  point.labels = {{"direction", direction}, {"host", host}};
  point.sizes = {{"bytes", bytes}};
  point.shrinks = "bytes";
  return point;
}

void add_copies(BenchPlan& plan, const char* direction, const char* host, std::int64_t first,
                std::int64_t last, std::int64_t step) {
  for (std::int64_t bytes = last; bytes >= first; bytes /= step)
    plan.push_back(copy(direction, host, bytes));
}

void add_launches(BenchPlan& plan) {
  for (const char* kind : {"gpu_gap", "host_issue", "graph"}) {
    BenchPoint point;
    point.bench = "launch";
    point.labels = {{"kind", kind}};
    point.sizes = {{"kernels", 500}};
    plan.push_back(point);
  }
}

void add_memory_held(BenchPlan& plan) {
  for (const char* by : {"context", "cublas"}) {
    BenchPoint point;
    point.bench = "memory_held";
    point.labels = {{"by", by}};
    point.quantity = "bytes";
    plan.push_back(point);
  }
}

}  // namespace

BenchPlan copy_plan(CalibrationMode mode) {
  const std::int64_t step = mode == CalibrationMode::full ? 2 : 16;
  BenchPlan plan;
  add_memory_held(plan);
  add_launches(plan);
  add_copies(plan, "device_local", "none", 64 * kib, 1024 * mib, step);
  for (const char* direction : {"host_to_device", "device_to_host"}) {
    add_copies(plan, direction, "pinned", 4 * kib, 256 * mib, step);
    add_copies(plan, direction, "pageable", 4 * kib, 256 * mib, step * step);
  }
  return plan;
}

}  // namespace shardwise
