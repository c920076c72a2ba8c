// Random small planning problems, for tests that hold the search against brute force.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "planner/search/plan_search.hpp"
#include "simulator/offload_choice.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

struct SmallProblem {
  std::string told;
  ResolvedRequest request;
};

// A small model on few GPUs with a few dimensions pinned, so that its whole space can be forecast.
inline SmallProblem small_problem(std::mt19937& random) {
  const auto one_of = [&](const auto& list) { return list[random() % std::size(list)]; };
  const char* const models[] = {"gpt2", "gpt3-125m", "llama-3.2-1b", "deepseek-v2-lite"};
  const char* const clusters[] = {"2xA100-80GB", "4xH100-SXM", "2xRTX-3090",    "4xRTX-4090",
                                  "8xA100-40GB", "2xV100",     "2x3090+2x4090", "RTX-4090"};
  const char* const frameworks[] = {"megatron-lm", "torchtitan", "pytorch-fsdp2", "pytorch-ddp",
                                    "nanotron",    "deepspeed",  "torchtune",     "picotron"};
  const char* const recomputes[] = {"none", "full", "selective", "blocks-2", "one-in-2-layers"};
  const char* const offloads[] = {"none", "optimizer",  "params", "params+optimizer",
                                  "all",  "activations"};
  const int sequences[] = {128, 512, 1024};
  const int batches[] = {4, 8, 12};
  Request r =
      request_for("", one_of(clusters), {random() % 2 == 0 ? Method::pretrain : Method::full});
  r.model = one_of(models);
  r.framework = one_of(frameworks);
  r.sequence = one_of(sequences);
  r.batch = one_of(batches);
  r.recompute = one_of(recomputes);
  if (random() % 4 == 0) r.recompute.reset();
  if (random() % 2 == 0) r.microbatch = 1 + static_cast<int>(random() % 2);
  if (random() % 3 == 0) {
    r.offload = offload_named(one_of(offloads));
    r.host_ram = Bytes(std::int64_t{2} << 40);
  }
  SmallProblem p{*r.model + " on " + *r.gpus + ", " + *r.framework + ", " +
                     r.recompute.value_or("any recompute") + ", offload " +
                     std::string(offload_name(r.offload.value_or(Offload{}))) + ", " +
                     std::to_string(*r.sequence) + " x " + std::to_string(*r.batch),
                 resolved(r)};
  return p;
}

// Every legal plan of a space, by trying every point.
template <class Visit>
void each_point(const PlanSpace& space, Visit visit) {
  PlanPoint x{};
  for (;;) {
    visit(x);
    std::size_t axis = plan_axis_count;
    while (axis-- > 0) {
      if (++x[axis] < space.values(static_cast<PlanAxis>(axis))) break;
      x[axis] = 0;
      if (axis == 0) return;
    }
  }
}

}  // namespace shardwise
