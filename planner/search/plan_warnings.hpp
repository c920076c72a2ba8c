// Warnings that save money: what holds the best plan up that somebody is about to pay for. Each
// rests on a forecast of the change that it names, and is left out where that changes little.
//
//   fewer GPUs     one card, or one node, is nearly as fast as all (no NVLink, slow network)
//   unlike cards   those of one kind are as fast without the others, which hold them up
//   the network    twice the bandwidth between nodes would make the step much shorter
//   the batch      twice the sequences per step would fill the pipeline's bubble
//   the loader     the step waits for its data
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/plan_search.hpp"

namespace shardwise {

// From how many times as fast on a change is worth telling. Assumed.
inline constexpr double worth_telling = 1.05;

// A plan that is answered with, whoever has chosen it.
struct WarnedPlan {
  const Question& question;
  Seconds step;
  const Profile& profile;
  // The step of the best plan for the same batch on a part of the cluster; nothing where none fits.
  std::function<std::optional<Seconds>(const Cluster& part)> best_step_on;
};

std::vector<std::string> plan_warnings(const WarnedPlan& plan);
std::vector<std::string> plan_warnings(const ResolvedRequest& request, const SearchSite& site,
                                       const FoundPlan& best, const SearchWish& wish);

}  // namespace shardwise
