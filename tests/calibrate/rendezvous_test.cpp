#include "calibrate/measuring/ranked_calibration.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <sstream>

#include "calibrate/measuring/simulated_device.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

Environment of(const std::map<std::string, std::string>& variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

// A port of the loopback that nobody listens on.
int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  REQUIRE(getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(probe);
  return ntohs(address.sin_port);
}

RankPlace place(int rank, int world, int port) {
  return {rank, world, rank, world, "127.0.0.1", port};
}

}  // namespace

TEST_CASE("processes agree on the greatest of each figure, and hear what rank 0 says") {
  const int port = free_port();
  const auto one_rank = [port](int rank) {
    Rendezvous together(place(rank, 4, port), Seconds(20));
    const std::string heard = together.from_first("I am " + std::to_string(rank));
    // Ranks 0 to 3 bring {rank, 10 - rank}: the greatest are 3 and 10.
    const auto most = together.greatest({1.0 * rank, 10.0 - rank});
    together.barrier();
    return heard + ", " + std::to_string(most[0]) + ", " + std::to_string(most[1]);
  };
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(std::async(std::launch::async, one_rank, rank));
  for (auto& rank : ranks) CHECK(rank.get() == "I am 0, 3.000000, 10.000000");
}

TEST_CASE("a process that goes away is told to the others, not waited for") {
  const int port = free_port();
  auto first = std::async(std::launch::async, [port] {
    Rendezvous together(place(0, 2, port), Seconds(20));
    together.barrier();
    try {
      together.barrier();
    } catch (const RendezvousBroken& broken) {
      return broken.why;
    }
    return std::string("not noticed");
  });
  auto second = std::async(std::launch::async, [port] {
    Rendezvous together(place(1, 2, port), Seconds(20));
    together.barrier();
  });
  second.get();
  CHECK(first.get() == "another process of the calibration is gone");
}

TEST_CASE("a process that never comes is named by its absence") {
  const auto why = [](const RankPlace& alone) {
    try {
      Rendezvous together(alone, Seconds(0.05));
    } catch (const RendezvousBroken& broken) {
      return broken.why;
    }
    return std::string();
  };
  CHECK(why(place(0, 3, free_port())) == "1 of 3 processes have come");
  CHECK(why(place(1, 3, free_port())).find("rank 0 does not answer at 127.0.0.1") == 0);
}

TEST_CASE("the place of a process is read from torchrun, Open MPI and Slurm") {
  const auto alone = rank_place(of({}));
  REQUIRE(alone);
  CHECK_FALSE(alone->has_value());
  const auto torchrun = rank_place(of({{"RANK", "9"},
                                       {"WORLD_SIZE", "16"},
                                       {"LOCAL_RANK", "1"},
                                       {"LOCAL_WORLD_SIZE", "8"},
                                       {"MASTER_ADDR", "node0"},
                                       {"MASTER_PORT", "29500"}}));
  REQUIRE(torchrun);
  CHECK((*torchrun)->rank == 9);
  CHECK((*torchrun)->world == 16);
  CHECK((*torchrun)->local_world == 8);
  CHECK((*torchrun)->port == 29501);  // 29500 is torchrun's own
  const auto mpi = rank_place(of({{"OMPI_COMM_WORLD_RANK", "1"},
                                  {"OMPI_COMM_WORLD_SIZE", "2"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                                  {"MASTER_ADDR", "node0"},
                                  {"SHARDWISE_PORT", "4000"}}));
  REQUIRE(mpi);
  CHECK((*mpi)->port == 4000);
  const auto wrong = rank_place(of({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "x"}}));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().size() == 5);
  CHECK(wrong.error()[0].what == "expected a whole number from 0 to 1, found \"2\"");
}

TEST_CASE("ranks take the same decisions, one file comes of it, and it can be resumed") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("shardwise_ranks_" + std::to_string(getpid()));
  fs::create_directories(folder);
  // Two ranks of unequal speed: what is agreed is the slower one's time.
  const auto one_rank = [](int rank, int port, const CalibrationOptions& options, int stop_after) {
    Rendezvous others(place(rank, 2, port), Seconds(20));
    SimulatedGpu gpu;
    gpu.slowed = 0;
    gpu.bandwidth = BytesPerSecond(rank == 0 ? 900e9 : 300e9);
    const BenchDevice alone = simulated_device(gpu);
    BenchDevice agreed = alone;
    agreed.prepare = [&others, alone](const BenchPoint& point) {
      Prepared prepared = alone.prepare(point);
      prepared.run_once = [&others, run = prepared.run_once] {
        Sample sample = run();
        sample.value = others.greatest({sample.value})[0];
        sample.busy = Seconds(sample.value);
        return sample;
      };
      return prepared;
    };
    agreed.now = [&others, alone] {
      return SimTime{std::stoll(others.from_first(std::to_string(alone.now().picoseconds)))};
    };
    CalibrationMachine machine;
    machine.facts.facts = {{"mode", "quick"}, {"rank", std::to_string(rank)}};
    machine.subjects.push_back({std::nullopt, "2 ranks", agreed,
                                machine_plan(CalibrationMode::quick, {1, 2, 2}), Seconds(20)});
    int points = 0;
    std::ostringstream messages;
    return calibrate_ranks(
        options, place(rank, 2, port), others, machine, [&] { return ++points > stop_after; },
        messages);
  };
  const auto both = [&](const CalibrationOptions& options, int stop_after) {
    const int port = free_port();
    auto other = std::async(std::launch::async, one_rank, 1, port, options, 1'000'000);
    const int code = one_rank(0, port, options, stop_after);
    CHECK(other.get() == code);
    std::ifstream in(options.output);
    return std::to_string(code) + std::string(std::istreambuf_iterator<char>(in), {});
  };
  CalibrationOptions options;
  options.output = folder / "whole.jsonl";
  const std::string whole = both(options, 1'000'000);
  options.output = folder / "parts.jsonl";
  CHECK(both(options, 4).substr(0, 3) == "130");
  options.resume = true;
  CHECK(both(options, 1'000'000) == whole);
  const auto file = read_measurement_file(options.output);
  REQUIRE(file);
  CHECK(file->machine.facts.at("rank") == "0");
  REQUIRE_FALSE(file->entries.empty());
  // A GiB, read and written at 300 GB/s: 2 x 2^30 / 3e11 = 7.16 ms, the slower rank's time.
  for (const Entry& entry : file->entries)
    if (entry.point.sizes.count("bytes") && entry.point.sizes.at("bytes") == 1 << 30)
      CHECK(entry.finding.value == Approx(7.16e-3).epsilon(0.1));
  fs::remove_all(folder);
}
