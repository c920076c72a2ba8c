// Which products transformers ask for: the four linear layers of a block and the output layer, over
// tokens, forward and backward; powers of two and odd tails; scans over m that show whole waves.
#include <array>
#include <string>

#include "calibrate/measuring/bench_plan.hpp"

namespace shardwise {
namespace {

// Shapes of published models (catalog/models); `attention` is the width of q, k and v together.
struct BlockShape {
  std::int64_t hidden, attention, feed_forward, vocabulary;
};
constexpr std::array<BlockShape, 6> blocks{{
    {4096, 6144, 14336, 128256},   // Llama 3 8B
    {8192, 10240, 28672, 128256},  // Llama 3 70B
    {5120, 15360, 13824, 32000},   // Llama 2 13B
    {2048, 2560, 5632, 32000},     // TinyLlama 1.1B
    {768, 2304, 3072, 50257},      // GPT-2
    {16384, 18432, 53248, 128256}  // Llama 3.1 405B
}};

struct DtypeRow {
  const char* name;
  int first_capability;
};
constexpr std::array<DtypeRow, 5> dtypes{
    {{"bf16", 80}, {"fp16", 70}, {"tf32", 80}, {"fp32", 0}, {"fp8", 89}}};

BenchPoint product(const std::string& dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  BenchPoint point;
  point.bench = "gemm";
  point.labels = {{"dtype", dtype}, {"layout", "tn"}, {"epilogue", "none"}};
  point.sizes = {{"m", m}, {"n", n}, {"k", k}, {"batch", 1}};
  point.shrinks = "m";
  return point;
}

BenchPoint with(BenchPoint point, const char* label, const char* value) {
  point.labels[label] = value;
  return point;
}

// The layers of a block forward, at so many tokens.
void add_block(BenchPlan& plan, const std::string& dtype, const BlockShape& block,
               std::int64_t tokens) {
  plan.push_back(product(dtype, tokens, block.attention, block.hidden));
  plan.push_back(product(dtype, tokens, block.hidden, block.hidden));
  plan.push_back(product(dtype, tokens, block.feed_forward, block.hidden));
  plan.push_back(product(dtype, tokens, block.hidden, block.feed_forward));
  plan.push_back(product(dtype, tokens, block.vocabulary, block.hidden));
}

// The gradients of one layer: of its input (tokens x in, over out), of its weight (out x in, over
// tokens).
void add_gradients(BenchPlan& plan, const std::string& dtype, std::int64_t tokens, std::int64_t in,
                   std::int64_t out) {
  plan.push_back(with(product(dtype, tokens, in, out), "layout", "nn"));
  plan.push_back(with(product(dtype, out, in, tokens), "layout", "nt"));
}

// The gradient of a weight added to an fp32 one, as Megatron-LM's fused accumulation does.
void add_accumulation(BenchPlan& plan, const std::string& dtype, std::int64_t tokens,
                      std::int64_t in, std::int64_t out) {
  plan.push_back(
      with(with(product(dtype, out, in, tokens), "layout", "nt"), "epilogue", "accumulate"));
}

void add_squares(BenchPlan& plan, const std::string& dtype, std::int64_t first, std::int64_t last) {
  for (std::int64_t size = first; size <= last; size *= 2)
    plan.push_back(product(dtype, size, size, size));
}

// Sizes next to a multiple of the tiles, as unpadded vocabularies and packed sequences have them.
void add_tails(BenchPlan& plan, const std::string& dtype) {
  for (const std::int64_t m : {4095, 4097, 4104, 4160})
    plan.push_back(product(dtype, m, 4096, 4096));
  for (const std::int64_t n : {4098, 4104, 50257, 50304})
    plan.push_back(product(dtype, 4096, n, 4096));
  for (const std::int64_t k : {4100, 4104, 1000, 80}) plan.push_back(product(dtype, 4096, 4096, k));
}

void add_epilogues(BenchPlan& plan, const std::string& dtype) {
  for (const char* epilogue : {"bias", "gelu_bias"})
    plan.push_back(with(product(dtype, 8192, 16384, 4096), "epilogue", epilogue));
}

void add_batched(BenchPlan& plan, const std::string& dtype, std::int64_t batch, std::int64_t size,
                 std::int64_t k) {
  BenchPoint point = product(dtype, size, size, k);
  point.sizes["batch"] = batch;
  point.shrinks = "batch";
  plan.push_back(point);
}

// Experts of a mixture, each with its own tokens, in one grouped call.
void add_grouped(BenchPlan& plan, const std::string& dtype, std::int64_t experts,
                 std::int64_t tokens, std::int64_t n, std::int64_t k) {
  BenchPoint point = product(dtype, tokens, n, k);
  point.bench = "gemm_grouped";
  point.sizes.erase("batch");
  point.sizes["experts"] = experts;
  point.shrinks = "experts";
  plan.push_back(point);
}

void add_wave_scan(BenchPlan& plan, const std::string& dtype) {
  for (std::int64_t m = 256; m <= 6144; m += 256) plan.push_back(product(dtype, m, 4096, 4096));
}

BenchPlan quick_plan(const std::string& dtype) {
  BenchPlan plan;
  for (const std::int64_t tokens : {2048, 8192, 256}) add_block(plan, dtype, blocks[0], tokens);
  add_gradients(plan, dtype, 8192, 4096, 14336);
  add_gradients(plan, dtype, 8192, 4096, 4096);
  add_accumulation(plan, dtype, 8192, 4096, 14336);
  add_squares(plan, dtype, 256, 8192);
  for (const std::int64_t m : {1024, 1536, 3072, 4095})
    plan.push_back(product(dtype, m, 4096, 4096));
  plan.push_back(product(dtype, 4096, 50257, 768));
  add_epilogues(plan, dtype);
  add_batched(plan, dtype, 64, 1024, 128);
  add_grouped(plan, dtype, 8, 1024, 14336, 4096);
  return plan;
}

BenchPlan full_plan(const std::string& dtype) {
  BenchPlan plan = quick_plan(dtype);
  for (const BlockShape& block : blocks) {
    for (const std::int64_t tokens : {512, 1024, 2048, 4096, 8192, 16384})
      add_block(plan, dtype, block, tokens);
    add_gradients(plan, dtype, 8192, block.hidden, block.feed_forward);
    add_gradients(plan, dtype, 2048, block.feed_forward, block.hidden);
    add_gradients(plan, dtype, 4096, block.hidden, block.vocabulary);
    add_accumulation(plan, dtype, 4096, block.hidden, block.feed_forward);
  }
  add_wave_scan(plan, dtype);
  add_tails(plan, dtype);
  for (const std::int64_t batch : {16, 256}) add_batched(plan, dtype, batch, 2048, 64);
  for (const std::int64_t experts : {16, 64, 128}) {
    add_grouped(plan, dtype, experts, 256, 2048, 7168);  // DeepSeek-V3's experts
    add_grouped(plan, dtype, experts, 1024, 1536, 2048);
  }
  return plan;
}

// The other dtypes: enough to tell their rate and how they grow into it.
BenchPlan side_plan(CalibrationMode mode, const std::string& dtype) {
  BenchPlan plan;
  const bool slow = dtype == "fp32";
  add_squares(plan, dtype, mode == CalibrationMode::full ? 256 : 1024, slow ? 4096 : 8192);
  plan.push_back(product(dtype, slow ? 512 : 4096, 14336, 4096));
  if (mode == CalibrationMode::full)
    for (const std::int64_t tokens : {512, 2048, 8192})
      add_block(plan, dtype, blocks[0], slow ? tokens / 4 : tokens);
  return plan;
}

}  // namespace

BenchPlan gemm_plan(CalibrationMode mode, const GpuTraits& gpu) {
  const std::string main = gpu.compute_capability >= 80 ? "bf16" : "fp16";
  BenchPlan plan = mode == CalibrationMode::full ? full_plan(main) : quick_plan(main);
  for (const DtypeRow& row : dtypes) {
    if (row.name == main || gpu.compute_capability < row.first_capability) continue;
    const BenchPlan side = side_plan(mode, row.name);
    plan.insert(plan.end(), side.begin(), side.end());
  }
  return plan;
}

}  // namespace shardwise
