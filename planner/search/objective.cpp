#include "planner/search/objective.hpp"

#include <algorithm>
#include <array>

#include "planner/forecast/cost.hpp"

namespace shardwise {
namespace {

double by_time(const SiteRates&, Seconds step, Bytes) { return step.value; }

double by_dollars(const SiteRates& r, Seconds step, Bytes) {
  return r.per_hour ? for_hours(*r.per_hour, step).value : 0;
}

double by_energy(const SiteRates& r, Seconds step, Bytes) {
  return r.kilowatts * step.value / 3600;
}

double by_headroom(const SiteRates&, Seconds, Bytes shortfall) {
  return static_cast<double>(shortfall.value) / static_cast<double>(std::int64_t{1} << 30);
}

double by_gpus(const SiteRates& r, Seconds, Bytes) { return r.gpus; }

double by_goodput(const SiteRates& r, Seconds step, Bytes) {
  return r.wall_per_useful * step.value;
}

constexpr std::array<Objective, 6> objective_rows{{
    {"time", "s", "least time for a step", false, false, by_time},
    {"dollars", "USD", "least rent for a step", false, true, by_dollars},
    {"energy", "kWh", "least energy for a step, of the GPUs alone, at their power limit", false,
     false, by_energy},
    {"headroom", "GiB", "most free memory on the fullest GPU (shown as the shortfall)", true, false,
     by_headroom},
    {"gpus", "GPUs", "fewest GPUs, then least time", false, false, by_gpus},
    {"goodput", "s", "least wall time for a step with its share of failures and checkpoints", false,
     false, by_goodput},
}};

}  // namespace

std::span<const Objective> objectives() { return objective_rows; }

const Objective* objective_named(std::string_view name) {
  const auto* row = std::find_if(objective_rows.begin(), objective_rows.end(),
                                 [&](const Objective& o) { return o.name == name; });
  return row == objective_rows.end() ? nullptr : row;
}

}  // namespace shardwise
