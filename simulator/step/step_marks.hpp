// What a task of a step waits for while it is lowered: marks of work that came before.
//
// A Mark is a StepLowering's Builder's: the tasks that stand for the end of some work.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace shardwise {

// Which replicas of a stage work together in a collective.
enum class Members { alone, tensor_group, data_group, expert_group };
inline constexpr std::size_t member_kinds = 4;

// A few marks that a task waits for.
template <class Mark>
class WaitList {
 public:
  WaitList() = default;
  WaitList(std::initializer_list<const Mark*> marks) {
    for (const Mark* mark : marks) add(*mark);
  }
  void add(const Mark& mark) { marks_[count_++] = &mark; }
  std::span<const Mark* const> marks() const { return std::span(marks_).first(count_); }

 private:
  std::array<const Mark*, 6> marks_{};
  std::size_t count_ = 0;
};

// The ends of one pass of one microbatch through one model chunk.
template <class Mark>
struct PassEnds {
  Mark done;      // compute has ended
  Mark transfer;  // the arrival of its input from another stage, if there is one
};

}  // namespace shardwise
