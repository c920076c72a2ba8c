// The measurement file: JSON lines, the first of which tells of the machine, each further one of
// one point. It is written whole under another name and renamed after every point, so that it is
// whole at any moment, whatever becomes of the process.
//
//   {"shardwise_measurements":1,"facts":{"mode":"quick","driver":"580.65",...},"gpus":[{...}],...}
//   {"gpu":0,"bench":"gemm","labels":{...},"sizes":{...},"quantity":"time_s","value":1.2e-3,...}
//   {"gpu":0,"bench":"copy",...,"outcome":"out_of_memory","why":"..."}
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measurement.hpp"
#include "calibrate/measuring/measure.hpp"
#include "catalog/result.hpp"

namespace shardwise {

using Facts = std::map<std::string, std::string>;

// The machine as it was found. Keys of numbers end in their unit ("power_limit_w").
struct MachineFacts {
  Facts facts;              // version, mode, date, driver, cuda, cpu, ...
  std::vector<Facts> gpus;  // in the order of the CUDA runtime: name, uuid, clocks, PCIe, NUMA, ...
  std::vector<Facts> links;  // between two GPUs: a, b, kind (NVLink, PIX, PHB, SYS), peer access
};

struct Entry {
  std::optional<int> gpu;  // nothing: the machine as a whole (collectives, all GPUs at once)
  BenchPoint point;        // without `shrinks` and `weight`, which are not written
  Finding finding;
};

struct MeasurementFile {
  MachineFacts machine;
  std::vector<Entry> entries;
};

std::string header_line(const MachineFacts& machine);
std::string entry_line(const Entry& entry);

// A last line without its end, as a copy that was cut off has it, is left out; any other flaw is a
// problem with the number of its line.
Result<MeasurementFile> read_measurement_file(const std::filesystem::path& path);
Result<MeasurementFile> parse_measurement_file(const std::string& text, const std::string& name);
Problems write_measurement_file(const std::filesystem::path& path, const MeasurementFile& file);

// The measured points, for fits: `labels` has the GPU's name under "device", `source` names the
// program, the date and the file.
std::vector<Measurement> measurements(const MeasurementFile& file, const std::string& name);

std::string_view outcome_name(Outcome outcome);

}  // namespace shardwise
