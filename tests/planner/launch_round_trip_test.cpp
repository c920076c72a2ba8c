// Every launch target, over one list of plans: what it refuses has reasons, and what it writes is
// what the framework's own schema allows and reads back as the same plan.
#include <unistd.h>

#include <filesystem>
#include <map>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/launch/config_reader.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/launch/written_folder.hpp"
#include "simulator/plan_rules.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/launch_schema.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

struct Asked {
  std::string model, gpus;
  Method method;
  std::vector<std::string> plans;
  const PreferenceRow* preference = nullptr;
  bool fused_loss = false, expandable_segments = false;
};

// Data parallelism with everything that can be said about it, then model parallelism.
std::vector<Asked> asked_plans() {
  std::vector<std::string> one, eight, sixteen;
  for (const char* rest : {"mbs=1,ga=4,recompute=none", "mbs=4,ga=1,recompute=full"}) {
    one.push_back(std::string("dp=1,zero=0,") + rest);
    for (const char* zero : {"zero=0", "zero=1", "zero=2", "zero=3", "zero=1,offload=optimizer",
                             "zero=2,offload=optimizer", "zero=3,offload=params+optimizer"})
      eight.push_back(std::string("dp=8,") + zero + "," + rest);
    for (const char* zero :
         {"zero=3,shard=8", "zero=2,shard=8", "zero=3,shard=4", "zero=1,shard=8"})
      sixteen.push_back(std::string("dp=16,") + zero + "," + rest);
  }
  const std::vector<std::string> model_parallel{
      "dp=1,tp=8,sp=true,zero=0,ga=4,recompute=selective-op",
      "dp=2,tp=4,sp=true,zero=3,ga=2,recompute=full",
      "dp=2,tp=4,sp=false,zero=1,mbs=2,ga=2,recompute=selective",
      "dp=2,tp=2,sp=true,cp=2,zero=3,ga=2,recompute=none",
      "dp=4,cp=2,cp-kind=all-gather,zero=2,ga=2,recompute=full",
      "dp=4,cp=2,cp-kind=ulysses,zero=2,ga=2,recompute=full",
      "dp=4,cp=2,zero=3,ga=2,recompute=full",
      "dp=2,pp=4,zero=1,ga=8,recompute=none",
      "dp=2,pp=4,zero=3,ga=8,recompute=full",
      "dp=2,pp=4,schedule=gpipe,zero=2,ga=8,recompute=full",
      "dp=4,pp=2,vpp=2,schedule=interleaved,zero=1,ga=8,recompute=every-2-layers",
      "dp=4,pp=2,vpp=2,schedule=interleaved,zero=2,mbs=2,ga=8,recompute=full",
      "dp=4,pp=2,vpp=4,schedule=interleaved,zero=2,ga=8,recompute=none",
      "dp=4,pp=2,vpp=2,schedule=zb-v,zero=0,ga=8,recompute=none",
      "dp=2,pp=4,layers=7/9/9/7,zero=1,ga=8,recompute=blocks-4",
      "dp=2,pp=4,layers=7/9/9/7,zero=2,ga=8,recompute=none",
      "dp=2,tp=2,sp=true,pp=2,zero=2,ga=4,recompute=selective-op",
      "dp=1,tp=4,sp=true,pp=2,zero=0,ga=4,recompute=none",
      "dp=2,tp=4,sp=true,async-tp=true,zero=1,offload=optimizer,ga=4,recompute=none"};
  const std::vector<std::string> experts{"dp=8,ep=8,etp=1,zero=1,ga=2,recompute=full",
                                         "dp=8,ep=4,etp=1,zero=3,ga=2,recompute=selective-op",
                                         "dp=4,tp=2,sp=true,ep=2,etp=2,zero=1,ga=2,recompute=none",
                                         "dp=2,tp=4,sp=true,ep=8,etp=1,zero=3,ga=2,recompute=full"};
  std::vector<Asked> all{{"llama-3.1-8b", "1xH100-SXM", Method::full, one},
                         {"llama-3.1-8b", "8xH100-SXM", Method::full, eight},
                         {"llama-3.1-8b", "16xH100-SXM", Method::full, sixteen},
                         {"llama-3.1-8b", "8xH100-SXM", Method::pretrain, model_parallel},
                         {"qwen3-30b-a3b", "8xH100-SXM", Method::pretrain, experts}};
  for (const Method m : {Method::lora, Method::dora, Method::qlora})
    all.push_back({"llama-3.1-8b", "8xH100-SXM", m, {eight[0], eight[3], eight[7]}});
  const std::vector<std::string> few{eight[0], eight[2], eight[3], eight[10]};
  for (const PreferenceRow& preference : preference_rows)
    for (const Method m : {Method::full, Method::qlora})
      all.push_back({"llama-3.1-8b", "8xH100-SXM", m, few, &preference});
  for (const Method m : {Method::full, Method::lora})
    all.push_back({"llama-3.1-8b", "8xH100-SXM", m, few, nullptr, true});
  for (const Method m : {Method::pretrain, Method::full})
    all.push_back({"llama-3.1-8b", "8xH100-SXM", m, few, nullptr, false, true});
  return all;
}

