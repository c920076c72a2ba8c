// Numbers as people write them behind a flag: 1e12, 4k, 90%.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "planner/request/request_field.hpp"

namespace shardwise {

// Digits only, "4,096", 1e12 and 1.5e12, or "4k" and "1.5T" by the letters of the field.
std::optional<std::int64_t> lettered_integer_in(std::string_view words, NumberLetters letters);

std::optional<double> plain_number_in(std::string_view digits);

// A part of one: 0.9 or 90%.
std::optional<double> share_in(std::string_view words);

// [s] As trainers print a step: 3.2, 3.2s, 3.2s/it, 450ms, 1.5it/s.
std::optional<double> seconds_in(std::string_view words);

}  // namespace shardwise
