// shardwise-calibrate: see calibrate/measuring/calibration.hpp.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "calibrate/device/cublas_library.hpp"
#include "calibrate/device/gpu_benches.hpp"
#include "calibrate/device/local_machine.hpp"
#include "calibrate/device/nccl_library.hpp"
#include "calibrate/device/rank_group.hpp"
#include "calibrate/measuring/ranked_calibration.hpp"
#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr int exit_our_bug = 70;

std::atomic<bool> stop_asked{false};

// The bench in hand is finished and saved; a second Ctrl-C ends the program as it stands, and the
// file is whole then as well.
void stop_at_next_point(int signal) {
  stop_asked = true;
  std::signal(signal, SIG_DFL);
}

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

int tell(const Problems& problems) {
  for (const Problem& problem : problems)
    std::cerr << "shardwise-calibrate: error: " << problem.where << ": " << problem.what << '\n';
  return static_cast<int>(problems.front().kind);
}

// Complete, or what is missing; 4 where a library that is asked for is not complete.
int check_libraries() {
  bool complete = true;
  const auto line = [&](const char* name, bool whole, const std::string& missing) {
    std::cout << name << ": " << (whole ? "complete" : "lacks " + missing) << '\n';
    complete = complete && whole;
  };
  const CublasLt lt;
  line("cuBLASLt", lt.complete(), lt.missing());
  if (lt.complete()) std::cout << "cuBLASLt version: " << lt.version() << '\n';
  const Cublas blas;
  line("cuBLAS", blas.complete(), blas.missing());
#ifdef SHARDWISE_WITH_NCCL
  const Nccl nccl;
  line("NCCL", nccl.complete(), nccl.missing());
#endif
  const bool needed = complete;
  const Nvml nvml;  // comes with a driver: its absence is no flaw of an installation without a GPU
  line("NVML", nvml.usable(), nvml.missing());
  return needed ? 0 : static_cast<int>(ProblemKind::file);
}

void list_machine(const MachineFacts& machine) {
  const auto line = [](const std::string& title, const Facts& facts) {
    std::cout << title << '\n';
    for (const auto& [key, value] : facts) std::cout << "  " << key << ": " << value << '\n';
  };
  line("Machine", machine.facts);
  for (std::size_t i = 0; i < machine.gpus.size(); ++i)
    line("GPU " + std::to_string(i), machine.gpus[i]);
  for (const Facts& link : machine.links) line("Link", link);
}

MachineFacts facts_of(const LocalMachine& local, CalibrationMode mode) {
  MachineFacts facts = local.facts;
  facts.facts["mode"] = mode == CalibrationMode::full ? "full" : "quick";
  return facts;
}

int calibrate(const CalibrationOptions& options, CalibrationMachine machine) {
  if (const auto problems = restrict_subjects(options, machine); !problems.empty())
    return tell(problems);
  return run_calibration(
      options, machine, [] { return stop_asked.load(); }, std::cerr);
}

// One process: each GPU by itself, then all of them together.
int calibrate_here(const CalibrationOptions& options, LocalMachine& local) {
  std::vector<Gpu*> gpus;
  for (const auto& gpu : local.gpus) gpus.push_back(gpu.get());
  RankGroup together(gpus);
  CalibrationMachine machine;
  machine.facts = facts_of(local, options.mode);
  for (Gpu* gpu : gpus)
    machine.subjects.push_back({gpu->index(), "GPU " + std::to_string(gpu->index()),
                                bench_device(*gpu), gpu_plan(options.mode, traits_of(*gpu)),
                                gpu_budget(options.mode)});
  const GroupTraits group{together.ranks(), together.ranks(), 1};
  if (together.ranks() > 1)
    machine.subjects.push_back({std::nullopt, "all GPUs", machine_device(together),
                                machine_plan(options.mode, group), machine_budget(options.mode)});
  return calibrate(options, std::move(machine));
}

int run_ranks(const CalibrationOptions& options, const RankPlace& place) {
  Rendezvous others(place, Seconds(300));
  const auto local = find_local_machine();
  if (!local) return tell(local.error());
  const auto gpus = static_cast<int>((*local)->gpus.size());
  Gpu& gpu = *(*local)->gpus[static_cast<std::size_t>(place.local_rank % gpus)];
  RankGroup group(gpu, place, others);
  const GroupTraits traits{1, place.world,
                           (place.world + place.local_world - 1) / place.local_world};
  CalibrationMachine machine;
  machine.facts = facts_of(**local, options.mode);
  machine.subjects.push_back({std::nullopt, std::to_string(place.world) + " ranks",
                              machine_device(group), machine_plan(options.mode, traits),
                              machine_budget(options.mode)});
  if (const auto problems = restrict_subjects(options, machine); !problems.empty())
    return tell(problems);
  return calibrate_ranks(
      options, place, others, std::move(machine), [] { return stop_asked.load(); }, std::cerr);
}

int run(const CalibrationOptions& options) {
  if (options.help) {
    std::cout << calibration_usage();
    return 0;
  }
  if (options.check_libraries) return check_libraries();
  std::signal(SIGINT, stop_at_next_point);
  std::signal(SIGTERM, stop_at_next_point);
  if (options.simulated) return calibrate(options, simulated_machine(options.mode));
  const auto place = rank_place(environment);
  if (!place) return tell(place.error());
  if (*place && !options.list) return run_ranks(options, **place);
  const auto local = find_local_machine();
  if (!local) return tell(local.error());
  if (options.list) {
    list_machine((*local)->facts);
    return 0;
  }
  return calibrate_here(options, **local);
}

}  // namespace
}  // namespace shardwise

int main(int argc, char** argv) {
  using namespace shardwise;
  try {
    const auto options = read_calibration_options({argv + 1, argv + argc});
    return options ? run(*options) : tell(options.error());
  } catch (const CudaFailure& failure) {
    return tell({{ProblemKind::file, "GPUs", failure.why}});
  } catch (const RendezvousBroken& broken) {
    return tell({{ProblemKind::file, "ranks", broken.why}});
  } catch (const BrokenInvariant& bug) {
    std::cerr << "shardwise-calibrate: a bug of ours: " << bug.what() << '\n';
    return exit_our_bug;
  }
}
