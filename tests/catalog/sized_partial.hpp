// What records of published runs tell of a model.
#pragma once

#include <string>

#include "catalog/partial_model.hpp"

namespace shardwise {

inline PartialModel sized_partial(const std::string& name, int layers, int hidden) {
  PartialModel p;
  p.name = name;
  p.layers = layers;
  p.hidden = hidden;
  return p;
}

}  // namespace shardwise