Request launch_request(const Asked& asked) {
  Request r = request_for(asked.model, asked.gpus, {asked.method});
  r.sequence = 4096;
  r.preference = asked.preference;
  r.fused_loss = asked.fused_loss;
  r.expandable_segments = asked.expandable_segments;
  if (row(asked.method).adapter) {
    r.lora_rank = 24;
    r.lora_targets = asked.method == Method::dora ? "q,v,down" : "all-linear";
  }
  return r;
}

struct Settled {
  Workload workload;
  ParallelPlan plan;
};

std::optional<Settled> settled(const ResolvedRequest& r, const std::string& text) {
  const Cluster& cluster = r.clusters.front();
  const Workload first = choose_workload(r, r.methods.front(), cluster, 0).workload;
  const auto plan = complete_plan(r, first, cluster, text);
  if (!plan) return std::nullopt;
  Workload w = choose_workload(r, r.methods.front(), cluster, plan->zero_stage).workload;
  if (!plan_problems(w, *plan, cluster).empty()) return std::nullopt;
  return Settled{std::move(w), *plan};
}

const std::map<std::string, std::string>& schema_of_file() {
  static const std::map<std::string, std::string> schemas{{"ds_config.json", "deepspeed"},
                                                          {"accelerate.yaml", "accelerate"},
                                                          {"sft.yaml", "trl"},
                                                          {"dpo.yaml", "trl_dpo"},
                                                          {"kto.yaml", "trl_kto"},
                                                          {"reward.yaml", "trl_reward"},
                                                          {"axolotl.yaml", "axolotl"},
                                                          {"torchtitan.toml", "torchtitan"},
                                                          {"megatron.args", "megatron"},
                                                          {"fsdp2.json", "fully_shard"}};
  return schemas;
}

