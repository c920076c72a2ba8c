#include "calibrate/measuring/ranked_calibration.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A copy of rank 0's file for a rank that has none of its own, as long as it runs.
class PrivateCopy {
 public:
  PrivateCopy(int rank, const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("shardwise-calibrate." + std::to_string(getpid()) + "." + std::to_string(rank))) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~PrivateCopy() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  PrivateCopy(const PrivateCopy&) = delete;
  PrivateCopy& operator=(const PrivateCopy&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

int calibrate_ranks(const CalibrationOptions& options, const RankPlace& place, Rendezvous& others,
                    CalibrationMachine machine, const std::function<bool()>& interrupted,
                    std::ostream& messages) {
  machine.facts.facts["ranks"] = std::to_string(place.world);
  const std::string header = others.from_first(header_line(machine.facts) + "\n");
  const std::string begun = others.from_first(options.resume ? content(options.output) : "");
  const auto any_interrupted = [&] { return others.greatest({interrupted() ? 1.0 : 0.0})[0] > 0; };
  if (place.rank == 0) return run_calibration(options, machine, any_interrupted, messages);

  const auto facts = parse_measurement_file(header, "rank 0");
  require(static_cast<bool>(facts), "rank 0 sends facts that can be read");
  machine.facts = facts->machine;
  const PrivateCopy copy(place.rank, begun.empty() ? header : begun);
  CalibrationOptions mine = options;
  mine.output = copy.path();
  mine.resume = true;
  std::ostringstream unheard;
  return run_calibration(mine, machine, any_interrupted, unheard);
}

}  // namespace shardwise
