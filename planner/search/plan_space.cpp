#include "planner/search/plan_space.hpp"

#include <algorithm>
#include <numeric>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/plan_layouts.hpp"
#include "planner/choice/stage_balance.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/launch/plan_refusal.hpp"
#include "planner/sentence.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/offload_choice.hpp"
#include "simulator/packed_weights.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

std::vector<int> divisors(int n, int most) {
  std::vector<int> found;
  for (int d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

std::vector<int> tensor_sizes(const Workload& w, int gpus) {
  if (!w.framework.supports.tensor) return {1};
  std::vector<int> sizes = divisors(gpus, w.model.heads);
  std::erase_if(sizes, [&](int t) { return tensor_refusal(w.model, t).has_value(); });
  return sizes;
}

std::vector<int> context_sizes(const Workload& w, int gpus) {
  if (!w.framework.supports.context) return {1};
  std::vector<int> sizes = divisors(gpus, w.sequence);
  std::erase_if(sizes, [&](int c) { return w.sequence % c != 0; });
  return sizes;
}

std::vector<int> expert_sizes(const Workload& w) {
  if (!w.model.moe || !w.framework.supports.expert) return {1};
  return divisors(w.model.moe->experts, w.model.moe->experts);
}

std::vector<int> zero_stages(const Workload& w) {
  const Framework& f = w.framework;
  std::vector<int> stages(static_cast<std::size_t>(f.supports.max_zero_stage) + 1);
  std::iota(stages.begin(), stages.end(), 0);
  std::erase_if(stages, [&](int stage) {
    return (stage > 0 && stage < f.supports.least_zero_stage) ||
           !why_frozen_stay_whole(w, stage).empty();
  });
  std::stable_sort(stages.begin(), stages.end(), [&](int a, int b) {
    return (a == f.defaults.zero_stage) > (b == f.defaults.zero_stage);
  });
  return stages;
}

// A text that nobody could read was refused before.
PlanFix fix_of(const ResolvedRequest& r) {
  if (!r.asked.fix) return {};
  auto fix = PlanFix::parse(*r.asked.fix);
  return fix ? *std::move(fix) : PlanFix();
}

std::vector<Offload> offloads(const ResolvedRequest& r) {
  if (r.asked.offload) return {*r.asked.offload};
  if (!r.host_ram_stated) return {Offload{}};
  return {Offload{}, {true, false, false}, {false, true, false}, {true, true, false}};
}

std::vector<std::string> recomputes(const ResolvedRequest& r, const Workload& w) {
  if (r.asked.recompute) return {*r.asked.recompute};
  std::vector<std::string> names{usual_recompute(w)};
  const std::vector<std::string> fixed = fix_of(r).values("recompute");
  for (const char* name : {"none", "selective", "norms-and-activations", "selective-op", "full",
                           "one-in-2-layers", "blocks-1", "blocks-2", "blocks-4", "blocks-8"})
    if (name != names.front()) names.emplace_back(name);
  for (const std::string& name : fixed)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

bool has_schedule(const Framework& f, std::string_view name) {
  return f.supports.schedules.empty() ||
         std::find(f.supports.schedules.begin(), f.supports.schedules.end(), name) !=
             f.supports.schedules.end();
}

}  // namespace

PlanSpace::PlanSpace(const ResolvedRequest& r, const Workload& without_zero,
                     const Workload& with_zero, const Cluster& cluster)
    : without_zero_(&without_zero),
      with_zero_(&with_zero),
      cluster_(&cluster),
      gpus_(cluster.gpus()),
      batch_(r.batch),
      fix_(fix_of(r)),
      offloads_(offloads(r)),
      offload_asked_(r.asked.offload.has_value()),
      recomputes_(recomputes(r, without_zero)),
      context_kind_(without_zero.framework.parallel.context_kind) {
  const Workload& w = without_zero;
  const auto set = [&](PlanAxis axis, std::vector<int> list) {
    numbers_[index(axis)] = std::move(list);
  };
  const auto count = [&](PlanAxis axis, std::size_t n) {
    std::vector<int> list(n);
    std::iota(list.begin(), list.end(), 0);
    set(axis, std::move(list));
  };
  count(PlanAxis::offload, offloads_.size());
  set(PlanAxis::zero, zero_stages(w));
  set(PlanAxis::tensor, tensor_sizes(w, gpus_));
  set(PlanAxis::sequence_parallel,
      w.framework.parallel.sequence_parallel ? std::vector<int>{1, 0} : std::vector<int>{0, 1});
  set(PlanAxis::context, context_sizes(w, gpus_));
  set(PlanAxis::expert, expert_sizes(w));
  set(PlanAxis::expert_tensor, w.model.moe ? std::vector<int>{1, 0} : std::vector<int>{0});
  set(PlanAxis::microbatch,
      r.asked.microbatch ? std::vector<int>{*r.asked.microbatch} : divisors(batch_, batch_));
  count(PlanAxis::recompute, recomputes_.size());
  add_shards_and_stages(cluster);
  keep_fixed();
  for (std::size_t i = 0; i < plan_axis_count; ++i) sizes_[i] = numbers_[i].size();
  // plan_problems() refuses a name that nobody knows.
  for (const std::string& name : recomputes_) {
    const auto policy = recompute_policy(name);
    policies_.push_back(policy ? *policy : *recompute_policy("none"));
  }
}

void PlanSpace::keep_fixed() {
  keep_fixed(PlanAxis::zero, "zero");
  keep_fixed(PlanAxis::tensor, "tp");
  keep_fixed(PlanAxis::sequence_parallel, "sp");
  keep_fixed(PlanAxis::context, "cp");
  keep_fixed(PlanAxis::expert, "ep");
  keep_fixed(PlanAxis::microbatch, "mbs");
  keep_fixed(PlanAxis::recompute, "recompute");
  keep_fixed(PlanAxis::pipeline, "pp");
  keep_fixed(PlanAxis::schedule, "schedule");
  keep_fixed(PlanAxis::chunks, "vpp");
}

void PlanSpace::keep_fixed(PlanAxis axis, std::string_view key) {
  if (fix_.values(key).empty()) return;
  std::vector<int>& numbers = numbers_[index(axis)];
  std::vector<int> kept;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool flag = axis == PlanAxis::sequence_parallel;
    all.push_back(flag ? (numbers[i] != 0 ? "true" : "false") : shown_value(axis, i));
    if (fix_.allows(key, all.back())) kept.push_back(numbers[i]);
  }
  numbers = std::move(kept);
  if (numbers.empty() && !nothing_left_)
    nothing_left_ = sentence(key, " can be ", listed(all, " or "), " here");
}

void PlanSpace::add_shards_and_stages(const Cluster& cluster) {
  const Workload& w = *without_zero_;
  std::vector<int> groups{0};
  if (w.framework.supports.max_zero_stage >= 3)
    for (const int d : divisors(gpus_, gpus_ / 2))
      if (d > 1) groups.push_back(d);
  numbers_[index(PlanAxis::shard_group)] = std::move(groups);
  const bool splits = splits_layers(w, cluster);
  const bool pipelines = w.framework.supports.pipeline && !cluster.mixed_in_one_node;
  schedules_ = {std::string(usual_schedule)};
  std::vector<int> stages{1}, chunks{1};
  if (pipelines && gpus_ > 1) {
    stages = divisors(gpus_, w.model.layers);
    for (const PipelineSchedule& s : pipeline_schedules())
      if (s.name != usual_schedule && s.name != layer_split_schedule &&
          has_schedule(w.framework, s.name))
        schedules_.emplace_back(s.name);
    for (int v = 2; v <= std::max(2, w.model.layers / 2); ++v) chunks.push_back(v);
  } else if (splits) {
    stages.push_back(gpus_);
    schedules_.emplace_back(layer_split_name);
  }
  numbers_[index(PlanAxis::pipeline)] = std::move(stages);
  numbers_[index(PlanAxis::chunks)] = std::move(chunks);
  std::vector<int>& names = numbers_[index(PlanAxis::schedule)];
  names.resize(schedules_.size());
  std::iota(names.begin(), names.end(), 0);
  std::vector<int> deals{static_cast<int>(StageDeal::even)};
  if (pipelines)
    deals.push_back(static_cast<int>(cluster.groups.size() > 1 ? StageDeal::by_speed
                                                               : StageDeal::ends_lighter));
  if (splits && !equal_memory(cluster)) splits_by_memory_ = layers_by_memory(w, cluster);
  for (int i = 0; i < static_cast<int>(splits_by_memory_.size()); ++i)
    deals.push_back(static_cast<int>(StageDeal::by_memory) + i);
  numbers_[index(PlanAxis::stages)] = std::move(deals);
}

double PlanSpace::size() const {
  double points = 1;
  for (const std::size_t n : sizes_) points *= static_cast<double>(n);
  return points;
}

std::string PlanSpace::shown_value(PlanAxis axis, std::size_t position) const {
  const int n = numbers_[index(axis)][position];
  const auto i = static_cast<std::size_t>(n);
  constexpr std::array<std::string_view, 3> deals{"even", "ends-lighter", "by-speed"};
  if (axis == PlanAxis::offload) return std::string(offload_name(offloads_[i]));
  if (axis == PlanAxis::recompute) return recomputes_[i];
  if (axis == PlanAxis::schedule) return schedules_[i];
  if (axis == PlanAxis::stages)
    return i < deals.size() ? std::string(deals[i]) : sentence("by-memory-", i + 1 - deals.size());
  if (axis == PlanAxis::expert_tensor) return n == 0 ? "1" : "tp";
  if (axis == PlanAxis::shard_group && n == 0) return "all";
  return std::to_string(n);
}

// Layers per model chunk; empty: as even as possible. What the framework does by itself is "even"
// here, whatever it is; a deal that comes to the same is none of its own.
std::vector<int> PlanSpace::dealt(const ParallelPlan& p, StageDeal deal) const {
  if (p.pipeline == 1) return {};
  if (deal >= StageDeal::by_memory) {
    const auto which =
        static_cast<std::size_t>(deal) - static_cast<std::size_t>(StageDeal::by_memory);
    return p.layer_split ? splits_by_memory_[which] : std::vector<int>{};
  }
  if (deal == StageDeal::by_speed) return layers_by_speed(workload(p), p, *cluster_);
  const PipelineSchedule* schedule = find_pipeline_schedule(p.schedule_row());
  const int parts = schedule->model_chunks({p.pipeline, p.chunks, p.microbatches});
  const std::vector<int> usual =
      p.layer_split ? std::vector<int>{} : usual_layers_per_stage(workload(p), parts);
  if (deal == StageDeal::even) return usual;
  std::vector<int> layers = blocks_per_chunk(workload(p).model.layers + 2, parts, {});
  --layers.front();
  --layers.back();
  if (layers == blocks_per_chunk(workload(p).model.layers, parts, usual)) return {};
  return layers;
}

ParallelPlan PlanSpace::layers_of(const PlanPoint& x) const {
  ParallelPlan p;
  p.tensor = number(x, PlanAxis::tensor);
  p.context = number(x, PlanAxis::context);
  p.data = gpus_ / (p.tensor * p.context);
  p.microbatch = number(x, PlanAxis::microbatch);
  p.sequence_parallel = number(x, PlanAxis::sequence_parallel) != 0;
  p.context_kind = p.context > 1 ? context_kind_ : ContextKind::ring;
  p.expert = number(x, PlanAxis::expert);
  p.expert_tensor = number(x, PlanAxis::expert_tensor) != 0 ? p.tensor : 1;
  p.zero_stage = number(x, PlanAxis::zero);
  const Workload& w = workload(p);
  p.async_tensor = p.sequence_parallel &&
                   w.framework.parallel.overlaps_tensor(w.model.moe.has_value(), w.compute);
  p.offload = offloads_[at(x, PlanAxis::offload)];
  p.recompute = recomputes_[static_cast<std::size_t>(number(x, PlanAxis::recompute))];
  if (!offload_asked_) offload_as_usual(workload(p), p);
  return p;
}

std::optional<ParallelPlan> PlanSpace::plan(const PlanPoint& x) const {
  ParallelPlan p = layers_of(x);
  p.pipeline = number(x, PlanAxis::pipeline);
  const std::int64_t model = std::int64_t{p.tensor} * p.context * p.pipeline;
  if (gpus_ % model != 0) return std::nullopt;
  p.data = static_cast<int>(gpus_ / model);
  const std::int64_t round = std::int64_t{p.data} * p.microbatch;
  if (batch_ % round != 0) return std::nullopt;
  p.microbatches = static_cast<int>(batch_ / round);
  if (!shares_as_fixed(p.data, p.microbatches)) return std::nullopt;
  if (const int group = number(x, PlanAxis::shard_group); group > 0) p.shard_group = group;
  const std::string& schedule = schedules_[static_cast<std::size_t>(number(x, PlanAxis::schedule))];
  p.layer_split = schedule == layer_split_name;
  if (!p.layer_split) p.schedule = schedule;
  p.chunks = number(x, PlanAxis::chunks);
  p.layers_per_stage = dealt(p, static_cast<StageDeal>(number(x, PlanAxis::stages)));
  return p;
}

std::optional<std::string> PlanSpace::why_not(const PlanPoint& x) const {
  const std::optional<ParallelPlan> p = plan(x);
  if (!p) return "tp x cp x pp must divide the GPUs, and dp x mbs the batch";
  if (auto broken = why_not_shared(x, *p)) return broken;
  if (!legal_in_chunks(x, {.most_blocks = most_blocks(*p)}))
    return "recompute=" + p->recompute + " says nothing where a chunk has no more blocks";
  return std::nullopt;
}

// Every rule but that of recomputation in a chunk.
std::optional<std::string> PlanSpace::why_not_shared(const PlanPoint& x,
                                                     const ParallelPlan& p) const {
  const Workload& w = workload(p);
  if (const Refusals nothing = meaningless_sizes(p, w); !nothing.empty()) return nothing.front();
  const auto deal = static_cast<StageDeal>(number(x, PlanAxis::stages));
  if (deal != StageDeal::even && p.layers_per_stage.empty())
    return "all stages are alike: dealing layers unevenly says nothing";
  if (p.expert_tensor == 1 && number(x, PlanAxis::expert_tensor) != 0)
    return "tensor parallelism within experts says nothing with tp=1";
  if (p.shard_group && (p.zero_stage < 3 || *p.shard_group == 1))
    return "shard groups come with zero=3 here (HSDP)";
  if (p.offload.parameters && p.zero_stage < 3 && gpus_ > 1)
    return "offloaded weights are gathered layer by layer: zero=3";
  if (const auto format = left_unlowered(w.framework, w.compute, p))
    return told_unlowered(w.framework, *format);
  const int parts = p.pipeline * p.chunks;
  if (parts > w.model.layers)
    return sentence("pp x vpp = ", parts, " leaves chunks without one of the ", w.model.layers,
                    w.model.layers == 1 ? " layer" : " layers");
  if (p.layer_split && p.pipeline == 1) return "a layer split over one card says nothing";
  const Problems problems = plan_problems(w, p, *cluster_);
  if (!problems.empty()) return problems.front().what;
  return std::nullopt;
}

bool PlanSpace::shares_as_fixed(int data, int microbatches) const {
  return fix_.empty() || (fix_.allows("dp", std::to_string(data)) &&
                          fix_.allows("ga", std::to_string(microbatches)));
}

}  // namespace shardwise
