// One change under trial: the question that missed, changed, forecast again and recorded where it
// makes the difference.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planner/advice/advice.hpp"

namespace shardwise {

struct AdviceTrial {
  const ResolvedRequest& request;
  Method method;
  const Cluster& cluster;
  const ChosenPlan& missed;
  const std::vector<KnownPlan>& known;
  std::vector<Advice> advice;

  const Question& question() const { return missed.question; }
};

// The plan that `fit` would choose there, if one fits.
Result<ChosenPlan> choose_fitting(const ResolvedRequest& request, Method method,
                                  const Cluster& cluster);

enum class HostRam { decides, is_named };  // is_named: the advice says how much it takes

// What a plan that fits takes of the host: whether its step and the rest is worth a look.
using HostAccepts = std::function<bool(const HostMemory&)>;

// The forecast of the changed question, if it fits then, or has room where it was tight; with step
// time.
std::optional<ChosenPlan> fits_with(const AdviceTrial& trial, Question changed,
                                    HostRam host = HostRam::decides,
                                    std::shared_ptr<const MemoryPlays> plays = nullptr,
                                    const HostAccepts& accepts_host = nullptr);

// The room that a change makes, used for larger microbatches where it costs much time for want of
// them: what is copied for every pass is copied less often.
ChosenPlan larger_passes(const AdviceTrial& trial, ChosenPlan found);

void record_advice(AdviceTrial& trial, std::string change, const ChosenPlan& chosen);

// fits_with and record_advice; true where it was recorded.
bool offer(AdviceTrial& trial, std::string change, Question changed,
           std::shared_ptr<const MemoryPlays> plays = nullptr);

// advice_machine.cpp: other machines.
void advise_more_gpus(AdviceTrial& trial);
void advise_bigger_cards(AdviceTrial& trial);

}  // namespace shardwise
