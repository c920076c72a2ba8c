// Members that several kinds of data files share: how their names and numbers are read.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "catalog/gpu.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/provenance.hpp"
#include "catalog/units.hpp"

namespace shardwise {

inline constexpr std::array<std::pair<std::string_view, Trust>, 4> trust_names{{
    {"measured", Trust::measured},
    {"published", Trust::published},
    {"datasheet", Trust::datasheet},
    {"assumed", Trust::assumed},
}};
inline constexpr std::array<std::pair<std::string_view, Market>, 3> market_names{{
    {"consumer", Market::consumer},
    {"workstation", Market::workstation},
    {"datacenter", Market::datacenter},
}};

inline constexpr double max_us = 1e6;
inline Seconds microseconds(JsonReader& r, std::string_view key) {
  return Seconds(r.number(key, 0, max_us) * 1e-6);
}
inline double fraction(JsonReader& r, std::string_view key) { return r.number(key, 0, 1); }

}  // namespace shardwise