void check_schemas(const LaunchFiles& files) {
  for (const LaunchFile& file : files.files) {
    const auto known = schema_of_file().find(file.name);
    if (known == schema_of_file().end()) continue;
    const auto entries = read_config(config_syntax(file.name, file.text), file.text, file.name);
    REQUIRE(entries);
    INFO(file.name << ":\n" << file.text);
    CHECK(LaunchSchema(known->second).breaches(*entries) == std::vector<std::string>{});
  }
}

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("shardwise-launch-" + std::to_string(::getpid()));
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// The plan and settings that the written folder says, asked for with nothing but model and GPUs.
void check_reads_back(const Asked& asked, const Settled& said, const LaunchFiles& files) {
  const TemporaryFolder folder;
  REQUIRE(write_launch_files(folder.path, files.files, OtherFiles::refused).empty());
  Request bare = request_for(asked.model, asked.gpus);
  bare.plan_from = {folder.path.string()};
  const auto r = resolve(bare, known_facts(), UnnamedMethods::one);
  if (!r) FAIL_CHECK(r.error().front().where << ": " << r.error().front().what);
  if (!r) return;
  REQUIRE(r->asked.plans.size() == 1);
  const auto back = settled(*r, r->asked.plans.front());
  REQUIRE(back);
  CHECK(to_string(back->plan) == to_string(said.plan));
  CHECK(back->plan == said.plan);
  CHECK(name(back->workload.method) == name(said.workload.method));
  CHECK(back->workload.framework.id == said.workload.framework.id);
  CHECK(back->workload.sequence == said.workload.sequence);
  CHECK(back->workload.compute == said.workload.compute);
  CHECK(back->workload.optimizer == said.workload.optimizer);
  CHECK(back->workload.adapter == said.workload.adapter);
  CHECK(back->workload.preference == said.workload.preference);
  CHECK(back->workload.framework.loss.kind == said.workload.framework.loss.kind);
  CHECK(back->workload.framework.process.expandable_segments ==
        said.workload.framework.process.expandable_segments);
  CHECK(back->workload.weights() == said.workload.weights());
  CHECK(r->learning_rate == 3e-4);
  CHECK(r->learning_rate_batch == said.plan.global_batch());
  for (const PlanFileReport& report : r->plan_files) {
    INFO(told(report));
    CHECK(report.not_honoured.empty());  // what we write ourselves, we know
  }
}

struct Written {
  int plans = 0, preferences = 0, fused = 0;
};

Written written_and_read_back(const LaunchTarget& target) {
  Written written;
  for (const Asked& asked : asked_plans())
    for (const std::string& text : asked.plans) {
      Request request = launch_request(asked);
      const bool shards = text.find("zero=0") == std::string::npos;
      request.framework = std::string(target.framework(asked.method, shards ? 3 : 0));
      const ResolvedRequest r = resolved(request);
      const auto said = settled(r, text);
      if (!said) continue;  // the framework itself cannot run it
      const LaunchJob job{
          {said->workload, said->plan, r.clusters.front()}, r.model.hf_id, 3e-4, std::nullopt};
      INFO(target.name << ": " << asked.model << " " << asked.gpus << " " << text);
      if (!launch_refusals(target, job.question).empty()) continue;
      const LaunchFiles files = target.write(job);
      check_schemas(files);
      check_reads_back(asked, *said, files);
      ++(asked.preference != nullptr ? written.preferences
         : asked.fused_loss          ? written.fused
                                     : written.plans);
    }
  return written;
}

}  // namespace

TEST_CASE("what a target writes fits its framework's schema and reads back as the same plan") {
  for (const LaunchTarget& target : launch_targets()) {
    DYNAMIC_SECTION(target.name) {
      const Written written = written_and_read_back(target);
      CHECK(written.plans >= 12);
      // Those that launch TRL's scripts know three of five, axolotl all of them; the others learn
      // the next token, with the loss that is theirs.
      const bool trainer = target.name == "accelerate" || target.name == "deepspeed";
      const bool any = trainer || target.name == "axolotl";
      CHECK(written.preferences >= (trainer ? 12 : any ? 20 : 0));
      CHECK((written.preferences > 0) == any);
      CHECK((written.fused > 0) == any);
    }
  }
}

