// From measurements to a device profile: the fits of calibrate/ with the predictor's own models.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalog/device_profile.hpp"
#include "catalog/reading.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

struct Measurement;

// What the person says about the measurements beyond what they tell themselves.
struct ProfileRequest {
  std::string name;  // of the profile
  std::string gpu;   // as people type it; empty: the device that the measurements name
  std::string only;  // measurements with this text in a label alone; empty: all
  std::optional<PeerAccess> peer_over_pcie;  // of the machine; absent: the GPU's usual one
  bool published = false;                    // by somebody else; else measured here
  std::string source, date;
};

struct ProfileFit {
  DeviceProfile profile;
  std::vector<std::string> notes;  // what was fitted, how well, and what was not
};

// Problems{request}: no GPU of the catalog is named, or several are.
Result<ProfileFit> fit_device_profile(const std::vector<Measurement>& measurements,
                                      const std::map<std::string, std::string>& facts,
                                      const ProfileRequest& request, const Catalog& catalog,
                                      const Reading& reading);

// As load_device_profile reads it.
Json device_profile_json(const DeviceProfile& profile);

}  // namespace shardwise
