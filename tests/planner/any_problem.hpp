// Random planning problems from the whole catalog: any model, card, framework, method and setting.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "planner/facts.hpp"
#include "planner/request/request.hpp"
#include "planner/search/plan_space.hpp"
#include "simulator/offload_choice.hpp"

namespace shardwise {

// Many of these are no question that can be answered: resolve() says so. `most_gpus`: no more.
inline Request any_request(const Facts& facts, std::mt19937& random, unsigned most_gpus) {
  const auto one_of = [&](const auto& list) -> const auto& {
    return list[random() % std::size(list)];
  };
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  Request r;
  r.model = one_of(facts.catalog.models).id;
  unsigned gpus = 1U << random() % 7;
  if (one_in(5)) gpus = 1 + static_cast<unsigned>(random() % most_gpus);
  if (gpus > most_gpus) gpus = most_gpus;
  const std::vector<std::string> often{"a100-sxm4-80gb", "h100-sxm5-80gb", "rtx-4090", "b200",
                                       "v100-sxm2-16gb", "h200-sxm-141gb", "rtx-3090", "mi300x"};
  const std::string card = one_in(3) ? one_of(facts.catalog.gpus).id : one_of(often);
  r.gpus = std::to_string(gpus) + "x" + card;
  if (one_in(20)) r.gpus = "2x3090+2x4090";
  if (one_in(6)) r.nodes = 1 << random() % 4;
  if (one_in(6)) r.network = one_of(facts.catalog.networks).id;
  if (one_in(12)) r.network_share = 0.25;
  if (one_in(12)) r.peer_access = PeerAccess::no;
  if (one_in(12)) r.power_limit_w = 250;
  r.methods = {one_of(method_rows).method};
  r.framework = one_of(facts.catalog.frameworks).id;
  const std::vector<int> lengths{16, 64, 100, 128, 500, 512, 777, 1024, 2048, 2048, 4096, 8192};
  r.sequence = one_of(lengths);
  const std::vector<int> batches{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256};
  r.batch = one_of(batches);
  if (one_in(3)) r.microbatch = 1 << random() % 4;
  const std::vector<const char*> recomputes{
      "none",     "full",     "selective", "selective-op",      "norms-and-activations",
      "blocks-2", "blocks-7", "best",      "one-in-2-layers",   "every-2-layers",
      "best-10",  "blocks-1", "best-3",    "modules-layernorm", "one-in-3-layers"};
  if (one_in(3)) r.recompute = one_of(recomputes);
  if (one_in(3)) r.offload = one_of(offload_choices).offload;
  r.host_ram = Bytes(std::int64_t{4} << 40);
  if (one_in(3)) r.optimizer = &one_of(optimizer_rows);
  if (one_in(3)) {
    const std::vector<DType> formats{DType::bf16, DType::fp16, DType::fp32, DType::fp8};
    r.precision = one_of(formats);
  }
  const bool adapter = row(r.methods.front()).adapter;
  if (one_in(6) && r.methods.front() != Method::pretrain) r.preference = &one_of(preference_rows);
  if (adapter && one_in(2)) r.lora_rank = 1 << random() % 9;
  const std::vector<const char*> targets{"q,v",          "all-linear",  "q,k,v,o",
                                         "gate,up,down", "q,v,lm_head", "o,embedding"};
  if (adapter && one_in(2)) r.lora_targets = one_of(targets);
  if (adapter && one_in(4)) r.quantization = one_of(quantization_rows).quantization;
  if (one_in(6)) r.expert_imbalance = 1.7;
  r.expandable_segments = one_in(6);
  r.fused_loss = one_in(6);
  r.fp8_attention = one_in(12);
  return r;
}

// Calls `visit` with up to `n` legal plans drawn from a space, and with the most stages of those
// that have the same layers. Some spaces have few: what an offload leaves no plan to.
template <class Visit>
void each_drawn(const PlanSpace& space, std::mt19937& random, int n, const Visit& visit) {
  const auto outer = space.outer_points();
  if (outer.empty()) return;
  const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
  int found = 0;
  for (int drawn = 0; found < n && drawn < 100 * n; ++drawn) {
    PlanPoint x = one_of(outer);
    x[index(PlanAxis::recompute)] =
        static_cast<std::uint16_t>(random() % space.values(PlanAxis::recompute));
    std::vector<PlanPoint> inner;
    space.each_pipeline(x, [&](const PlanPoint& y, const ParallelPlan&) { inner.push_back(y); });
    if (inner.empty()) continue;
    PlanPoint y = one_of(inner);
    const auto groups = space.shard_positions(*space.plan(y));
    if (!groups.empty() && random() % 2 == 0) y[index(PlanAxis::shard_group)] = one_of(groups);
    visit(*space.plan(y), space.most_stages(x));
    ++found;
  }
}

}  // namespace shardwise