TEST_CASE("a target that cannot say a plan says why") {
  struct Case {
    const char *target, *framework, *plan, *why;
  };
  // The framework named can run each plan; the target cannot say it.
  const std::vector<Case> cases{
      {"torchrun", "pytorch-fsdp2", "dp=2,tp=4,sp=true,zero=3", "tensor parallelism"},
      {"torchrun", "pytorch-fsdp2", "dp=8,zero=1", "zero=2 or zero=3"},
      {"accelerate", "accelerate-fsdp", "dp=8,zero=1", "ZeRO-1 needs DeepSpeed"},
      {"accelerate", "accelerate-fsdp", "dp=8,zero=3,shard=4", "within a node"},
      {"accelerate", "accelerate-fsdp", "dp=8,zero=3,offload=optimizer", "together"},
      {"deepspeed", "hf-deepspeed", "dp=4,cp=2,cp-kind=ring,zero=2", "Ulysses"},
      {"deepspeed", "hf-deepspeed", "dp=8,zero=3,shard=4", "MiCS"},
      {"deepspeed", "hf-deepspeed", "dp=8,zero=3,recompute=selective", "not selective"},
      {"torchtitan", "torchtitan", "dp=8,zero=1", "zero=2 or zero=3"},
      {"torchtitan", "torchtitan", "dp=2,tp=4,sp=false,zero=3", "sequence parallelism"},
      {"torchtitan", "torchtitan", "dp=4,pp=2,schedule=zb-h1,zero=2,ga=4", "zb-h1"},
      {"megatron", "megatron-lm", "dp=4,pp=2,schedule=gpipe,zero=1,ga=4", "gpipe"},
      {"megatron", "megatron-lm", "dp=8,zero=0,recompute=selective-op", "selective-op"},
      {"axolotl", "axolotl", "dp=8,zero=3,recompute=every-2-layers", "every-2-layers"},
      {"axolotl", "axolotl", "dp=1,pp=8,split=true", "in turns"},
      {"megatron", "megatron-lm", "dp=8,schedule=gpipe", "without pipeline stages"},
      // No file says these.
      {"deepspeed", "hf-deepspeed", "dp=8,zero=2,offload=optimizer,nvme=true", "nvme=true"},
      {"accelerate", "accelerate-fsdp", "dp=8,zero=0,compress=powersgd-4", "compress"},
      {"megatron", "megatron-lm", "dp=8,zero=0,async-dp=true", "async-dp"}};
  for (const Case& c : cases) {
    INFO(c.target << " " << c.plan);
    Request request = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
    request.framework = c.framework;
    const ResolvedRequest r = resolved(request);
    const auto said = settled(r, c.plan);
    REQUIRE(said);
    const LaunchTarget* target = launch_target_named(c.target);
    REQUIRE(target != nullptr);
    const auto reasons = launch_refusals(*target, {said->workload, said->plan, r.clusters.front()});
    REQUIRE_FALSE(reasons.empty());
    std::string all;
    for (const std::string& reason : reasons) all += reason + "\n";
    CHECK(all.find(c.why) != std::string::npos);
    if (all.find(c.why) == std::string::npos) UNSCOPED_INFO(all);
  }
}

TEST_CASE("what a target cannot learn from is refused") {
  const auto reasons = [](const char* target, const char* framework, const char* preference,
                          bool fused_loss) {
    Request request = request_for("llama-3.1-8b", "8xH100-SXM", {Method::full});
    request.framework = framework;
    request.preference = preference == nullptr ? nullptr : preference_named(preference);
    request.fused_loss = fused_loss;
    const ResolvedRequest r = resolved(request);
    const auto said = settled(r, "dp=8,zero=3");
    REQUIRE(said);
    std::string all;
    for (const std::string& reason : launch_refusals(
             *launch_target_named(target), {said->workload, said->plan, r.clusters.front()}))
      all += reason + "\n";
    return all;
  };
  CHECK(reasons("torchtitan", "torchtitan", "dpo", false).find("next token only") !=
        std::string::npos);
  CHECK(reasons("torchtitan", "torchtitan", nullptr, true).find("--fused-loss") !=
        std::string::npos);
  CHECK(reasons("accelerate", "accelerate-fsdp", "orpo", false).find("no script for orpo") !=
        std::string::npos);
  CHECK(reasons("axolotl", "axolotl", "dpo", true).find("another kernel") != std::string::npos);
}

}  // namespace shardwise
