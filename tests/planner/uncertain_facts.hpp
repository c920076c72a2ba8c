// The facts of known_facts.hpp with one interval of memory for every kind of question.
#pragma once

#include "tests/planner/known_facts.hpp"

namespace shardwise {

// What is measured lies between `low` and `high` times the forecast.
inline Facts facts_with_memory_interval(double low, double high) {
  Facts facts = known_facts();
  SpreadRow any;
  any.low = low;
  any.high = high;
  facts.profile.spread.memory = {any};
  return facts;
}

}  // namespace shardwise
