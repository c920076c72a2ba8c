// LinkFit: the constants of the predictor's own model of collectives
// (simulator/network/collective_model.hpp) from measured sweeps inside one machine.
//
// The model is the caller's: a LinkTimer says what it gives for a value of some constants. One
// constant after the other is moved by golden section over its logarithm to where the Huber cost of
// ln(model / measured) is least, until none moves by over a thousandth. A constant is kept only
// where it matters: where moving it by a tenth changes some point by over a hundredth.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibrate/sweep.hpp"
#include "catalog/device_profile.hpp"

namespace shardwise {

struct LinkPoint {
  std::string collective;
  Bytes bytes;
  int ranks = 2;
  Seconds time;
};

using ConstantValues = std::map<std::string, double>;  // by DeviceConstant::key
using LinkTimer = std::function<std::vector<Seconds>(const ConstantValues& constants,
                                                     const std::vector<LinkPoint>& points)>;

struct LinkFit {
  std::map<std::string, MeasuredConstant> constants;
  double before = 0, after = 0;  // median of |model / measured - 1|
  std::vector<std::string> notes;
};

// The points of one-node collectives.
std::vector<LinkPoint> link_points(const std::vector<Sweep>& sweeps);

// `start`: the constants that may move, with their values of today.
LinkFit fit_links(const std::vector<LinkPoint>& points, const ConstantValues& start,
                  const LinkTimer& timer);

}  // namespace shardwise
