#include <array>
#include <charconv>

#include "calibrate/measuring/rendezvous.hpp"

namespace shardwise {
namespace {

// Who starts processes, and what it tells them in the environment.
struct StarterRow {
  const char *rank, *world, *local_rank, *local_world;
};
constexpr std::array<StarterRow, 3> starters{{
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},  // torchrun
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},                                             // mpirun (Open MPI)
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}  // srun
}};

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  int whole(const char* name, int low, int high) {
    const auto text = environment_(name);
    if (!text) return problem(name, "is not set");
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size() || value < low || value > high)
      return problem(name, "expected a whole number from " + std::to_string(low) + " to " +
                               std::to_string(high) + ", found \"" + *text + "\"");
    return value;
  }

  std::string text(const char* name) {
    const auto found = environment_(name);
    if (!found || found->empty()) problem(name, "is not set");
    return found.value_or("");
  }

  Problems problems;

 private:
  int problem(const char* name, const std::string& what) {
    problems.push_back({ProblemKind::request, name, what});
    return 0;
  }
  const Environment& environment_;
};

}  // namespace

Result<std::optional<RankPlace>> rank_place(const Environment& environment) {
  for (const StarterRow& row : starters) {
    if (!environment(row.rank) || !environment(row.world)) continue;
    Reader read(environment);
    RankPlace place;
    place.world = read.whole(row.world, 1, 1 << 20);
    if (place.world == 1) return std::optional<RankPlace>();
    place.rank = read.whole(row.rank, 0, place.world - 1);
    place.local_rank = read.whole(row.local_rank, 0, 1023);
    place.local_world = read.whole(row.local_world, 1, 1024);
    place.address = read.text("MASTER_ADDR");
    place.port = environment("SHARDWISE_PORT") ? read.whole("SHARDWISE_PORT", 1, 65535)
                                               : read.whole("MASTER_PORT", 1, 65534) + 1;
    if (!read.problems.empty()) return read.problems;
    return std::optional<RankPlace>(place);
  }
  return std::optional<RankPlace>();
}

}  // namespace shardwise
