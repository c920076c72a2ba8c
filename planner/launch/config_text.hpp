// Configuration entries as the text of a file: JSON, YAML or TOML. `heading` lines become comments
// where the format has them. Reading the text back (config_reader.hpp) gives the same entries.
#pragma once

#include <string>
#include <vector>

#include "planner/launch/config_entries.hpp"

namespace shardwise {

using Heading = std::vector<std::string>;

std::string json_config(const ConfigEntries& entries);  // JSON knows no comments
std::string yaml_config(const ConfigEntries& entries, const Heading& heading);
std::string toml_config(const ConfigEntries& entries, const Heading& heading);
// One "--key value" a line; a true flag stands alone, a false one is left out, and what follows in
// a list ("cp-comm-type.0") joins its line. For argparse.
std::string argument_config(const ConfigEntries& entries, const Heading& heading);

}  // namespace shardwise
