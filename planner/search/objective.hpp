// Objectives: what the best plan is best at. Each is a row: a value that is better when smaller and
// that neither more time nor more memory ever makes smaller, so that bounds of time and memory
// bound it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "catalog/prices.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// What a step on one cluster costs beside its time.
struct SiteRates {
  int gpus = 1;
  std::optional<UsDollars> per_hour;  // of rented machines; absent: nobody rents these out
  double kilowatts = 0;               // of all GPUs at their power limit
  double wall_per_useful = 1;         // failures, checkpoints and restarts included
};

struct Objective {
  std::string_view name, unit, summary;
  bool is_memory;   // and does not ask for the time
  bool needs_rent;  // means nothing where nobody rents the GPUs out
  // `shortfall`: least bytes by which the fullest GPU is above its capacity; negative: free.
  double (*value)(const SiteRates& rates, Seconds step, Bytes shortfall);
};

std::span<const Objective> objectives();
const Objective* objective_named(std::string_view name);  // nullptr: no such objective

}  // namespace shardwise
