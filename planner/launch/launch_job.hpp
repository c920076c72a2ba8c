// LaunchJob: what is to be launched, as every target writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/question.hpp"

namespace shardwise {

// Stands for the model where nobody has said where its weights are: a config.json holds none.
inline constexpr const char* model_to_set = "REPLACE-WITH-YOUR-MODEL";

struct LaunchJob {
  Question question;
  std::string model;                    // Hugging Face id or path, as weights are loaded by
  std::optional<double> learning_rate;  // as it is to be written
  std::optional<std::int64_t> steps;    // optimizer steps, where the amount of data was stated
};

struct LaunchFile {
  std::string name;  // within the folder
  std::string text;
};

struct LaunchFiles {
  std::vector<LaunchFile> files;  // the last one is run.sh, which holds the command
  std::vector<std::string> command;
  std::vector<std::string> notes;  // what has to be set beside the files, in whole sentences
};

// How the GPUs are spread over processes: one process per GPU.
struct LaunchMachines {
  int nodes = 1;
  int gpus_per_node = 1;
};
LaunchMachines launch_machines(const Cluster& cluster);

// The words before the program: torchrun for one node or for several, where $HEAD_NODE is the name
// of the first.
std::vector<std::string> torchrun_words(const LaunchMachines& machines);

struct Environment {
  std::string name, value;
};

// This and what the framework's row says of PyTorch's allocator.
std::vector<Environment> whole_environment(const LaunchJob& job,
                                           std::vector<Environment> environment);

// Adds run.sh: the whole environment, what has to be known, and the command.
void add_run_script(LaunchFiles& files, const LaunchJob& job,
                    const std::vector<Environment>& environment);

// The first lines of a written file: which plan it says. Reading back finds the method in the first
// (written_words.hpp).
inline constexpr std::string_view heading_start = "Written by shardwise launch: ";
std::vector<std::string> launch_heading(const LaunchJob& job);

}  // namespace shardwise
