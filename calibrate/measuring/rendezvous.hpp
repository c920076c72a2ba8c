// Several processes, one per GPU, on one or many nodes: how they find each other, and how they
// agree on what each of them measured. A star of TCP connections around rank 0, as torchrun's
// environment describes it; no MPI, and nothing of NCCL.
//
// Every process calls the same functions in the same order: that is what keeps them together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "catalog/units.hpp"

namespace shardwise {

struct RankPlace {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  std::string address;
  int port = 0;
};

// From RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE (torchrun), or what mpirun or srun set;
// MASTER_ADDR, and SHARDWISE_PORT or the port after MASTER_PORT, which torchrun listens on itself.
// Nothing where there is one process. Problems: of the request.
using Environment = std::function<std::optional<std::string>(std::string_view)>;
Result<std::optional<RankPlace>> rank_place(const Environment& environment);

struct RendezvousBroken {  // thrown: another process is gone, and nothing can be agreed any more
  std::string why;
};

class Rendezvous {
 public:
  // Rank 0 waits for all others, they for it: no longer than `patience`.
  Rendezvous(const RankPlace& place, Seconds patience);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  std::string from_first(const std::string& mine);                // rank 0's, on every rank
  std::vector<double> greatest(const std::vector<double>& mine);  // of each element, over all ranks
  void barrier() { greatest({}); }

 private:
  void gather(int listener, Seconds patience);
  RankPlace place_;
  std::vector<int> peers_;  // rank 0: the others, by rank; another rank: rank 0 alone
};

}  // namespace shardwise
