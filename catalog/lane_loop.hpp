// Loops of kernels that compute for longer than they move what they read and write. A kernel says
// how many programs and steps it takes (LaneSteps), the profile how many cycles of a lane each
// costs (profiles/published.json, "lane_loops", with the source of each).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace shardwise {

enum class LaneLoop : std::uint8_t {
  none,
  // What makes 16 bits of a 4-bit weight; a step is a weight.
  four_bit_lookup,        // a kernel of bitsandbytes since 0.48: values from a table
  four_bit_branches,      // its kernel before: a branch for each bit of NF4
  four_bit_fp4_branches,  // the same for FP4, whose sign needs none
  // torchao's casts to NVFP4; a step is an element.
  nvfp4_search,
  nvfp4_nearest,
  nvfp4_stochastic,
  nvfp4_weight,
  nvfp4_experts_search,
  nvfp4_experts_nearest,
  nvfp4_experts_stochastic,
  nvfp4_experts_weight,
  // Transformer Engine's maps of rows (expert_maps.cpp).
  row_sort,   // a step is a number in a stage of the sort
  chunk_sum,  // a program is a row, a step a chunk that it adds up
};
inline constexpr std::size_t lane_loop_count = 14;

// By LaneLoop, but for `none`.
inline constexpr std::array<std::string_view, lane_loop_count - 1> lane_loop_names{
    "four_bit_lookup",
    "four_bit_branches",
    "four_bit_fp4_branches",
    "nvfp4_search",
    "nvfp4_nearest",
    "nvfp4_stochastic",
    "nvfp4_weight",
    "nvfp4_experts_search",
    "nvfp4_experts_nearest",
    "nvfp4_experts_stochastic",
    "nvfp4_experts_weight",
    "row_sort",
    "chunk_sum"};

// As rows of frameworks and readings spell it.
inline constexpr std::array<std::pair<std::string_view, LaneLoop>, 4> four_bit_unpacking_names{
    {{"lookup", LaneLoop::four_bit_lookup},
     {"branches", LaneLoop::four_bit_branches},
     {"fp4-branches", LaneLoop::four_bit_fp4_branches},
     {"traffic", LaneLoop::none}}};

// What the lanes of one kernel compute.
struct LaneSteps {
  LaneLoop loop = LaneLoop::none;
  std::int64_t steps = 0;
  std::int64_t programs = 0;
};

// Cycles of one lane.
struct LaneCycles {
  double per_step = 0, per_program = 0;
};

struct LaneLoops {
  std::array<LaneCycles, lane_loop_count> loops{};  // by LaneLoop; nothing for `none`

  double cycles(const LaneSteps& w) const {
    const LaneCycles& c = loops[static_cast<std::size_t>(w.loop)];
    return c.per_step * static_cast<double>(w.steps) +
           c.per_program * static_cast<double>(w.programs);
  }
};

}  // namespace shardwise
