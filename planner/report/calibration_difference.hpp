// How two device profiles differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/device_profile.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

struct ConstantDifference {
  std::string key;
  std::optional<MeasuredConstant> a, b;
  bool apart = false;  // the intervals do not meet
};
struct CurveDifference {
  std::string name;
  Bytes bytes;
  Seconds a, b;
  bool apart = false;
};
struct ProfileDifference {
  std::vector<ConstantDifference> constants;  // of either, in order of key
  std::vector<CurveDifference> curves;        // at four sizes of each curve that both have
};

ProfileDifference difference(const DeviceProfile& a, const DeviceProfile& b);
std::string difference_text(const DeviceProfile& a, const DeviceProfile& b);
Json difference_json(const DeviceProfile& a, const DeviceProfile& b);

// Every constant of a profile with its interval.
std::string constants_text(const DeviceProfile& profile);

}  // namespace shardwise
