// Advice: changes that would make a plan fit, each forecast again by the same predictor. They are
// single ones, but where no small one does: then the fewest of these that do together.
//
//   it is tight         segments that grow, smaller microbatch, recomputation, another split of the
//                       layers over cards, head and loss in one kernel, constants of 4-bit weights
//                       quantised too, and in one box a framework that takes less memory
//   the GPU is short    these, more sharding or another plan than the one asked for, 8-bit
//                       optimizer, shorter sequences, smaller adapters, LoRA or QLoRA
//                       instead, offloading (and how much host RAM that takes; in DeepSpeed where
//                       the usual framework leaves too much behind), more such cards, bigger cards
//   the host is short   weights read once instead of by every rank, that much more host RAM, a
//                       framework that takes less, LoRA or QLoRA instead
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

struct Advice {
  std::string change;  // "sequences of 1,024 tokens instead of 2,048"
  Verdict verdict = Verdict::fits;
  std::string gpu;
  std::string plan;
  Question question;                 // with the change, as it was forecast
  std::optional<Request> request;    // that asks for it; absent where no flag says the change
  Bytes device;                      // per GPU with the change
  Bytes needed;                      // of it, without cache that would be given back
  Bytes memory_effect;               // what is needed with it less that without it
  Interval<Seconds> step_time;       // with the change
  std::optional<double> time_ratio;  // time per token with it / without it
  Bytes host_ram;                    // per node, at its most
};

// What was already chosen for another method of the same request, on its first cluster.
struct KnownPlan {
  Method method = Method::full;
  const ChosenPlan* chosen = nullptr;
};

// Ranked: what changes least comes first. Only changes that make it fit are listed; of a tight plan
// those that leave room.
std::vector<Advice> advise(const ResolvedRequest& request, Method method, const Cluster& cluster,
                           const ChosenPlan& missed, const std::vector<KnownPlan>& known = {});

}  // namespace shardwise
