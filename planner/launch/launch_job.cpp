#include "planner/launch/launch_job.hpp"

#include "planner/launch/written_words.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

LaunchMachines launch_machines(const Cluster& cluster) {
  const int nodes = cluster.nodes();
  return {nodes, cluster.gpus() / nodes};
}

std::vector<std::string> torchrun_words(const LaunchMachines& machines) {
  const std::string each = std::to_string(machines.gpus_per_node);
  if (machines.nodes == 1) return {"torchrun", "--standalone", "--nproc_per_node", each};
  return {"torchrun",
          "--nnodes",
          std::to_string(machines.nodes),
          "--nproc_per_node",
          each,
          "--rdzv_id",
          "shardwise",
          "--rdzv_backend",
          "c10d",
          "--rdzv_endpoint",
          "\"$HEAD_NODE:29500\""};
}

namespace {

// PYTORCH_ALLOC_CONF as the framework's row says its launcher sets it; nothing where it sets none.
std::optional<std::string> allocator_settings_of(const Framework& framework) {
  std::string settings;
  if (framework.process.expandable_segments) settings += "expandable_segments:True";
  if (framework.process.roundup_power2_divisions > 1)
    settings += sentence(settings.empty() ? "" : ",",
                         "roundup_power2_divisions:", framework.process.roundup_power2_divisions);
  if (settings.empty()) return std::nullopt;
  return settings;
}

}  // namespace

std::vector<std::string> launch_heading(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const int batch = job.question.plan.global_batch();
  return {sentence(heading_start, job.model, ", ", name(w.method), ", ", w.sequence,
                   " tokens per sequence, ", batch,
                   batch == 1 ? " sequence per step" : " sequences per step"),
          sentence("on ", job.question.cluster.spoken),
          sentence("plan ", whole_text(job.question.plan))};
}

std::vector<Environment> whole_environment(const LaunchJob& job,
                                           std::vector<Environment> environment) {
  if (const auto settings = allocator_settings_of(job.question.workload.framework))
    // Older releases of PyTorch know the second name only.
    for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
      environment.push_back({name, *settings});
  return environment;
}

void add_run_script(LaunchFiles& files, const LaunchJob& job,
                    const std::vector<Environment>& environment) {
  if (job.model == model_to_set)
    files.notes.push_back(sentence("Write the folder or Hugging Face id of the weights for ",
                                   model_to_set, ": beside the config.json there are none."));
  std::string text = "#!/usr/bin/env bash\n";
  for (const std::string& line : launch_heading(job)) text += sentence("# ", line, "\n");
  text += "#\n";
  for (const std::string& note : files.notes) text += sentence("# ", note, "\n");
  text += "set -eu\ncd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\"\n\n";
  if (launch_machines(job.question.cluster).nodes > 1)
    text += ": \"${HEAD_NODE:?set it to the host name of the first node, on every node}\"\n";
  for (const Environment& e : whole_environment(job, environment))
    text += sentence("export ", e.name, "=", e.value, "\n");
  std::string command;
  for (const std::string& word : files.command)
    command += sentence(command.empty() ? "" : " ", word);
  text += sentence(command, "\n");
  files.files.push_back({run_script_name, std::move(text)});
}

}  // namespace shardwise
