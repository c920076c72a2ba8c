// Result<T>: a value, or every problem that kept us from having one.
//
// Used where a *user's* file, flag or question is wrong. A plan that does not fit is an answer,
// not an error, and a broken invariant of ours is an assertion (see require.hpp). The interface
// is the part of C++23's std::expected that we use, so that moving there changes one alias.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardwise {

// The process exit codes of problems; the command line returns them as they stand.
enum class ProblemKind {
  request = 2,  // the question is wrong: a flag, a name, a plan that does not multiply out
  file = 4,     // an input or output file cannot be read, parsed, believed or written
};

// One problem: where it is ("devices/rtx-4090.json:/memory_gib", "--gpus"), and a sentence with
// the value found and what was expected.
struct Problem {
  ProblemKind kind = ProblemKind::request;
  std::string where;
  std::string what;

  friend bool operator==(const Problem&, const Problem&) = default;
};

using Problems = std::vector<Problem>;

inline void add_problems(Problems& to, const Problems& from) {
  to.insert(to.end(), from.begin(), from.end());
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Problems problems) : state_(std::move(problems)) {}
  Result(Problem problem) : state_(Problems{std::move(problem)}) {}

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  T& operator*() & { return std::get<T>(state_); }
  const T& operator*() const& { return std::get<T>(state_); }
  T&& operator*() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }
  const Problems& error() const { return std::get<Problems>(state_); }

 private:
  std::variant<T, Problems> state_;
};

}  // namespace shardwise
