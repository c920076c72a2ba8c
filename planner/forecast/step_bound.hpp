// What a step waits for: arithmetic, memory bandwidth, links, the pipeline's bubble or the host.
//
//   compute   matrix products and attention that their rate limits
//   hbm       kernels limited by the bytes they move: norms, residuals, losses, optimizer steps,
//             and products so thin that reading their operands takes longer than multiplying them
//   link      communication that no kernel hides
//   bubble    waiting for another pipeline stage
//   host      the CPU issues kernels too slowly, loads data, or steps an offloaded optimizer
//
// The five add up to the step of the slowest GPU, as its breakdown does. How a pass divides between
// compute and hbm is read off its kernels (kernel_account.hpp).
#pragma once

#include <array>
#include <string_view>

#include "planner/forecast/forecast.hpp"

namespace shardwise {

enum class BoundKind { compute, hbm, link, bubble, host };
inline constexpr std::array<std::string_view, 5> bound_names{"compute", "hbm", "link", "bubble",
                                                             "host"};
constexpr std::string_view name(BoundKind b) { return bound_names[static_cast<std::size_t>(b)]; }

struct StepBound {
  std::array<Seconds, bound_names.size()> parts{};
  BoundKind kind = BoundKind::compute;  // the largest part

  Seconds part(BoundKind b) const { return parts[static_cast<std::size_t>(b)]; }
};

// REQUIRES a forecast of this question, with its time.
StepBound step_bound(const Question& question, const Forecast& forecast, const Profile& profile);

}  // namespace shardwise
