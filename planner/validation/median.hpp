// The median that every table of the validation means: the middle value in order, or the mean of
// the two middle ones (calibrate/median.hpp has one for measurements, which planner/ cannot see).
#pragma once

#include <vector>

namespace shardwise {

// Of values in any order; 0 where there are none.
double median_of(std::vector<double> values);

}  // namespace shardwise
