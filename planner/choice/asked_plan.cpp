#include "planner/choice/asked_plan.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/choice/plan_layouts.hpp"
#include "planner/choice/stage_balance.hpp"
#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "simulator/offload_choice.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

// True where the text gives one of the keys.
bool says(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    if (part.substr(0, part.find('=')) == key) return true;
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return false;
}

struct Completion {
  const ResolvedRequest& request;
  const Workload& workload;
  const Cluster& cluster;
  const std::string& text;
  ParallelPlan plan;
  Problems problems;

  void contradicts(std::string_view flag, const std::string& asked, const std::string& key) {
    problems.push_back({ProblemKind::request, std::string(flag),
                        sentence(asked, " contradicts ", key, " in --plan ", text)});
  }
};

void complete_axes(Completion& c) {
  ParallelPlan& p = c.plan;
  if (p.layer_split && !says(c.text, "pp")) p.pipeline = c.cluster.gpus();
  const std::int64_t model = std::int64_t{p.tensor} * p.context * p.pipeline;
  if (!says(c.text, "dp") && !says(c.text, "fsdp") && model > 0 && c.cluster.gpus() % model == 0)
    p.data = static_cast<int>(c.cluster.gpus() / model);
  const Framework& f = c.workload.framework;
  if (!says(c.text, "zero") && !says(c.text, "fsdp") && !p.layer_split)
    p.zero_stage = p.data > 1 || p.context > 1 ? f.defaults.zero_stage : 0;
  if (!says(c.text, "sp"))
    p.sequence_parallel =
        sequence_parallel_by_default(f, p.tensor, c.workload.model.moe.has_value());
  if (!says(c.text, "async-tp"))
    p.async_tensor =
        p.sequence_parallel &&
        f.parallel.overlaps_tensor(c.workload.model.moe.has_value(), c.workload.compute);
  if (!says(c.text, "cp-kind") && p.context > 1) p.context_kind = f.parallel.context_kind;
  if (!says(c.text, "etp") && c.workload.model.moe && p.expert == 1) p.expert_tensor = p.tensor;
}

void complete_microbatch(Completion& c) {
  const auto& asked = c.request.asked.microbatch;
  if (!asked) return;
  if (!says(c.text, "mbs"))
    c.plan.microbatch = *asked;
  else if (c.plan.microbatch != *asked)
    c.contradicts("--microbatch", std::to_string(*asked), sentence("mbs=", c.plan.microbatch));
}

// Layers that nobody dealt: by the speed of unequal GPUs, else as the framework does.
void complete_layers(Completion& c) {
  ParallelPlan& p = c.plan;
  const PipelineSchedule* schedule = find_pipeline_schedule(p.schedule_row());
  if (!p.layers_per_stage.empty() || p.layer_split || schedule == nullptr) return;
  if (std::int64_t{p.pipeline} * p.chunks > most_model_chunks(c.workload.model)) return;  // illegal
  if (c.cluster.groups.size() > 1 && p.gpus() == c.cluster.gpus())
    p.layers_per_stage = layers_by_speed(c.workload, p, c.cluster);
  if (p.layers_per_stage.empty() && p.pipeline > 1)
    p.layers_per_stage = usual_layers_per_stage(
        c.workload, schedule->model_chunks({p.pipeline, p.chunks, p.microbatches}));
}

void complete_accumulation(Completion& c) {
  ParallelPlan& p = c.plan;
  const std::int64_t round = std::int64_t{p.data} * p.microbatch;
  if (round < 1) return;
  const auto& asked = c.request.asked.batch;
  if (says(c.text, "ga")) {
    if (asked && *asked != round * p.microbatches)
      c.contradicts("--batch", std::to_string(*asked),
                    sentence("dp x mbs x ga = ", round * p.microbatches));
    return;
  }
  if (asked && *asked % round != 0) {
    const std::int64_t below = *asked / round * round;
    c.problems.push_back(
        {ProblemKind::request, "--batch",
         sentence(counted(*asked, "sequence"), *asked == 1 ? " does" : " do",
                  " not divide into rounds of dp x mbs = ", p.data, " x ", p.microbatch, " = ",
                  round, "; ",
                  below > 0 ? sentence("the nearest are ", below, " and ") : "the least is ",
                  below + round)});
    return;
  }
  p.microbatches =
      static_cast<int>(std::max<std::int64_t>(1, (c.request.batch + round - 1) / round));
}

void complete_rest(Completion& c) {
  const Request& asked = c.request.asked;
  if (!says(c.text, "recompute"))
    c.plan.recompute = asked.recompute.value_or(usual_recompute(c.workload));
  else if (asked.recompute && *asked.recompute != c.plan.recompute)
    c.contradicts("--recompute", *asked.recompute, sentence("recompute=", c.plan.recompute));
  if (!asked.offload) {
    if (!says(c.text, "offload")) offload_as_usual(c.workload, c.plan);
    return;
  }
  if (!says(c.text, "offload"))
    c.plan.offload = *asked.offload;
  else if (!(c.plan.offload == *asked.offload))
    c.contradicts("--offload", std::string(offload_name(*asked.offload)), "offload");
}

// Sizes that products above can be formed of; plan_problems() refuses the others by name.
bool ordinary(const ParallelPlan& p) {
  const std::array<int, 9> sizes{p.data,          p.tensor, p.context,    p.pipeline,    p.expert,
                                 p.expert_tensor, p.chunks, p.microbatch, p.microbatches};
  return std::all_of(sizes.begin(), sizes.end(),
                     [](int n) { return n >= 1 && n <= most_in_a_plan; });
}

}  // namespace

const std::string& usual_recompute(const Workload& w) {
  return w.method == Method::pretrain ? w.framework.recompute.pretrain
                                      : w.framework.recompute.finetune;
}

void offload_as_usual(const Workload& w, ParallelPlan& plan) {
  const std::optional<int> from = w.framework.recompute.offloads_from;
  if (from && w.sequence >= *from && plan.recompute == "full") plan.offload.activations = true;
}

Result<ParallelPlan> complete_plan(const ResolvedRequest& request, const Workload& workload,
                                   const Cluster& cluster, const std::string& text) {
  Completion c{request, workload, cluster, text, {}, {}};
  if (!text.empty()) {
    auto parsed = parse_plan(text);
    if (!parsed) return parsed.error();
    c.plan = *std::move(parsed);
    if (!ordinary(c.plan)) return c.plan;
  }
  complete_axes(c);
  complete_microbatch(c);
  complete_accumulation(c);
  complete_rest(c);
  complete_layers(c);
  if (!c.problems.empty()) return placed(request, c.problems);
  return c.plan;
}

}  // namespace shardwise
