#include "planner/commands/serve.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>

namespace shardwise {

void add_serve_flags(CLI::App& command, ServeOptions& options) {
  command.add_option("--port", options.port, "port to listen on; 0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      .add_option("--host", options.host,
                  "address to listen on; anything but the default lets other machines ask")
      ->capture_default_str();
  command.add_option("--seconds", options.seconds, "time limit of one answer")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
}

int serve(const ServeOptions& options, const Output& output) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / "shardwise-serve").string();
  const std::string port = std::to_string(options.port), seconds = std::to_string(options.seconds);
  const std::array<const char*, 8> words{
      program.c_str(),      "--port",    port.c_str(),    "--host",
      options.host.c_str(), "--seconds", seconds.c_str(), nullptr};
  output.out.flush();
  execv(program.c_str(), const_cast<char* const*>(words.data()));
  return report_problems(
      {{ProblemKind::file, program,
        "cannot be run; it is built where cpp-httplib is found (Debian: libcpp-httplib-dev)"}},
      output);
}

}  // namespace shardwise
