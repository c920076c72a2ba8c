// DeviceProfile: what was measured on one kind of GPU, laid over the published calibration.
//
// `shardwise calibrate import --out` writes one such file; where catalog/profiles/ has one for a
// GPU, forecasts for that GPU use it and say so. It holds constants of the predictor's own models
// and nothing else, each with its interval:
//
//   {"name": ..., "device": "rtx-4090", "constants": {"memory.streaming_fraction":
//      {"value": 0.9, "low": 0.88, "high": 0.91, "points": 12}, ...}, "fits": [...]}
//
// and the fitted curves of what was measured by size, which no forecast reads: they are there to be
// looked at and compared (`shardwise calibrate diff`).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/gpu.hpp"
#include "catalog/load.hpp"
#include "catalog/profile.hpp"
#include "catalog/result.hpp"

namespace shardwise {

struct MeasuredConstant {
  double value = 0, low = 0, high = 0;  // in the unit of its key; 80 % of the points within
  int points = 0;                       // that it was fitted to
};

// Time over size, as calibrate/size_fit.hpp fits it.
struct FittedRegime {
  Bytes from, to;
  Seconds alpha;
  std::optional<BytesPerSecond> beta;  // nothing: the time does not grow
};
struct FittedCurve {
  std::string name;  // "all_reduce, 8 GPUs"
  std::vector<FittedRegime> regimes;
  double low = 1, high = 1;  // measured / fitted at the 10th and 90th of 100 points
  int points = 0;
};

struct DeviceProfile {
  std::string name;
  std::string gpu;                           // Gpu::id
  std::optional<PeerAccess> peer_over_pcie;  // serves only GPUs with this access; absent: all
  Trust trust = Trust::measured;
  Provenance provenance;
  std::map<std::string, std::string> facts;  // driver, cuda, clocks, version, as they were told
  int samples = 0, discarded = 0;
  std::map<std::string, MeasuredConstant> constants;  // by DeviceConstant::key
  std::vector<GemmTile> tiles;                        // empty: the family's
  std::vector<FittedCurve> fits;

  bool serves(const Gpu& asked) const;
  bool sets(std::string_view group) const;  // has a constant "group.*"
};

// What constants are laid over: a row of families, the link calibration and its row for the GPU's
// generation. A fit has only one of them.
struct DeviceConstants {
  FamilyCalibration* family = nullptr;
  LinkCalibration* links = nullptr;
  GpuGeneration* generation = nullptr;
};

// One constant that a profile may set: a row in device_profile.cpp, of a number or of bytes.
struct DeviceConstant {
  std::string_view key;
  double low, high;                                  // bounds of its value
  double scale;                                      // value here = value in the file x scale
  double& (*number)(const DeviceConstants& target);  // nullptr where it is bytes
  Bytes& (*bytes)(const DeviceConstants& target);
};
std::span<const DeviceConstant> device_constants();
const DeviceConstant* device_constant(std::string_view key);  // nullptr where there is none

double constant_value(const DeviceConstant& constant, const DeviceConstants& target);
void set_constant(const DeviceConstant& constant, const DeviceConstants& target, double value);

Result<DeviceProfile> load_device_profile(const std::filesystem::path& file);

// A GPU that was measured is a family of its own: the calibration gets a row with the GPU's id for
// a name, and the GPU that family. What else was known of its own efficiency gives way.
// REQUIRES that the profile is of that GPU.
void lay_over(Profile& calibration, Gpu& gpu, const DeviceProfile& device);

// The link constants of the profile, for questions whose GPUs are all of its kind.
void lay_links_over(LinkCalibration& links, const Gpu& gpu, const DeviceProfile& device);

// A calibration and the device profiles that go with it, the first that serves a GPU first.
struct Calibration {
  Profile profile;
  std::vector<DeviceProfile> devices;
};

// Nothing asked: profiles/published.json and every device profile beside it; what was measured goes
// before what was published, then the later date. Asked: a file, or the name of one in profiles/. A
// device's goes before the others; a whole one stands alone.
Result<Calibration> load_calibration(const Catalog& catalog,
                                     const std::optional<std::string>& asked);

// Its two halves: the files, for which no catalog need be loaded, and profiles of devices that are
// not in the catalog.
Result<Calibration> read_calibration(const std::filesystem::path& root,
                                     const std::optional<std::string>& asked);
Problems unknown_devices(const Calibration& calibration, const Catalog& catalog);

// Lays over the catalog's GPUs, in place, the profiles that serve them.
void lay_over_all(Calibration& calibration, std::vector<Gpu>& gpus);

// The file that a name or path means: Problem{request} with suggestions where there is none.
Result<std::filesystem::path> find_profile(const std::filesystem::path& root,
                                           const std::string& asked);

// The device profile that a name or path means; else one problem at `where`, with the names that
// there are.
Result<DeviceProfile> find_device_profile(const std::filesystem::path& root,
                                          const std::string& asked, const std::string& where);

}  // namespace shardwise
