// What can be typed, as plain values: read once off the command line's own definitions
// (planner/commands/command_tree.hpp), then written as completions for three shells and as manual
// pages. What is hidden from --help is in none of them.
#pragma once

#include <string>
#include <vector>

namespace shardwise {

enum class ValueKind {
  anything,
  words,   // one of a fixed list
  asked,   // what `shardwise completion SUBJECT WORD` says at that moment; else a file
  files,   // a path
  folders  // a folder's path
};

struct ValueWords {
  ValueKind kind = ValueKind::anything;
  std::vector<std::string> words;  // words: all of them; asked: the subject alone
  friend bool operator==(const ValueWords&, const ValueWords&) = default;
};

struct CommandOption {
  std::vector<std::string> flags;  // "-h", "--help"; none: told by its place
  std::string placeholder;         // what the value is called; empty: takes none
  std::string help;
  bool repeats = false;
  bool required = false;
  ValueWords values;
};

struct CommandPage {
  std::vector<std::string> path;  // {"shardwise", "calibrate", "import"}
  std::string summary;
  std::string closing;                   // what else --help says, at its end
  std::vector<CommandOption> options;    // with flags
  std::vector<CommandOption> arguments;  // told by their place, in order
  std::vector<CommandPage> inner;        // commands below this one
};

// Words of the path behind the program's name: "calibrate import"; "" for the program itself.
std::string spoken_path(const CommandPage& page);

// This page and all below it, each before those below it. The pointers live as long as `page`.
std::vector<const CommandPage*> all_pages(const CommandPage& page);

}  // namespace shardwise
