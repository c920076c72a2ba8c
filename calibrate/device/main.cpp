// shardwise-calibrate: see calibrate/measuring/calibration.hpp.
#include <atomic>
#include <csignal>
#include <iostream>

#include "calibrate/device/cublas_library.hpp"
#include "calibrate/device/gpu_benches.hpp"
#include "calibrate/device/local_machine.hpp"
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

CalibrationMachine calibration_of(LocalMachine& local, CalibrationMode mode) {
  CalibrationMachine machine;
  machine.facts = local.facts;
  machine.facts.facts["mode"] = mode == CalibrationMode::full ? "full" : "quick";
  for (const auto& gpu : local.gpus)
    machine.subjects.push_back({gpu->index(), "GPU " + std::to_string(gpu->index()),
                                bench_device(*gpu), gpu_plan(mode, traits_of(*gpu)),
                                gpu_budget(mode)});
  return machine;
}

int calibrate(const CalibrationOptions& options, CalibrationMachine machine) {
  if (const auto problems = restrict_subjects(options, machine); !problems.empty())
    return tell(problems);
  std::signal(SIGINT, stop_at_next_point);
  std::signal(SIGTERM, stop_at_next_point);
  return run_calibration(
      options, machine, [] { return stop_asked.load(); }, std::cerr);
}

int run(const CalibrationOptions& options) {
  if (options.help) {
    std::cout << calibration_usage();
    return 0;
  }
  if (options.check_libraries) return check_libraries();
  if (options.simulated) return calibrate(options, simulated_machine(options.mode));
  const auto local = find_local_machine();
  if (!local) return tell(local.error());
  if (options.list) {
    list_machine((*local)->facts);
    return 0;
  }
  return calibrate(options, calibration_of(**local, options.mode));
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
  } catch (const BrokenInvariant& bug) {
    std::cerr << "shardwise-calibrate: a bug of ours: " << bug.what() << '\n';
    return exit_our_bug;
  }
}
