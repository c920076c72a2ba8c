// Cost: what the hours of a cluster come to, rented or in electricity.
#pragma once

#include <optional>
#include <string>

#include "catalog/cluster.hpp"
#include "catalog/prices.hpp"
#include "catalog/units.hpp"

namespace shardwise {

struct KilowattHours {
  double value = 0;
};

// Rented machines that together hold the GPUs.
struct Rental {
  const CloudPrice* price = nullptr;  // lives as long as the catalog
  int machines = 1;
  UsDollars per_hour;  // all of them
};

// The cheapest on demand: machines of this GPU, each with at least as many as a node of the cluster
// uses, and several of them only from who can join them by a network. Nothing where nobody is
// catalogued to rent them out.
std::optional<Rental> cheapest_rental(const Prices& prices, const Cluster& cluster);

// Of the GPUs at their board power limit, nothing else in the box counted.
KilowattHours gpu_energy(const Cluster& cluster, Seconds time);

UsDollars for_hours(UsDollars per_hour, Seconds time);

}  // namespace shardwise
