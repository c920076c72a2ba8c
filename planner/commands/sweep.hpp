// `shardwise sweep STUDY`: every point of a study, kept in one SQLite file as it comes; on the
// cores at hand, or, where mpirun or srun started it, over the ranks of the job as the program
// shardwise-sweep-mpi. `shardwise sweep report FILE`: what came of it. docs/sweep.md.
#pragma once

#include <string>

#include "planner/report/output.hpp"
#include "planner/sweep/sweep_desk.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct SweepOptions {
  SweepTask task;
  std::string file;  // of `sweep report`; empty: it is not asked for
  std::string by = "tokens";
  int top = 10;
  bool json = false, csv = false;
  std::string report;  // an HTML page to write; empty: none
};

CLI::App* add_sweep(CLI::App& program, SweepOptions& options);   // `sweep`, with its `report`
void add_sweep_flags(CLI::App& command, SweepOptions& options);  // of a sweep that is run

// Whatever `sweep` was asked for; the exit code.
int sweep(const SweepOptions& options, const Output& output);

// Fills in what was left open. Problems where no study is named or --by is unknown.
Problems complete(SweepOptions& options);

// What the file holds. 70 where a point failed by a bug of ours.
int show_sweep(const SweepOptions& options, const std::string& file, const Output& output);

}  // namespace shardwise
