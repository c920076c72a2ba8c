// Interleaved 1F1B: 1F1B on v chunks per stage, which divides the bubble by v.
//
// Forwards go in rounds of G microbatches: G through chunk 0, the same G through chunk 1, ... then
// the next round; backwards likewise from the last chunk to the first. With the v m passes of each
// direction numbered so,
//
//   stage r:  min(v m, (v - 1) G + 2 (p - 1 - r)) forwards,  then {F, B},  then the backwards left
//
// G is p in Megatron-LM (get_schedule_table in megatron/core/pipeline_parallel/schedules.py), which
// asks for m to be a multiple of p. PyTorch's ScheduleInterleaved1F1B takes G = m / max(1, m / p)
// with whole-number divisions, which is p there, and works for any m that G divides. With equal
// chunks the bubble is (p - 1)(f + b) / v, f and b the times of a whole stage, when G = p.
// Narayanan et al., arXiv 2104.04473, section 2.2.2.
#include "simulator/schedules/schedules.hpp"

namespace shardwise::schedules {
namespace {

int rounds(PipelineShape shape) { return std::max(1, shape.microbatches / shape.stages); }

}  // namespace

std::optional<std::string> interleaved_refuses(PipelineShape shape) {
  if (shape.microbatches % rounds(shape) == 0) return std::nullopt;
  return "does not cut " + std::to_string(shape.microbatches) + " microbatches (ga) into " +
         std::to_string(rounds(shape)) + " equal rounds; a multiple of the " +
         std::to_string(shape.stages) + " stages does";
}

std::vector<Slot> interleaved_order(PipelineShape shape, int stage) {
  const int chunks = shape.chunks_per_stage;
  const int round_size = shape.microbatches / rounds(shape);
  const int passes = shape.microbatches * chunks;
  const int warm_up = std::min(passes, (chunks - 1) * round_size + 2 * (shape.stages - 1 - stage));
  const auto microbatch = [&](int pass) {
    return pass / (round_size * chunks) * round_size + pass % round_size;
  };
  const auto chunk = [&](int pass) { return pass / round_size % chunks; };

  std::vector<Slot> slots;
  slots.reserve(2 * static_cast<std::size_t>(passes));
  for (int i = 0; i < passes + warm_up; ++i) {
    if (i < passes) slots.push_back(forward(microbatch(i), chunk(i)));
    const int back = i - warm_up;
    if (back >= 0) slots.push_back(backward(microbatch(back), chunks - 1 - chunk(back)));
  }
  return slots;
}

}  // namespace shardwise::schedules
