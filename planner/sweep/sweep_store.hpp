// The results of a sweep in one SQLite file, as they come (docs/sweep.md has the tables).
//
// One process writes: a lock file beside it, which the system drops with the process, keeps others
// from it; anybody may read meanwhile. Every result is a transaction of its own in the write-ahead
// log, so whatever a killed process had added is there. `synchronous` is NORMAL: a transaction then
// needs no wait for the disk, only a checkpoint does, and checkpoint() makes one; a machine that
// loses power loses at most what was added since, and never the file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/result.hpp"
#include "catalog/units.hpp"
#include "planner/sweep/sole_writer.hpp"
#include "planner/sweep/sweep_row.hpp"

struct sqlite3;

namespace shardwise {

// What the file is about. Two sweeps may share a file where these are equal.
struct SweepHeader {
  std::string name;   // the study's own
  std::string study;  // fingerprint of its points
  std::string facts;  // fingerprint of the data it is answered from
  std::string text;   // the study file itself
  std::int64_t points = 0;
};

// Who worked a point out: what differs from run to run and is never exported.
struct PointWork {
  int rank = 0;
  std::string host;
  Seconds took;
};

class SweepStore {
 public:
  // A new file; a problem where there is one with anything in it.
  static Result<SweepStore> create(const std::string& path, const SweepHeader& header);
  // To go on: a file of the same study and facts, or none yet.
  static Result<SweepStore> resume(const std::string& path, const SweepHeader& header);
  static Result<SweepStore> read(const std::string& path);

  const SweepHeader& header() const { return header_; }
  Problems add(const SweepRow& row, const PointWork& work);  // REQUIRES create or resume
  Problems checkpoint();
  // By point: whether it has a row that stays. One that failed by a bug of ours is tried again.
  Result<std::vector<bool>> finished() const;
  // Every row, in the order of the points; `rows` holds them all at once.
  Problems for_each(const std::function<void(const SweepRow&)>& look) const;
  Result<std::vector<SweepRow>> rows() const;
  Result<SweepRow> row(std::int64_t point) const;

 private:
  struct CloseDatabase {
    void operator()(sqlite3* database) const;
  };

  SweepStore(std::string path, std::optional<SoleWriter> writer);
  static Result<SweepStore> to_write(const std::string& path, const SweepHeader& header);
  Problems open(int flags);
  bool is_empty() const;
  Problems begin(const SweepHeader& header);
  Problems read_header();
  Problems select(const std::string& which, const std::function<void(const SweepRow&)>& look) const;
  Problems check_same(const SweepHeader& header) const;

  std::string path_;
  SweepHeader header_;
  std::optional<SoleWriter> writer_;  // absent: only reads
  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

}  // namespace shardwise
