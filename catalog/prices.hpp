// Prices: what a machine costs by the hour, what a card cost when it came out.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "catalog/provenance.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// US dollars. Not a unit of units.hpp: money only meets hours in planner/forecast/cost.
struct UsDollars {
  double value = 0;
  friend constexpr auto operator<=>(UsDollars, UsDollars) = default;
};

// One rentable machine; taxes and storage excluded.
struct CloudPrice {
  std::string provider;  // "aws"
  std::string instance;  // "p5.48xlarge"
  std::string gpu;       // id in devices/
  int gpus = 1;
  std::optional<UsDollars> per_hour;       // the whole machine, on demand, cheapest region
  std::optional<UsDollars> spot_per_hour;  // the whole machine; one of the two is present
  std::optional<Bytes> host_ram;           // of the whole machine, where the offer says it
  bool single = false;                     // a marketplace's: nothing joins it to another machine
  std::string region;
  std::string spot_region;  // empty: the same region
  std::string note;
  Provenance provenance;
};

struct LaunchPrice {
  std::string gpu;  // id in devices/
  UsDollars msrp;
  std::string launch_date;  // empty where nobody said
  Provenance provenance;
};

struct Prices {
  std::vector<CloudPrice> cloud;    // the newest read
  std::vector<CloudPrice> history;  // older, dated rows
  std::vector<LaunchPrice> launch;
};

}  // namespace shardwise
