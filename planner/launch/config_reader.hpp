// Configuration files as entries, read by the libraries that people trust for each format: the
// catalog's JSON reader, yaml-cpp, toml++. Arguments (a shell script that calls a program with
// "--key value") are told apart from those by their look.
//
// Refused, each with one clear problem that names file and line: broken syntax, a key given twice
// (except arguments, where the last one holds as in argparse), more than `most_config_entries`
// values or `most_config_levels` levels. Problems are of kind `file`.
#pragma once

#include <string>
#include <string_view>

#include "catalog/result.hpp"
#include "planner/launch/config_entries.hpp"

namespace shardwise {

enum class ConfigSyntax { json, yaml, toml, arguments };

// By the name's ending, else by how the text begins.
ConfigSyntax config_syntax(std::string_view file_name, std::string_view text);

// `name` is what problems call the file.
Result<ConfigEntries> read_config(ConfigSyntax syntax, const std::string& text,
                                  const std::string& name);

// One reader for each syntax, seen by read_config only.
Result<ConfigEntries> read_json_config(const std::string& text, const std::string& name);
Result<ConfigEntries> read_yaml_config(const std::string& text, const std::string& name);
Result<ConfigEntries> read_toml_config(const std::string& text, const std::string& name);
Result<ConfigEntries> read_argument_config(const std::string& text, const std::string& name);

}  // namespace shardwise
