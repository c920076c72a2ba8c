// What files of this project's own say beside the keys of their formats: the method, in the heading
// that every format with comments gets, and in run.sh the allocator's settings. Both are implied: a
// key of the file and a flag come first.
#pragma once

#include <string>

#include "planner/launch/plan_words.hpp"

namespace shardwise {

// The name of the script that add_run_script() writes.
inline constexpr const char* run_script_name = "run.sh";

// True for a text that begins with the heading of launch_job.hpp.
bool was_written_here(const std::string& text);

// Whole-model training only: adapters are said by keys, which may have been edited since.
void imply_by_heading(const std::string& text, const std::string& file, PlanWords& words);

void imply_by_run_script(const std::string& text, const std::string& file, PlanWords& words);

}  // namespace shardwise
