// What a command line says that no command of ours takes, in one line each: an unknown command, a
// flag of another program, a value where none belongs, a file without a name.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace shardwise {

// The first word that is no flag is the command: nothing where there is none or it is known.
std::optional<std::string> unknown_command(const CLI::App& app, int argc, char** argv);

// Of what the parser could not understand, with the nearest name that it does know.
std::string misunderstood(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);

// A file or folder without a name, as "$NAME" is where nobody set it: it would be left out in
// silence.
std::optional<std::string> nameless_file(const CLI::App& app);

}  // namespace shardwise
