// An answer worked out in a process of its own, which has so long and so much memory and no more.
// Whatever becomes of it, the server goes on.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "catalog/units.hpp"

namespace shardwise {

struct AnswerLimits {
  std::chrono::milliseconds time{10'000};
  Bytes memory{std::int64_t{4} << 30};  // address space beyond what the server itself has
};

struct ProcessAnswer {
  enum class Ending { answered, too_long, failed } ending = Ending::failed;
  std::string text;  // where answered
};

// `work` runs in a fork of this process, with this thread alone.
ProcessAnswer answer_in_process(const std::function<std::string()>& work,
                                const AnswerLimits& limits);

}  // namespace shardwise
