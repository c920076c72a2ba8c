// sft.yaml: the arguments of TRL's SFT script, which both Accelerate and DeepSpeed launch, or those
// of its other scripts: dpo.yaml, kto.yaml, reward.yaml. It says what a launcher's own file does
// not: batch, sequence, recomputation, optimizer, adapters.
#pragma once

#include "planner/launch/config_entries.hpp"
#include "planner/launch/launch_job.hpp"
#include "planner/launch/plan_refusal.hpp"

namespace shardwise {

// What the Trainer cannot do, whoever launches it.
Refusals trl_workload_refusals(const Workload& workload);
Refusals trl_plan_refusals(const ParallelPlan& plan);
ConfigEntries trl_entries(const LaunchJob& job);
std::string trl_file(const LaunchJob& job);  // "sft.yaml"
// "trl.scripts.sft --config sft.yaml" of the command
std::vector<std::string> trl_words(const LaunchJob& job);
std::string trl_note(const LaunchJob& job);  // what the person has to fill in

}  // namespace shardwise
