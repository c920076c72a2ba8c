// The fastest plan of those that fit, and what is told of the others.
#pragma once

#include "planner/search/plan_trial.hpp"

namespace shardwise {

// Another plan is told of where the one that is chosen takes this many times as long: a preference.
inline constexpr double worth_a_note = 1.2;

// Everything about a plan. A problem where its step is too long to be forecast, unless memory alone
// says no.
Result<ChosenPlan> whole_forecast(const PlanTrial& s, const Tried& t);

// The fastest of those that fit with room to spare, unless a tight one takes less than half its
// time; the first of equally fast ones. A problem where the steps of all are too long. Only a tight
// one that is faster, and the fastest with room to spare beside a tight one, are told of.
// REQUIRES some that fit.
Result<ChosenPlan> fastest_plan(const PlanTrial& s, Room room);

// Adds a note of the fastest plan that lacks nothing but host RAM, if that is so much faster.
void note_host_bound(PlanTrial& s, ChosenPlan& best);

}  // namespace shardwise
