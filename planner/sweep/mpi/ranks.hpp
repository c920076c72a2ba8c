// Ranks: a sweep over the processes of an MPI job. Compiled where MPI is found, into
// `shardwise-sweep-mpi` alone.
//
//   rank 0    reads the study, hands out points, writes the one file, and answers points too
//   others    get the study's text, answer points, and send each row as soon as they have it
//
// A rank always has a point to go on with while its last row travels. A rank that dies takes the
// job with it, as MPI has it; what rank 0 had received is in the file, and --resume goes on.
#pragma once

#include "planner/report/output.hpp"
#include "planner/sweep/mpi/channel.hpp"
#include "planner/sweep/sweep_desk.hpp"

namespace shardwise {

// The exit code of this rank. Rank 0 alone speaks.
int sweep_over_ranks(const SweepTask& task, Channel& channel, const Output& output);

}  // namespace shardwise
