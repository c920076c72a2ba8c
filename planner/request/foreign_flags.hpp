// Flags and commands of other programs, and what is said to those who type them here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardwise {

// The flag of ours that asks the same, as "--seq" for "--max-length"; "" where none does. `flag`
// has no value behind it, and dashes in place of underscores.
std::string_view called_here(std::string_view flag);

// What there is in place of a flag that no flag of ours is the same as, as a sentence without its
// end: "--dry-run" is "every answer is one: ...". By `command` where it matters; "" where nothing
// is known of it.
std::string_view answered_otherwise(std::string_view command, std::string_view flag);

// Who answers here what a command of other programs does; "" where nothing is known of it.
std::string_view answered_by(std::string_view command);

}  // namespace shardwise
