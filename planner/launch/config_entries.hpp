// ConfigEntries: a configuration file as a flat list of its values, whatever it is written in.
//
//   {"zero_optimization": {"stage": 3}, "betas": [0.9, 0.95]}
//     zero_optimization.stage = 3,  betas.0 = 0.9,  betas.1 = 0.95
//
// Launch files are written from such a list and a user's own files are read into one, so a target
// is one table of paths in both directions. A part of a path that is a number is a place in a list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "catalog/result.hpp"

namespace shardwise {

// Nothing (null), or a scalar.
using ConfigValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

struct ConfigEntry {
  std::string path;
  ConfigValue value;
  int line = 0;  // in the file it was read from; 0: unknown or never in a file

  friend bool operator==(const ConfigEntry& a, const ConfigEntry& b) {
    return a.path == b.path && a.value == b.value;
  }
};

using ConfigEntries = std::vector<ConfigEntry>;

inline constexpr std::size_t most_config_entries = 10'000;  // of one file; more are refused
inline constexpr int most_config_levels = 32;

// The value as a person would write it: "true", "3", "2e-05", the text itself.
std::string config_text(const ConfigValue& value);

// True where `path` is one of the values or leads to some: "zero_optimization".
bool has_part(const ConfigEntries& entries, std::string_view path);

// Adds a value; the types of literals are told apart here once.
void put(ConfigEntries& to, std::string path, std::string_view value);
void put(ConfigEntries& to, std::string path, bool value);
void put(ConfigEntries& to, std::string path, std::int64_t value);
inline void put(ConfigEntries& to, std::string path, int value) {
  put(to, std::move(path), std::int64_t{value});
}
inline void put(ConfigEntries& to, std::string path, const char* value) {
  put(to, std::move(path), std::string_view(value));
}
void put_number(ConfigEntries& to, std::string path, double value);

}  // namespace shardwise
