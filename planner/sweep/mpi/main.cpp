// shardwise-sweep-mpi: one rank of `shardwise sweep` under mpirun or srun. `shardwise` becomes it
// there and hands its flags on.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "planner/commands/sweep.hpp"
#include "planner/sweep/mpi/ranks.hpp"

namespace shardwise {
namespace {

int run(const SweepOptions& options, Channel& channel) {
  const Output output{std::cout, std::cerr, options.json};
  const int code = sweep_over_ranks(options.task, channel, output);
  if (code != 0 || channel.rank() != 0) return code;
  return show_sweep(options, options.task.out, output);
}

// An exception would leave the other ranks waiting: it ends the job.
int run_as_rank(const SweepOptions& options, int argc, char** argv) {
  Channel channel(argc, argv);
  try {
    const int code = run(options, channel);
    std::cout.flush();
    return code;
  } catch (const std::exception& e) {
    std::cerr << "shardwise: this is our bug, please report it: " << e.what() << std::endl;
    channel.abort(70);
  }
}

}  // namespace
}  // namespace shardwise

int main(int argc, char** argv) {
  CLI::App app("One rank of shardwise sweep.", "shardwise-sweep-mpi");
  shardwise::SweepOptions options;
  shardwise::add_sweep_flags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(shardwise::ProblemKind::request);
  }
  const shardwise::Problems problems = shardwise::complete(options);
  if (!problems.empty())
    return shardwise::report_problems(problems, {std::cout, std::cerr, options.json});
  return shardwise::run_as_rank(options, argc, argv);
}
