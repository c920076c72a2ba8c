// Operations: what running a job for weeks meets with beside its steps: failures, restarts,
// storage, electricity. One file, catalog/operations.json, read by the questions that need it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "catalog/prices.hpp"
#include "catalog/provenance.hpp"
#include "catalog/result.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// A published job or cluster: how often something stopped it.
struct FailureRecord {
  std::string architecture;  // of its GPUs, as a GPU's row spells it
  int gpus = 0;
  double days = 0;
  int interruptions = 0;
  Provenance provenance;

  // Of one GPU with its share of host and network: gpus x days / interruptions.
  Seconds mean_time_between_failures() const {
    return Seconds(gpus * days * 86400.0 / interruptions);
  }
};

struct Operations {
  std::vector<FailureRecord> failures;  // at least one
  Seconds restart;                      // from a failure to the next useful step
  BytesPerSecond storage_per_gpu;       // shared storage that takes checkpoints, per GPU
  UsDollars per_kwh;
  Provenance provenance;
};

Result<Operations> load_operations(const std::filesystem::path& root);

}  // namespace shardwise
