// A framework's schema (launch_schemas/*.json, made by read_schemas.py from its own configuration
// classes), and what it finds wrong in a configuration.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/launch/config_entries.hpp"

namespace shardwise {

class LaunchSchema {
 public:
  explicit LaunchSchema(const std::string& name);

  // One sentence for each key that is unknown or whose value has another type.
  std::vector<std::string> breaches(const ConfigEntries& entries) const;

 private:
  // The types allowed; a list of values stands as they are.
  std::vector<std::pair<std::string, std::vector<std::string>>> keys_;
  bool typed_;  // arguments are untyped texts until argparse reads them
};

}  // namespace shardwise
