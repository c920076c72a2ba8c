// How many processes an MPI job has by the word of whoever started this one, before MPI is asked:
// Open MPI's mpirun, those that speak PMI, and srun. One where nobody says.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace shardwise {

inline int ranks_announced() {
  int most = 1;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* text = std::getenv(name)) most = std::max(most, std::atoi(text));
  return most;
}

}  // namespace shardwise
