// What a shell script's references stand for: $NAME, ${NAME}, ${NAME:-default} and sums in whole
// numbers, $((NODES * 8)) or $(expr 16 / $GPUS). Nothing is executed; what the script did not
// assign stays as it is written.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shardwise {

using ShellVariables = std::map<std::string, std::string>;

class ShellValues {
 public:
  explicit ShellValues(const ShellVariables& variables) : variables_(variables) {}

  // `at` stands behind the '$' and is moved behind the reference.
  std::string reference(std::string_view text, std::size_t& at) const { return read(text, at, 0); }

 private:
  std::string read(std::string_view text, std::size_t& at, int level) const;
  std::string name_or_default(std::string_view inside, std::string_view written, int level) const;
  std::string expanded(std::string_view text, int level) const;

  const ShellVariables& variables_;
};

}  // namespace shardwise
