// What may be kept in host RAM, as people say it: the value of --offload and of a plan's "offload".
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "simulator/parallel_plan.hpp"

namespace shardwise {

struct OffloadChoice {
  std::string_view name;
  Offload offload;
};

inline constexpr std::array<OffloadChoice, 8> offload_choices{
    {{"none", {}},
     {"optimizer", {true, false, false}},
     {"params", {false, true, false}},
     {"params+optimizer", {true, true, false}},
     {"activations", {false, false, true}},
     {"optimizer+activations", {true, false, true}},
     {"params+activations", {false, true, true}},
     {"all", {true, true, true}}}};

constexpr std::optional<Offload> offload_named(std::string_view name) {
  for (const OffloadChoice& row : offload_choices)
    if (row.name == name) return row.offload;
  return std::nullopt;
}

constexpr std::string_view offload_name(const Offload& offload) {
  for (const OffloadChoice& row : offload_choices)
    if (row.offload == offload) return row.name;
  return "";
}

}  // namespace shardwise
