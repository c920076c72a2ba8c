#include <algorithm>
#include <string>

#include "calibrate/measuring/bench_plan.hpp"
#include "calibrate/measuring/kernel_traffic.hpp"

namespace shardwise {
namespace {

BenchPoint memory_kernel(const std::string& kernel, const std::string& dtype, std::int64_t rows,
                         std::int64_t columns) {
  BenchPoint point;
  point.bench = "memory_kernel";
  point.labels = {{"kernel", kernel}, {"dtype", dtype}};
  point.sizes = {{"rows", rows}, {"columns", columns}};
  point.shrinks = "rows";
  return point;
}

// fused: one kernel over all parameters; per_tensor: one over each of `tensors` equal ones.
BenchPoint adam(const char* form, std::int64_t parameters, std::int64_t tensors) {
  BenchPoint point;
  point.bench = "memory_kernel";
  point.labels = {{"kernel", "adam"}, {"form", form}, {"dtype", "fp32"}};
  point.sizes = {{"parameters", parameters}, {"tensors", tensors}};
  point.shrinks = "parameters";
  return point;
}

BenchPoint dequantisation(std::int64_t parameters) {
  BenchPoint point;
  point.bench = "memory_kernel";
  point.labels = {{"kernel", "nf4_dequantise"}, {"dtype", "bf16"}};
  point.sizes = {{"parameters", parameters}, {"block", 64}};
  point.shrinks = "parameters";
  return point;
}

struct AttentionShape {
  std::int64_t batch, heads, kv_heads, sequence, head_dim;
};

void add_attention(BenchPlan& plan, const std::string& dtype, const AttentionShape& shape,
                   bool causal) {
  for (const char* pass : {"forward", "backward"}) {
    BenchPoint point;
    point.bench = "attention";
    point.labels = {
        {"dtype", dtype}, {"pass", pass}, {"causal", causal ? "yes" : "no"}, {"kernel", "own"}};
    point.sizes = {{"batch", shape.batch},
                   {"heads", shape.heads},
                   {"kv_heads", shape.kv_heads},
                   {"sequence", shape.sequence},
                   {"head_dim", shape.head_dim}};
    point.shrinks = shape.batch > 1 ? "batch" : "sequence";
    point.weight = 2;
    plan.push_back(point);
  }
}

// As many tokens at every length, so that what changes is the length.
void add_attention_grid(BenchPlan& plan, CalibrationMode mode, const std::string& dtype) {
  const bool full = mode == CalibrationMode::full;
  const std::int64_t tokens = 8192;
  for (std::int64_t sequence = full ? 256 : 512; sequence <= (full ? 32768 : 8192);
       sequence *= full ? 2 : 4) {
    const std::int64_t batch = std::max<std::int64_t>(1, tokens / sequence);
    add_attention(plan, dtype, {batch, 32, 8, sequence, 128}, true);
    if (!full) continue;
    add_attention(plan, dtype, {batch, 32, 32, sequence, 64}, true);
    add_attention(plan, dtype, {batch, 32, 8, sequence, 128}, false);
    add_attention(plan, dtype, {1, 8, 8, sequence, 128}, true);
  }
  add_attention(plan, dtype, {8, 12, 12, 1024, 64}, true);
}

}  // namespace

BenchPlan kernel_plan(CalibrationMode mode, const GpuTraits& gpu) {
  const bool full = mode == CalibrationMode::full;
  const std::string dtype = gpu.compute_capability >= 80 ? "bf16" : "fp16";
  BenchPlan plan;
  add_attention_grid(plan, mode, dtype);
  for (const RowTraffic& row : row_traffic) {
    const std::string kernel(row.kernel);
    const bool over_vocabulary = kernel == "cross_entropy";
    const std::int64_t columns = over_vocabulary ? 128256 : 4096;
    plan.push_back(memory_kernel(kernel, dtype, over_vocabulary ? 2048 : 8192, columns));
    plan.push_back(memory_kernel(kernel, dtype, 256, columns));
    if (!full) continue;
    for (const std::int64_t rows : {32, 1024, 2048, 16384})
      for (const std::int64_t wide : {std::int64_t{1024}, std::int64_t{8192}, columns})
        plan.push_back(memory_kernel(kernel, dtype, over_vocabulary ? rows / 8 : rows, wide));
  }
  plan.push_back(adam("fused", 256'000'000, 1));
  plan.push_back(adam("per_tensor", 256'000'000, 64));
  plan.push_back(dequantisation(4096 * 14336));
  if (!full) return plan;
  for (const std::int64_t parameters : {1'000'000, 16'000'000, 1'000'000'000}) {
    plan.push_back(adam("fused", parameters, 1));
    plan.push_back(adam("per_tensor", parameters, 16));
    plan.push_back(dequantisation(parameters));
  }
  return plan;
}

}  // namespace shardwise
