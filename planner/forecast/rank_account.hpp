// RankAccount: what the GPU of each stage did with its step, and which work sets the step's length.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/step/played_step.hpp"

namespace shardwise {

// busy + exposed + bubble = step; idle = exposed + bubble. By name of WorkKind, none that is 0.
struct RankAccount {
  int stage = 0;
  std::map<std::string, Seconds> busy;
  std::map<std::string, Seconds> exposed;
  Seconds bubble, idle;
  std::map<std::string, Seconds> critical;  // its part of the critical path, all lanes
};

// Tasks of the critical path that follow one another on one stage and do the same kind of work.
struct PathPart {
  int stage = 0;
  WorkKind work = WorkKind::other;
  int first_microbatch = 0, last_microbatch = 0;
  SimTime start, end;
  int tasks = 0;
};

std::vector<RankAccount> rank_accounts(const PlayedStep& step);  // one per stage

// In order of time; together as long as the step. Tasks of no length are left out.
std::vector<PathPart> path_parts(const PlayedStep& step);

}  // namespace shardwise
