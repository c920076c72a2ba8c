#include "catalog/names.hpp"
#include "planner/sentence.hpp"
#include "planner/shell/completion.hpp"

namespace shardwise {
namespace {

constexpr std::string_view fish_head =
    R"text(# Completions of shardwise for fish. Made by: shardwise completion fish

# Whether the words typed begin with the commands $argv; with -n $argv are all of them.
function __shardwise_at
    set -l words (string match -v -- '-*' (commandline -opc)[2..])
    if test "$argv[1]" = -n
        set argv $argv[2..]
        test (count $words) -eq (count $argv); or return 1
    end
    set -l many (count $argv)
    test $many -eq 0; or test "$words[1..$many]" = "$argv"
end

# Asks the program which words of a kind can stand here.
function __shardwise_asked
    set -l program (commandline -opc)[1]
    $program completion $argv (string replace -r '^--[^=]*=' '' -- (commandline -ct)) 2>/dev/null
end

complete -c shardwise -f
)text";

// fish knows \' and \\ inside single quotes.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// The rest of a `complete` line that says what the values are.
std::string fish_told(const ValueWords& values) {
  switch (values.kind) {
    case ValueKind::words:
      return " -a " + fish_quoted(joined(values.words, " "));
    case ValueKind::asked:
      return " -a " + fish_quoted(sentence("(__shardwise_asked ", values.words.front(), ")"));
    case ValueKind::files:
      return " -F";
    case ValueKind::folders:
      return " -a '(__fish_complete_directories (commandline -ct))'";
    case ValueKind::anything:
      return "";
  }
  return "";
}

std::string option_line(const std::string& condition, const CommandOption& o) {
  std::string line = "complete -c shardwise -n " + condition;
  for (const std::string& flag : o.flags)
    line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  if (!o.placeholder.empty()) line += " -r" + fish_told(o.values);
  return line + " -d " + fish_quoted(short_help(o.help)) + "\n";
}

}  // namespace

std::string fish_completion(const CommandPage& program) {
  std::string text(fish_head);
  for (const CommandPage* page : all_pages(program)) {
    const std::string path = spoken_path(*page);
    const std::string here = fish_quoted("__shardwise_at " + path);
    const std::string alone =
        fish_quoted(sentence("__shardwise_at -n", path.empty() ? "" : " ", path));
    for (const CommandPage& below : page->inner)
      text += sentence("complete -c shardwise -n ", alone, " -a ", below.path.back(), " -d ",
                       fish_quoted(short_help(below.summary)), "\n");
    for (const CommandOption& o : page->options)
      text += option_line(path.empty() ? alone : here, o);
    for (const CommandOption& o : page->arguments)
      if (o.values.kind != ValueKind::anything)
        text += sentence("complete -c shardwise -n ", here, fish_told(o.values), "\n");
  }
  return text;
}

}  // namespace shardwise
