#include "planner/advice/advised_request.hpp"

#include <algorithm>

namespace shardwise {
namespace {

// What a plan says itself, and what is asked about an answer.
void leave_to_the_plan(Request& r, const ParallelPlan& plan) {
  r.plans = {whole_text(plan)};
  r.plan_from.clear();
  r.why_not.clear();
  r.recompute.reset();
  r.microbatch.reset();
  r.offload.reset();
  r.batch.reset();
}

bool same_cards(const Cluster& a, const Cluster& b) {
  return std::equal(a.groups.begin(), a.groups.end(), b.groups.begin(), b.groups.end(),
                    [](const NodeGroup& x, const NodeGroup& y) {
                      return x.gpu.id == y.gpu.id && x.gpus() == y.gpus();
                    });
}

// Cards of a bare size are told by the name of those that were forecast.
std::string told_cards(const Cluster& cluster) {
  std::string text;
  for (const NodeGroup& g : cluster.groups)
    text += (text.empty() ? "" : "+") + std::to_string(g.gpus()) + 'x' + g.gpu.id;
  return text;
}

void tell_machine(const Question& missed, const Question& changed, Request& r) {
  const Cluster &before = missed.cluster, &now = changed.cluster;
  if (!same_cards(before, now)) {
    r.gpus = told_cards(now);
    r.gpus_per_node.reset();
  } else if (now.groups.front().node.host_ram != before.groups.front().node.host_ram) {
    r.host_ram = now.groups.front().node.host_ram;
  }
}

void tell_adapter(const Workload& before, const Workload& now, Request& r) {
  if (!row(now.method).adapter) {
    r.lora_rank.reset();
    r.lora_targets.reset();
  } else if (now.adapter.rank != before.adapter.rank && row(before.method).adapter) {
    r.lora_rank = now.adapter.rank;
  }
  if (now.method != Method::qlora)
    r.quantization.reset();
  else if (before.method == Method::qlora && now.adapter.base != before.adapter.base)
    r.quantization = now.adapter.base;
}

}  // namespace

std::optional<Request> advised_request(const ResolvedRequest& request, const Question& missed,
                                       const Question& changed) {
  const Workload &before = missed.workload, &now = changed.workload;
  const Framework &f = now.framework, &was = before.framework;
  const bool same_framework = f.id == was.id;
  if (request.asked.uploaded) return std::nullopt;
  if (same_framework && f.loading.every_rank_on_host != was.loading.every_rank_on_host)
    return std::nullopt;
  Request r = request.asked;
  leave_to_the_plan(r, changed.plan);
  tell_machine(missed, changed, r);
  r.methods = {now.method};
  r.framework = f.id;
  if (now.sequence != before.sequence) r.sequence = now.sequence;
  if (same_framework && row(now.method).trains_base && now.optimizer != before.optimizer)
    r.optimizer = now.optimizer;
  tell_adapter(before, now, r);
  if (same_framework && f.loss.kind != was.loss.kind) r.fused_loss = true;
  if (same_framework && f.process.expandable_segments && !was.process.expandable_segments)
    r.expandable_segments = true;
  return r;
}

}  // namespace shardwise
