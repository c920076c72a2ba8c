// sft.yaml: the arguments of TRL's SFT script, which both Accelerate and DeepSpeed launch. It says
// what a launcher's own file does not: batch, sequence, recomputation, optimizer, adapters.
#pragma once

#include "planner/launch/config_entries.hpp"
#include "planner/launch/launch_job.hpp"
#include "planner/launch/plan_refusal.hpp"

namespace shardwise {

inline constexpr std::string_view trl_script_name = "sft.yaml";

// What the Trainer cannot do, whoever launches it.
Refusals trl_refusals(const LaunchJob& job);
ConfigEntries trl_entries(const LaunchJob& job);
std::vector<std::string> trl_words();  // "-m trl.scripts.sft --config sft.yaml" of the command
std::string trl_note();                // what the person has to fill in

}  // namespace shardwise
