#include "planner/forecast/cost.hpp"

namespace shardwise {

std::optional<Rental> cheapest_rental(const Prices& prices, const Cluster& cluster) {
  if (cluster.groups.size() != 1) return std::nullopt;
  const NodeGroup& group = cluster.groups.front();
  std::optional<Rental> best;
  for (const CloudPrice& price : prices.cloud) {
    if (price.gpu != group.gpu.id || !price.per_hour || price.gpus < group.gpus_per_node) continue;
    const int machines = (cluster.gpus() + price.gpus - 1) / price.gpus;
    if (machines > 1 && price.single) continue;
    const UsDollars per_hour{machines * price.per_hour->value};
    if (!best || per_hour < best->per_hour) best = Rental{&price, machines, per_hour};
  }
  return best;
}

KilowattHours gpu_energy(const Cluster& cluster, Seconds time) {
  double watts = 0;
  for (const NodeGroup& g : cluster.groups) watts += g.gpus() * g.gpu.allowed_w();
  return {watts * time.value / 3.6e6};
}

UsDollars for_hours(UsDollars per_hour, Seconds time) {
  return {per_hour.value * time.value / 3600};
}

}  // namespace shardwise
