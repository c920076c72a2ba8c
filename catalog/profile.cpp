#include "catalog/profile.hpp"

#include "catalog/require.hpp"

namespace shardwise {

const FamilyCalibration& Profile::row(std::string_view family) const {
  require(!families.empty(), "a profile has a row for unknown families");
  for (const FamilyCalibration& f : families)
    if (f.family == family) return f;
  return families.front();
}

const MeasuredMatmul* Profile::matmul(std::string_view gpu) const {
  for (const MeasuredMatmul& m : matmuls)
    if (m.gpu == gpu) return &m;
  return nullptr;
}

}  // namespace shardwise
