// PerDefinition: what follows from a layer's definition alone. Equal layers share one and stand in
// a row, so it is worked out once a row.
#pragma once

#include "simulator/model_partition.hpp"

namespace shardwise {

template <class Value>
class PerDefinition {
 public:
  // `make(definition)`, unless the layer before had the same definition. Holds until the next call.
  template <class Make>
  const Value& of(const LayerDefinition& definition, const Make& make) {
    if (&definition != last_) value_ = make(definition);
    last_ = &definition;
    return value_;
  }

 private:
  const LayerDefinition* last_ = nullptr;
  Value value_{};
};

}  // namespace shardwise
