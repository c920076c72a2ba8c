#include "catalog/profile.hpp"

#include <algorithm>

#include "catalog/cluster.hpp"
#include "catalog/device_profile.hpp"
#include "catalog/require.hpp"

namespace shardwise {

const FamilyCalibration& Profile::row(std::string_view family) const {
  require(!families.empty(), "a profile has a row for unknown families");
  for (const FamilyCalibration& f : families)
    if (f.family == family) return f;
  return families.front();
}

const DeviceCalibration* Profile::device(const Gpu& gpu) const {
  for (const DeviceCalibration& d : devices)
    if (d.device->serves(gpu)) return &d;
  return nullptr;
}

const FamilyCalibration& Profile::row(const Gpu& gpu) const {
  const DeviceCalibration* own = device(gpu);
  return own ? own->family : row(gpu.family);
}

const LinkCalibration& Profile::links_for(const Cluster& cluster) const {
  const DeviceCalibration* own = nullptr;
  for (const NodeGroup& g : cluster.groups) {
    const DeviceCalibration* found = device(g.gpu);
    if (!found || (own && own != found)) return links;
    own = found;
  }
  return own && own->links ? *own->links : links;
}

const MeasuredMatmul* Profile::matmul(std::string_view gpu) const {
  for (const MeasuredMatmul& m : matmuls)
    if (m.gpu == gpu) return &m;
  return nullptr;
}

}  // namespace shardwise
